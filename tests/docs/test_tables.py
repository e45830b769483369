"""What `docs/tables.md` shows is so: its commands, its query for DuckDB, and its lists of columns."""

import math
import re
import shlex
import shutil
import statistics
from collections import defaultdict
from pathlib import Path

import duckdb
import pytest

from acl.main import call
from exporters.tables import TABLES, Column
from exporters.tables.columns import INEXACT, KEY
from exporters.tables.parquet import GROUP_CHARACTERS, GROUP_ROWS
from ledger import LedgerView, fold
from tests import events_of as say
from tests.golden import runs as golden

PAGE = (Path(__file__).resolve().parents[2] / "docs/tables.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (acl .*)$", PAGE, flags=re.MULTILINE)
(SQL,) = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three runs of two harnesses; one has the attempts of another as copies."""
    results = tmp_path / "results"
    for name, make in (("first", golden.full), ("second", golden.stopped_early)):
        make(results / name)
    golden.reused(results / "third")
    _other(results / "fourth")
    monkeypatch.chdir(tmp_path)
    return results


def _other(path: Path) -> None:
    """A run of another harness: 3 of 8 tasks right at first, and each right at second."""
    tasks = [f"t{number}" for number in range(8)]
    with golden.create(path, "other") as ledger:
        ledger.append(*say.opening(*tasks, k=2))
        for number, task in enumerate(tasks):
            attempts = (say.attempt(task, 1, correct=number < 3), say.attempt(task, 2))
            ledger.append(*say.whole_task(task, *attempts))


def test_every_command_of_the_page_works(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) >= 6
    for line in COMMANDS:
        assert call(shlex.split(line)[1:]) == 0, line
        assert capsys.readouterr().out.strip(), line


def test_the_query_for_duckdb_gives_success_over_all_runs(results: Path) -> None:
    assert call(["export", "-f", "parquet", "results", "tables"]) == 0
    told = duckdb.connect().execute(SQL).fetchall()
    assert told == _success(results)
    other = next(row for row in told if row[1] == "noop")
    assert other[3:6] == (8, 16, round(11 / 16, 4))
    assert 0 < other[6] < other[5] < other[7] < 1


def _success(results: Path) -> list[tuple[object, ...]]:
    """The same by the state of each run."""
    seen: set[bytes | None] = set()
    tasks: dict[tuple[str, str, str], dict[str, list[bool]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for path in results.rglob("ledger.sqlite"):
        with LedgerView.open(path) as view:
            state = fold(view.events())
        key = (str(state.benchmark), state.request["harness"]["id"], state.request["model"]["id"])
        for task, attempt in state.attempts():
            if attempt.identity in seen or (attempt.correct is None and not attempt.error):
                continue
            seen.add(attempt.identity)
            tasks[key][task.id].append(bool(attempt.correct))
    rows = []
    for key, of_task in sorted(tasks.items()):
        means = [sum(right) / len(right) for right in of_task.values()]
        mean = statistics.fmean(means)
        half = 1.96 * statistics.stdev(means) / math.sqrt(len(means))
        attempts = sum(map(len, of_task.values()))
        low, high = max(0, mean - half), min(1, mean + half)
        rows.append((*key, len(means), attempts, round(mean, 4), round(low, 4), round(high, 4)))
    return rows


def test_csv_is_read_as_the_page_says(results: Path) -> None:
    assert call(["export", "-f", "csv", "results/first", "out"]) == 0
    assert call(["export", "-f", "parquet", "results/first", "tables"]) == 0
    (reader,) = re.findall(r"`(read_csv\('attempts.csv'.*?\))`", PAGE, flags=re.DOTALL)
    base = duckdb.connect()
    shown = "SELECT task_id, reason, error_code, cost_usd, correct, final_answer FROM "
    shutil.copy("out/attempts.csv", "attempts.csv")
    assert base.execute(shown + reader).fetchall() == (
        base.execute(f"{shown} 'tables/attempts.parquet'").fetchall()
    )


def _lines(columns: tuple[Column, ...]) -> str:
    return "\n".join(
        f"| `{c.name}` | `{c.kind}` | {'null' if c.nullable else ''} | {c.unit} | {c.meaning} |"
        for c in columns
    )


def test_the_page_lists_every_column_as_it_is() -> None:
    assert _lines((*KEY, INEXACT)) in PAGE
    for table in TABLES:
        _, _, after = PAGE.partition(f"### `{table.name}`: {table.meaning}\n")
        listed = after.partition("\n### ")[0].strip().split("\n", 2)[2]
        assert listed == _lines(table.own), table.name


def test_the_page_knows_the_bounds_of_row_groups() -> None:
    assert f"{GROUP_ROWS:,} rows" in PAGE
    assert f"{GROUP_CHARACTERS // 1024**2} MiB of text" in PAGE
