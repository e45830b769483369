"""The layout `parquet`: one file a table, its types told and not guessed; needs pyarrow.

The same rows give the same bytes with the same release of pyarrow, which writes its version into
each file (`created_by`). Nothing of time, place or machine is in it.
"""

import io
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from exporters import OutFile
from exporters.folder import Folder
from exporters.tables import Row, Table
from exporters.tables.columns import Kind
from exporters.tables.files import OneRun, table_files
from ledger.errors import UsageError
from ledger.state import RunState
from ledger.view import Blobs

LAYOUT: Final = "parquet"
GROUP_ROWS: Final = 16_384
GROUP_CHARACTERS: Final = 8 * 1024 * 1024
"""A row group is closed at so many rows, or characters of text: it is what is held in memory."""

_WRITER: Final = "parquet-cpp-arrow"
# Who wrote a file stands near its end.
_FOOTER: Final = 4096


def export_parquet(state: RunState, blobs: Blobs) -> Iterable[OutFile]:
    """Project a run into the five tables as Parquet; UsageError where pyarrow is not installed."""
    require_pyarrow()
    return table_files(spell_parquet, LAYOUT, [OneRun(state, blobs)])


def require_pyarrow() -> None:
    """Raise UsageError unless pyarrow can be imported."""
    _arrow("pyarrow")


def _arrow(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(
            f"the layout parquet needs pyarrow, which cannot be imported: {error}",
            hint="pip install 'agentcompass-ledger[parquet]', or export csv or jsonl",
        ) from error


def is_of_another_release(folder: Folder, path: str) -> bool:
    """Whether a Parquet file in a directory does not name the release that writes here."""
    if not path.endswith(f".{LAYOUT}"):
        return False
    release = f"{_WRITER} version {_arrow('pyarrow').cpp_version}"
    with folder.reading(path) as file:
        length = file.seek(0, io.SEEK_END)
        file.seek(max(0, length - _FOOTER))
        return release.encode() not in file.read()


def schema_of(table: Table) -> Any:
    """The Arrow schema of a table; what must not be null is declared so."""
    pyarrow = _arrow("pyarrow")
    types: dict[Kind, Any] = {
        "int64": pyarrow.int64(),
        "float64": pyarrow.float64(),
        "bool": pyarrow.bool_(),
        "string": pyarrow.string(),
        "json": pyarrow.string(),
        "timestamp": pyarrow.timestamp("us", tz="UTC"),
        "list<string>": pyarrow.list_(pyarrow.string()),
    }
    fields = (pyarrow.field(c.name, types[c.kind], nullable=c.nullable) for c in table.columns)
    return pyarrow.schema(list(fields))


def spell_parquet(table: Table, rows: Iterator[Row]) -> Iterator[bytes]:
    """Yield the bytes of the file, a row group at a time."""
    pyarrow, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
    schema = schema_of(table)
    out = _Written()
    with parquet.ParquetWriter(out, schema, compression="zstd", store_schema=False) as writer:
        for group in _groups(rows):
            arrays = [
                pyarrow.array(cells, type=field.type)
                for cells, field in zip(zip(*group, strict=True), schema, strict=True)
            ]
            writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
            yield out.take()
    yield out.take()


def _groups(rows: Iterator[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(len(cell) for cell in row if isinstance(cell, str))
        if len(group) >= GROUP_ROWS or characters >= GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


class _Written(io.RawIOBase):
    """Collects what is written, to be handed on."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._length += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._length

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken
