"""What a table is: columns with a type, a unit and a meaning, and rows that fit them.

Every writer of tables (Parquet, CSV, JSON lines, `acl query`) works from these definitions, so a
cell has one value wherever it is read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from exporters.tables.cells import FIT, Cell, Fit, Inexact, nearest
from ledger.state import RunState
from ledger.view import Blobs

Kind = Literal["int64", "float64", "bool", "string", "json", "timestamp", "list<string>"]
"""`json` is a string that holds canonical JSON; `timestamp` is of microseconds, UTC."""

Row = tuple[Cell, ...]
Cells = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, type, one-line meaning, unit where it has one, and whether it is null."""

    name: str
    kind: Kind
    meaning: str
    unit: str = ""
    nullable: bool = True


def always(name: str, kind: Kind, meaning: str, unit: str = "") -> Column:
    """A column that is never null."""
    return Column(name, kind, meaning, unit, nullable=False)


KEY: Final = (
    always("run_id", "string", "the run"),
    always("ledger_id", "string", "its ledger, 32 hex digits"),
    always("root", "string", "root of the events that the row was made of"),
)
INEXACT: Final = always(
    "inexact",
    "list<string>",
    "columns whose type cannot hold what was recorded; the cell is null or near it",
)


@dataclass(frozen=True)
class Table:
    """A table and how its rows are made of a run, one at a time, in an order of their own.

    `own` are its columns without those that every table has; `make` gives their cells by name.
    """

    name: str
    meaning: str
    own: tuple[Column, ...]
    make: Callable[[RunState, Blobs], Iterator[Cells]]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in the order of a row's cells."""
        return (*KEY, *self.own, INEXACT)

    def rows(self, state: RunState, blobs: Blobs) -> Iterator[Row]:
        """Yield the rows of one run; raises RunNotFound where the ledger holds none."""
        key = {"run_id": state.run_id, "ledger_id": state.ledger_id, "root": state.root.hex()}
        begin, inexact = _fitted(key, _fitting(KEY))
        for cells in self.make(state, blobs):
            assert len(cells) == len(self.own), f"{self.name}: {sorted(cells)}"
            row, own = _fitted(cells, self._fitting)
            yield (*begin, *row, inexact + own)

    @cached_property
    def _fitting(self) -> "_Fitting":
        return _fitting(self.own)


_Fitting = tuple[tuple[str, Fit, bool], ...]
"""What cells are made with, one after another: name, fit, and whether there may be none."""


def _fitting(columns: tuple[Column, ...]) -> _Fitting:
    return tuple((column.name, FIT[column.kind], column.nullable) for column in columns)


def _fitted(cells: Cells, fitting: _Fitting) -> tuple[list[Cell], list[str]]:
    """The cells as their columns hold them, and the names of the inexact ones."""
    row: list[Cell] = []
    inexact: list[str] = []
    for name, fit, nullable in fitting:
        value = cells[name]
        cell = None if value is None else fit(value)
        if isinstance(cell, Inexact):
            inexact.append(name)
            cell = cell.near
            if cell is None and not nullable:
                cell = nearest(value)
        assert nullable or cell is not None, f"{name} is null"
        row.append(cell)
    return row, inexact
