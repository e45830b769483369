"""Tables as files of an export: one file a table, over one run or many, row after row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from exporters import OutFile
from exporters.tables import TABLES, Row, Table
from ledger.state import RunState
from ledger.view import Blobs

Spell = Callable[[Table, Iterator[Row]], Iterator[bytes]]
"""The bytes of a table, in pieces, while its rows are read."""


class Source(Protocol):
    """A run whose rows can be read, a table at a time."""

    def rows(self, table: Table) -> Iterator[Row]:
        """Yield the run's rows of a table."""
        ...


@dataclass(frozen=True, slots=True)
class OneRun:
    """The rows of a run whose state is at hand."""

    state: RunState
    blobs: Blobs

    def rows(self, table: Table) -> Iterator[Row]:
        """Yield the run's rows of a table."""
        return table.rows(self.state, self.blobs)


@dataclass(frozen=True, slots=True)
class _Spelled:
    """The bytes of one table; each reading makes them anew."""

    spell: Spell
    table: Table
    sources: Sequence[Source]

    def __iter__(self) -> Iterator[bytes]:
        rows = chain.from_iterable(source.rows(self.table) for source in self.sources)
        return self.spell(self.table, rows)


def table_files(spell: Spell, suffix: str, sources: Sequence[Source]) -> Iterable[OutFile]:
    """One file a table, `runs.csv` say; the rows of the sources follow each other in their order.

    Memory is bounded by what `spell` holds of the rows, and by what a source holds.
    """
    for table in TABLES:
        yield OutFile(f"{table.name}.{suffix}", _Spelled(spell, table, sources))
