"""The layout `jsonl`: each row an object on a line, its members in the order of the columns."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from exporters import OutFile
from exporters.plainjson import written
from exporters.tables import Row, Table
from exporters.tables.cells import Cell, spelled_time
from exporters.tables.files import OneRun, table_files
from ledger.state import RunState
from ledger.view import Blobs

LAYOUT: Final = "jsonl"


def export_jsonl(state: RunState, blobs: Blobs) -> Iterable[OutFile]:
    """Project a run into the five tables as JSON lines; raises RunNotFound without a run."""
    return table_files(spell_jsonl, LAYOUT, [OneRun(state, blobs)])


def spell_jsonl(table: Table, rows: Iterator[Row]) -> Iterator[bytes]:
    """Yield a line a row."""
    names = [column.name for column in table.columns]
    times = [column.name for column in table.columns if column.kind == "timestamp"]
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        for name in times:
            cell = cells[name]
            cells[name] = spelled_time(cell) if isinstance(cell, datetime) else cell
        yield _line(cells).encode() + b"\n"


def _line(cells: dict[str, Cell]) -> str:
    text = written(cells, compact=True)
    if text is None:
        return json.dumps(cells, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text
