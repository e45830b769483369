"""The layout `csv`: RFC 4180, UTF-8, a header line.

Text stands in quotes always, numbers, truth values and times never; so an empty text is `""` and
null is nothing. Lists are JSON arrays. Text is not changed for spreadsheets, which take a cell that
begins with `=`, `+`, `-` or `@` for a formula, in quotes or not: `docs/tables.md`.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from exporters import OutFile
from exporters.tables import Row, Table
from exporters.tables.cells import Cell, spelled_time
from exporters.tables.files import OneRun, table_files
from ledger.state import RunState
from ledger.view import Blobs

LAYOUT: Final = "csv"
_END: Final = "\r\n"


def export_csv(state: RunState, blobs: Blobs) -> Iterable[OutFile]:
    """Project a run into the five tables as CSV; raises RunNotFound without a run."""
    return table_files(spell_csv, LAYOUT, [OneRun(state, blobs)])


def spell_csv(table: Table, rows: Iterator[Row]) -> Iterator[bytes]:
    """Yield the line of names, then a line a row; a line may hold line breaks, in quotes."""
    yield csv_line([column.name for column in table.columns])
    for row in rows:
        yield csv_line(row)


def csv_line(cells: Iterable[Cell]) -> bytes:
    """One record with its end."""
    return (",".join(map(_spell, cells)) + _END).encode()


def _spell(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case int() | float():
            return repr(cell)
        case datetime():
            return spelled_time(cell)
        case list():
            return _quoted(json.dumps(cell, ensure_ascii=False, separators=(",", ":")))
        case str():
            return _quoted(cell)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
