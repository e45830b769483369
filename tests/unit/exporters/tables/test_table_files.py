"""Tables as Parquet, CSV and JSON lines: the same cells, whoever reads them."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from exporters import Exporter, find_exporter
from exporters.tables import TABLES, Column, Row, Table, parquet
from exporters.tables.cells import spelled_time
from exporters.tables.csvtext import csv_line, export_csv
from exporters.tables.jsonl import export_jsonl, spell_jsonl
from exporters.tables.parquet import export_parquet, schema_of, spell_parquet
from ledger import LedgerView, fold
from ledger.errors import UsageError
from tests.golden import runs as golden

NAMES = [table.name for table in TABLES]
Files = dict[str, bytes]


def files_of(exporter: Exporter, path: Path) -> Files:
    with LedgerView.open(path) as view:
        return {
            file.path: file.data if isinstance(file.data, bytes) else b"".join(file.data)
            for file in exporter(fold(view.events()), view)
        }


def rows_at(path: Path) -> dict[str, list[Row]]:
    with LedgerView.open(path) as view:
        state = fold(view.events())
        return {table.name: list(table.rows(state, view)) for table in TABLES}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("runs")

    def made(name: str) -> Path:
        if not (root / name).exists():
            golden.RUNS[name](root / name)
        return root / name

    return made


EVERY = pytest.mark.parametrize("name", sorted(golden.RUNS))


@EVERY
def test_pyarrow_reads_every_cell_back(name: str, run: Callable[[str], Path]) -> None:
    files, rows = files_of(export_parquet, run(name)), rows_at(run(name))
    assert list(files) == [f"{table}.parquet" for table in NAMES]
    for table in TABLES:
        read = pq.read_table(pa.BufferReader(files[f"{table.name}.parquet"]))
        assert read.schema.equals(schema_of(table)), table.name
        assert [tuple(row.values()) for row in read.to_pylist()] == rows[table.name]


@EVERY
def test_json_lines_hold_the_same_cells(name: str, run: Callable[[str], Path]) -> None:
    files, rows = files_of(export_jsonl, run(name)), rows_at(run(name))
    for table in TABLES:
        text = files[f"{table.name}.jsonl"].decode()
        read = [json.loads(line) for line in text.split("\n")[:-1]]
        assert [list(row) for row in read] == [[c.name for c in table.columns]] * len(read)
        assert [tuple(row.values()) for row in read] == [
            tuple(map(_in_json, r)) for r in rows[table.name]
        ]


@EVERY
def test_csv_holds_the_same_cells(name: str, run: Callable[[str], Path]) -> None:
    files, rows = files_of(export_csv, run(name)), rows_at(run(name))
    for table in TABLES:
        header, *records = _records(files[f"{table.name}.csv"].decode())
        assert header == [column.name for column in table.columns]
        read = [
            tuple(_of_csv(cell, c) for cell, c in zip(record, table.columns, strict=True))
            for record in records
        ]
        assert read == [tuple(map(_in_json, row)) for row in rows[table.name]]


def _in_json(cell: Any) -> Any:
    return spelled_time(cell) if isinstance(cell, datetime) else cell


def _records(text: str) -> Iterator[list[str | None]]:
    """A strict reader of RFC 4180 that tells `""` from nothing."""
    at = 0
    record: list[str | None] = []
    while at < len(text):
        if text[at] == '"':
            end = at + 1
            while text[end] != '"' or text[end : end + 2] == '""':
                end += 2 if text[end] == '"' else 1
            record.append("=" + text[at + 1 : end].replace('""', '"'))
            at = end + 1
        else:
            end = min(
                text.index(",", at) if "," in text[at:] else len(text), text.index("\r\n", at)
            )
            assert '"' not in text[at:end]
            record.append(text[at:end] or None)
            at = end
        if text[at : at + 2] == "\r\n":
            yield [cell and cell.removeprefix("=") if cell != "=" else "" for cell in record]
            record, at = [], at + 2
            continue
        assert text[at] == ","
        at += 1


def _of_csv(cell: str | None, column: Column) -> Any:
    if cell is None:
        return None
    readers: dict[str, Callable[[str], Any]] = {
        "int64": int,
        "float64": float,
        "bool": {"true": True, "false": False}.__getitem__,
        "list<string>": json.loads,
    }
    return readers.get(column.kind, str)(cell)


def test_the_csv_reader_of_python_agrees(run: Callable[[str], Path]) -> None:
    data = files_of(export_csv, run("odd"))["tasks.csv"].decode()
    read = list(csv.reader(io.StringIO(data, newline=""), strict=True))
    assert [row[3] for row in read[1:]] == [row[3] for row in rows_at(run("odd"))["tasks"]]


@EVERY
def test_duckdb_reads_the_same_from_all(
    name: str, run: Callable[[str], Path], tmp_path: Path
) -> None:
    for exporter in (export_parquet, export_csv, export_jsonl):
        for path, data in files_of(exporter, run(name)).items():
            (tmp_path / path).write_bytes(data)
    base = duckdb.connect()
    base.execute("SET TimeZone = 'UTC'")
    for table in TABLES:
        columns = {c.name: _DUCK[c.kind] for c in table.columns}
        told = base.read_parquet(str(tmp_path / f"{table.name}.parquet")).fetchall()
        lines = base.execute(
            f"FROM read_json('{tmp_path / table.name}.jsonl', format = 'newline_delimited',"
            f" columns = {columns})"
        ).fetchall()
        assert lines == told, table.name
        spelled = {
            **columns,
            **{n: "VARCHAR" for n, kind in columns.items() if kind.endswith("[]")},
        }
        text = base.execute(
            f"FROM read_csv('{tmp_path / table.name}.csv', header = true, columns = {spelled},"
            " nullstr = '', allow_quoted_nulls = false, strict_mode = true, max_line_size = 20000000)"
        ).fetchall()
        assert [tuple(map(_lists, row)) for row in told] == text, table.name
        assert len(told) == len(rows_at(run(name))[table.name])


_DUCK = {
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "json": "VARCHAR",
    "timestamp": "TIMESTAMPTZ",
    "list<string>": "VARCHAR[]",
}


def _lists(cell: Any) -> Any:
    return json.dumps(cell, separators=(",", ":")) if isinstance(cell, list) else cell


@pytest.mark.parametrize("layout", ["parquet", "csv", "jsonl"])
def test_the_same_events_give_the_same_bytes(layout: str, tmp_path: Path) -> None:
    golden.full(tmp_path / "one")
    golden.full(tmp_path / "two")
    exporter = find_exporter(layout)
    assert files_of(exporter, tmp_path / "one") == files_of(exporter, tmp_path / "two")


def test_parquet_tells_nothing_but_the_library(run: Callable[[str], Path]) -> None:
    for data in files_of(export_parquet, run("full")).values():
        metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
        assert metadata.metadata is None
        assert metadata.created_by == f"parquet-cpp-arrow version {pa.cpp_version}"


def test_row_groups_are_bounded_by_rows_and_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(
        "t", "", (Column("n", "int64", ""), Column("s", "string", "")), lambda *_: iter(())
    )

    def row(number: int, text: str) -> Row:
        return ("r", "l", "0", number, text, [])

    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)
    monkeypatch.setattr(parquet, "GROUP_CHARACTERS", 100)
    rows = [*(row(n, "") for n in range(4)), row(4, "x" * 100), row(5, "")]
    pieces = list(spell_parquet(table, iter(rows)))
    read = pq.ParquetFile(pa.BufferReader(b"".join(pieces)))
    groups = [read.metadata.row_group(n).num_rows for n in range(read.num_row_groups)]
    assert groups == [3, 2, 1]
    assert len(pieces) == 4
    assert read.read().column("n").to_pylist() == list(range(6))


def test_rows_are_written_while_they_are_read() -> None:
    read: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(3):
            read.append(number)
            yield ("r", "l", "0", number, [])

    table = Table("t", "", (Column("n", "int64", ""),), lambda *_: iter(()))
    lines = spell_jsonl(table, rows())
    assert json.loads(next(lines))["n"] == 0
    assert read == [0]


def test_a_cell_that_a_spreadsheet_takes_for_a_formula_is_not_changed() -> None:
    assert csv_line(["=1+1", '-"x"', None, "", True, -0.0]) == b'"=1+1","-""x""",,"",true,-0.0\r\n'


def test_without_pyarrow_one_line_says_what_to_install(run: Callable[[str], Path]) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from exporters.tables.parquet import export_parquet\n"
        "from ledger.errors import UsageError\n"
        "try: export_parquet(None, None)\n"
        "except UsageError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_ROOT
    )
    assert "agentcompass-ledger[parquet]" in done.stdout
    assert done.stdout.count("\n") == 1


_ROOT = Path(__file__).resolve().parents[4]


def test_a_layout_that_is_not_installed_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pyarrow"):
        export_parquet(None, None)  # type: ignore[arg-type]


def test_column_names_are_unlike_and_none_is_a_word_of_sql() -> None:
    base = duckdb.connect()
    for table in TABLES:
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        base.execute(f"CREATE TABLE {table.name} ({', '.join(f'{name} INT' for name in names)})")
