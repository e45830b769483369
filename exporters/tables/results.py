"""The tables of all runs of a results directory, as one export."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from exporters import OutFile
from exporters.identity import Identity
from exporters.jsontext import json_line
from exporters.tables import csvtext, jsonl, parquet
from exporters.tables.files import Source, Spell, table_files

SPELLINGS: Final[dict[str, Spell]] = {
    parquet.LAYOUT: parquet.spell_parquet,
    jsonl.LAYOUT: jsonl.spell_jsonl,
    csvtext.LAYOUT: csvtext.spell_csv,
}
LEFT_OUT: Final = "left_out.jsonl"
_NO_REGISTRY: Final = "0" * 32


class IdentifiedSource(Source, Protocol):
    """A run that also tells which prefix of which ledger its rows are of."""

    @property
    def identity(self) -> Identity:
        """The run, its ledger, and the size and root of the prefix."""
        ...


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A ledger whose rows are in no table: its place below the results directory, and why.

    `damaged` says that stored bytes contradict each other.
    """

    place: str
    damaged: bool
    reason: str


def results_files(
    layout: str, sources: Sequence[IdentifiedSource], left_out: Sequence[LeftOut]
) -> Iterator[OutFile]:
    """The five tables over all sources, then `left_out.jsonl` where anything is.

    Raises UsageError where what the layout needs is not installed.
    """
    if layout == parquet.LAYOUT:
        parquet.require_pyarrow()
    return _files(layout, sources, left_out)


def _files(
    layout: str, sources: Sequence[Source], left_out: Sequence[LeftOut]
) -> Iterator[OutFile]:
    yield from table_files(SPELLINGS[layout], layout, sources)
    if left_out:
        lines: Iterable[bytes] = (b for one in left_out for b in json_line(asdict(one)))
        yield OutFile(LEFT_OUT, b"".join(lines))


def results_identity(sources: Sequence[IdentifiedSource], registry_id: str | None) -> Identity:
    """What the manifest of such an export says of its sources.

    It is of no run: `ledger_id` is the registry's, zeros where there is none; `size` is the sum of
    events, `root` the SHA-256 of a line `<ledger id> <size> <root>` for each source in its order.
    """
    told = [source.identity for source in sources]
    lines = "".join(f"{one.ledger_id} {one.size} {one.root}\n" for one in told)
    return Identity(
        run_id="",
        ledger_id=registry_id or _NO_REGISTRY,
        size=sum(one.size for one in told),
        root=hashlib.sha256(lines.encode()).hexdigest(),
    )
