"""`acl query`: SQL over one run, or over all of a results directory."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exporters.tables import TABLES
from tests.cli.conftest import Acl, flip_a_stored_byte, write_run

VERDICTS = "select task_id, attempt, correct, score, retries from attempts order by task_id"


def test_the_state_is_asked_as_a_table(acl: Acl, sealed: Path) -> None:
    said = acl("query", sealed, VERDICTS)
    assert said.status == 0
    assert said.out.splitlines() == [
        "task_id  attempt  correct  score  retries",
        "broken   1                        0",
        "right    1        1        1.0    0",
        "wrong    1        0        0.0    1",
    ]


def test_json_gives_a_line_a_row_in_the_order_of_the_columns(acl: Acl, sealed: Path) -> None:
    said = acl("query", sealed, VERDICTS, "--json")
    assert said.lines()[0] == {
        "task_id": "broken",
        "attempt": 1,
        "correct": None,
        "score": None,
        "retries": 0,
    }
    assert list(said.lines()[0]) == ["task_id", "attempt", "correct", "score", "retries"]


def test_csv_gives_all_rows(acl: Acl, sealed: Path) -> None:
    said = acl("query", sealed, VERDICTS, "--csv")
    assert said.out.splitlines()[1:3] == ['"broken",1,,,0', '"right",1,1,1.0,0']


def test_a_results_directory_is_all_its_runs(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "other", run_id="r9")
    said = acl(
        "query", "results", "select count(distinct ledger_id) n, count(*) m from attempts", "--json"
    )
    assert said.lines() == [{"n": 2, "m": 6}]


def test_events_can_be_asked_into(acl: Acl, sealed: Path) -> None:
    said = acl(
        "query",
        sealed,
        "select body ->> '$.evaluator.id' as judge, count(*) n from events"
        " where type = 'evaluation.finished' group by 1",
        "--json",
    )
    assert said.lines() == [{"judge": "judge", "n": 2}]


def test_names_that_come_again_are_told_apart(acl: Acl, sealed: Path) -> None:
    said = acl("query", sealed, "select 1 a, 2 a, 3 a_2", "--json")
    assert said.lines() == [{"a": 1, "a_2": 2, "a_2_2": 3}]


def test_values_that_json_has_no_word_for_stand_in_envelopes(acl: Acl, sealed: Path) -> None:
    sql = "select 9e999 as big, x'00ff' as bytes, cast(x'ff' as text) as text"
    assert acl("query", sealed, sql, "--json").lines() == [
        {
            "big": {"$acl": ["float", "inf"]},
            "bytes": {"$acl": ["bytes", [], "AP8="]},
            "text": "\\xff",
        }
    ]
    assert acl("query", sealed, sql).out.splitlines()[1].split() == ["inf", "x'00ff'", "\\xff"]


def test_what_a_terminal_would_obey_is_shown_escaped(acl: Acl, sealed: Path) -> None:
    said = acl("query", sealed, "select char(27) || '[2J' as text")
    assert said.out.splitlines()[1] == "\\x1b[2J"


def test_a_table_for_people_ends_and_says_so(acl: Acl, sealed: Path) -> None:
    numbers = (
        "with recursive n(i) as (select 1 union all select i + 1 from n limit {}) select i from n"
    )
    said = acl("query", sealed, numbers.format(1001))
    assert len(said.out.splitlines()) == 1001
    assert "first 1000 rows" in said.err
    assert acl("query", sealed, numbers.format(1000)).err == ""
    assert len(acl("query", sealed, numbers.format(1001), "--csv").out.splitlines()) == 1002


@pytest.mark.parametrize(
    "sql",
    [
        "delete from runs",
        "update attempts set correct = 1",
        "create table mine (a)",
        "attach 'elsewhere.sqlite' as e",
        "pragma query_only = off",
        "select load_extension('x')",
        "select 1; select 2",
        "vacuum into 'copy.sqlite'",
        "selec",
        "select nothing from runs",
        "",
        "/* only words */",
    ],
)
def test_anything_but_one_select_is_refused(acl: Acl, sealed: Path, sql: str) -> None:
    before = {path: path.read_bytes() for path in sealed.iterdir()}
    said = acl("query", sealed, sql)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("acl: the query ")
    assert said.err.count("\n") == 1
    assert {path: path.read_bytes() for path in sealed.iterdir()} == before
    assert not [*Path.cwd().glob("*.sqlite")]


def test_a_value_that_grows_without_bound_is_refused(acl: Acl, sealed: Path) -> None:
    said = acl("query", sealed, "select length(zeroblob(1000000000))")
    assert said.status == 2
    assert "too big" in said.err


def test_tables_are_listed_with_their_columns(acl: Acl, sealed: Path) -> None:
    listed = acl("query", sealed, "--tables", "--json").lines()
    assert [(one["table"], one["column"]) for one in listed] == [
        (table.name, column.name) for table in TABLES for column in table.columns
    ]
    text = acl("query", sealed, "--tables").out
    assert "cost_usd" in text
    assert all(one["meaning"] in text for one in listed)


def test_a_query_is_needed_and_one_way_to_print_it(acl: Acl, sealed: Path) -> None:
    assert acl("query", sealed).status == 2
    assert acl("query", sealed, "select 1", "--csv", "--json").status == 2


def test_a_damaged_ledger_is_not_asked(acl: Acl, sealed: Path) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    said = acl("query", sealed, VERDICTS)
    assert (said.status, said.out) == (4, "")


def test_of_many_runs_a_damaged_one_is_named_and_the_others_are_asked(
    acl: Acl, sealed: Path, killed: Path
) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    said = acl("query", "results", "select count(*) n from runs", "--json")
    assert said.status == 4
    assert said.lines() == [{"n": 1}]
    assert "left out: bench/model-1/r1" in said.err


def test_where_there_is_no_run_that_is_said(acl: Acl, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert acl("query", "nothing", "select 1").status == 2
    assert acl("query", "not-there", "select 1").status == 2


def test_only_the_tables_that_are_named_are_made(
    acl: Acl, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("events were read one by one")

    monkeypatch.setitem(vars(TABLES[4]), "make", never)
    assert acl("query", sealed, "select count(*) from attempts").status == 0
    assert acl("query", sealed, 'select count(*) from "EVENTS"').status == 1


def test_ctrl_c_ends_a_query_that_does_not(sealed: Path) -> None:
    endless = (
        "with recursive few(i) as (select 1 union all select i + 1 from few limit 5000),"
        " n(i) as (select 1 union all select i + 1 from n)"
        " select i from few union all select max(i) from n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "acl", "query", sealed, endless, "--csv"],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        # Once rows come, all that is left is the one that never will.
        assert process.stdout.read(4096).startswith(b'"i"\r\n1\r\n2\r\n')
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signal.SIGINT, b"")


def test_help_loads_no_library_of_tables() -> None:
    code = (
        "import sys; from acl.main import call; call(['--help']); call(['query', '--help'])\n"
        "sys.exit(' '.join({'sqlite_utils', 'pyarrow', 'duckdb'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
