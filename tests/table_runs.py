"""Runs as tables, for tests: rows by column name, and ledgers that have something to tell."""

from pathlib import Path
from typing import Any

from exporters.tables import Table
from ledger import LedgerView, fold
from ledger import events as ev
from ledger.view import Blobs
from tests.golden import runs as golden

Told = list[dict[str, Any]]


def rows_of(table: Table, state: Any, blobs: Blobs) -> Told:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows(state, blobs)]


def rows_at(table: Table, path: Path) -> Told:
    with LedgerView.open(path) as view:
        return rows_of(table, fold(view.events()), view)


def write(path: Path, *events: ev.AnyEvent, seed: str = "tables") -> Path:
    """A run of the task `t` whose events after its start these are."""
    with golden.create(path, seed) as ledger:
        ledger.append(*golden.opening("run-1", golden.ref("t", "math")), ev.TaskStarted(task="t"))
        for event in events:
            ledger.append(event)
    return path
