"""The rows of each table, against the state and the events that they are made of."""

import hashlib
import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from exporters.identity import Salvaged
from exporters.tables import ATTEMPTS, CALLS, EVENTS, RUNS, TABLES, TASKS
from ledger import LedgerView, RunState, fold
from ledger import events as ev
from ledger.errors import LedgerDamaged
from ledger.store import Ledger
from tests import events_of as say
from tests.golden import runs as golden
from tests.golden.erasing import Erased
from tests.importer_runs import do_import, sample
from tests.legal_runs import legal_runs
from tests.table_runs import rows_at, rows_of, write

Make = Callable[[Path], None]
_ERROR = ev.ErrorInfo(code="boom", message="it broke", phase="run_harness")
_TRY = {"task": "t", "attempt": 1}


@pytest.fixture
def full(tmp_path: Path) -> Path:
    golden.full(tmp_path / "full")
    return tmp_path / "full"


def retry(scope: str, number: int = 1, **fields: Any) -> ev.AttemptRetried:
    return ev.AttemptRetried(
        **_TRY,
        retry=number,
        max_retries=3,
        retry_delay_seconds=0.0,
        stage="run",
        scope=scope,
        error=_ERROR,
        **fields,
    )


def check_rows(state: RunState, view: Any) -> None:
    """Everything that rows and state tell both."""
    told = {table.name: rows_of(table, state, view) for table in TABLES}
    for rows in told.values():
        for row in rows:
            assert (row["run_id"], row["ledger_id"]) == (state.run_id, state.ledger_id)
            assert row["root"] == state.root.hex()
            assert row["inexact"] == []
    (run,) = told["runs"]
    counts = state.counts()
    for name in ("total", "evaluated", "error", "skipped", "missing", "correct", "incorrect"):
        assert run[f"tasks_{name}"] == getattr(counts, name)
    assert (run["attempts"], run["retries"]) == (counts.attempts, counts.retries)
    assert (run["events"], run["status"], run["k"]) == (state.size, state.status, state.k)
    assert [row["task_id"] for row in told["tasks"]] == list(state.tasks)
    for row, task in zip(told["tasks"], state.tasks.values(), strict=True):
        for name in ("stage", "bin", "correct", "score", "solved_at", "has_error", "reused"):
            assert row[name] == getattr(task, name), name
        assert row["retries"] == task.retry_count
        assert row["attempts"] == len(task.attempts)
    for row, (task, attempt) in zip(told["attempts"], state.attempts(), strict=True):
        assert (row["task_id"], row["attempt"]) == (task.id, attempt.number)
        for name in ("status", "correct", "score", "copied", "error", "fatal", "phase"):
            assert row[name] == getattr(attempt, name), name
        for prefix, spend in (("", attempt.spend), ("discarded_", attempt.discarded)):
            assert row[f"{prefix}calls"] == spend.calls
            known = spend.calls and not spend.unknown_cost + spend.open_calls
            assert row[f"{prefix}cost_usd"] == (spend.cost_usd if known else None)
        mine = [
            c for c in told["calls"] if (c["task_id"], c["attempt"]) == (task.id, row["attempt"])
        ]
        assert len(mine) == attempt.spend.calls + attempt.discarded.calls
        counted = [call for call in mine if call["counted"]]
        assert len(counted) == attempt.spend.calls
        costs = [call["cost_usd"] for call in counted if call["cost_usd"] is not None]
        assert sum(costs) == attempt.spend.cost_usd
    assert [row["seq"] for row in told["events"]] == list(range(state.size))
    for row in told["events"]:
        recorded = view.event(row["seq"])
        assert (row["type"], row["task_id"]) == (recorded.type, recorded.task)
        assert row["address"] == recorded.address.hex()
        assert row["recorded_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ") == recorded.at


@pytest.mark.parametrize("name", sorted(golden.RUNS.keys() - {"odd"}))
def test_rows_tell_what_the_state_tells(name: str, tmp_path: Path) -> None:
    golden.RUNS[name](tmp_path / name)
    with LedgerView.open(tmp_path / name) as view:
        check_rows(fold(view.events()), view)


@given(legal_runs())
@settings(max_examples=25, deadline=None)
def test_rows_of_random_runs_tell_what_the_state_tells(events: list[ev.AnyEvent]) -> None:
    with TemporaryDirectory() as name:
        with Ledger.create(Path(name)) as ledger:
            ledger.append(*events)
        with LedgerView.open(name) as view:
            check_rows(fold(view.events()), view)


def test_a_row_is_of_the_prefix_that_the_state_is_of(full: Path) -> None:
    with LedgerView.open(full) as view:
        state = fold(itertools.islice(view.events(), 30))
        check_rows(state, view)


def test_a_run_tells_its_request_its_times_and_its_metrics(full: Path) -> None:
    (run,) = rows_at(RUNS, full)
    assert json.loads(run["request"])["harness"] == {"id": "search", "params": {"budget": 5}}
    assert (run["benchmark"], run["benchmark_version"]) == ("demo-bench", "3")
    assert (run["harness"], run["environment"], run["model"]) == ("search", "local", "model-1")
    assert run["created_at"] == datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
    assert run["duration_s"] == (run["finished_at"] - run["started_at"]).total_seconds() == 54.0
    assert json.loads(run["metrics"])["evaluated_tasks"] == 3
    assert (run["sealed"], run["exit_code"], run["damaged_at"]) == (True, 0, None)


def test_unknown_costs_are_null_and_counted(full: Path) -> None:
    attempt = rows_at(ATTEMPTS, full)[2]
    assert (attempt["task_id"], attempt["retries"], attempt["calls"]) == ("math-3", 2, 2)
    assert (attempt["cost_usd"], attempt["input_tokens"]) == (None, None)
    assert (attempt["known_cost_usd"], attempt["known_input_tokens"]) == (1.0, 100)
    assert (attempt["calls_without_cost"], attempt["calls_without_usage"]) == (1, 1)
    assert (attempt["discarded_calls"], attempt["discarded_cost_usd"]) == (1, 1.0)


def test_no_call_is_an_unknown_cost(full: Path) -> None:
    attempt = rows_at(ATTEMPTS, full)[0]
    assert (attempt["calls"], attempt["cost_usd"], attempt["known_cost_usd"]) == (0, None, None)


def test_an_attempt_tells_its_answer_its_verdict_and_its_error(full: Path) -> None:
    by_task = {row["task_id"]: row for row in rows_at(ATTEMPTS, full)}
    assert by_task["math-3"]["final_answer"] == "42"
    assert by_task["math-1"]["final_answer"] == '"answer 1"'
    assert by_task["loose"]["final_answer"] == '""'
    assert by_task["math-3"]["reason"] == "all tests pass"
    assert json.loads(by_task["math-3"]["metrics"]) == {"tokens": 221, "lines": 3}
    assert json.loads(by_task["math-3"]["measures"]) == {"tokens": 220, "speed": 1e-05}
    broken = by_task["code-1"]
    assert (broken["error"], broken["fatal"], broken["has_verdict"]) == (True, True, False)
    assert (broken["error_code"], broken["error_message"]) == ("env_failed", "no room")
    assert broken["error_phase"] == "open_environment"
    assert by_task["skip-1"]["status"] == "skipped"


STATUSES = ("completed", "run_error", "eval_error", "run_error_or_eval_error", "skipped")


@pytest.mark.parametrize("status", [*STATUSES, "cancelled"])
def test_every_status_is_told_as_it_is(status: ev.AttemptStatus, tmp_path: Path) -> None:
    error = _ERROR if "error" in status else None
    path = write(
        tmp_path / "run",
        ev.AttemptStarted(**_TRY),
        *([say.result("t"), say.verdict("t")] if status == "completed" else []),
        ev.AttemptFinished(
            **_TRY, status=status, error=error, correct=status == "completed" or None
        ),
    )
    (attempt,) = rows_at(ATTEMPTS, path)
    assert (attempt["status"], attempt["open"]) == (status, False)
    assert attempt["error"] is (error is not None)
    assert attempt["error_code"] == (error and "boom")


def test_an_error_of_the_evaluation_is_the_error_of_its_attempt(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run",
        ev.AttemptStarted(**_TRY),
        say.result("t"),
        say.verdict("t", correct=None, evaluation_error=_ERROR),
        ev.AttemptFinished(**_TRY, status="eval_error"),
    )
    (attempt,) = rows_at(ATTEMPTS, path)
    assert (attempt["status"], attempt["error_code"]) == ("eval_error", "boom")


def test_an_open_attempt_and_its_open_call_have_no_end(tmp_path: Path) -> None:
    golden.interrupted(tmp_path / "run")
    attempt = rows_at(ATTEMPTS, tmp_path / "run")[-1]
    assert (attempt["open"], attempt["status"], attempt["finished_at"]) == (True, None, None)
    assert (attempt["open_calls"], attempt["cost_usd"], attempt["identity"]) == (1, None, None)
    (call,) = rows_at(CALLS, tmp_path / "run")
    assert (call["state"], call["finished_at"], call["erased"]) == ("open", None, [])
    (run,) = rows_at(RUNS, tmp_path / "run")
    assert (run["status"], run["finished_at"], run["k"]) == ("interrupted", None, 2)


def test_calls_are_told_with_their_try_and_their_end(tmp_path: Path) -> None:
    def start(number: int) -> ev.CallStarted:
        return ev.CallStarted(**_TRY, call_id=f"c{number}", call_index=number, model="m")

    end = ev.CallFinished(
        **_TRY,
        call_id="c2",
        success=True,
        usage=ev.Usage(input_tokens=7, cached_tokens=5, estimated=True),
        cost_usd=0,
        started_at="2025-06-15T15:00:00Z",
        finished_at="whenever",
        duration_ms=12.5,
        flags=("streamed",),
    )
    path = write(
        tmp_path / "run",
        ev.AttemptStarted(**_TRY),
        start(0),
        ev.CallFinished(**_TRY, call_id="c0", success=False, error=_ERROR),
        retry("attempt"),
        start(1),
        say.result("t"),
        ev.CallLost(**_TRY, call_id="c1"),
        retry("evaluate", 2),
        start(2),
        end,
        say.verdict("t"),
        ev.AttemptFinished(**_TRY, status="completed", correct=True, retries=2),
    )
    first, second, third = rows_at(CALLS, path)
    assert (first["state"], first["counted"], first["retry"]) == ("failed", False, 0)
    assert (first["error_code"], first["cost_usd"]) == ("boom", None)
    assert (second["state"], second["counted"], second["retry"]) == ("lost", True, 1)
    assert (third["state"], third["counted"], third["retry"]) == ("succeeded", True, 2)
    assert (third["input_tokens"], third["output_tokens"]) == (7, None)
    assert (third["cached_tokens"], third["usage_estimated"], third["cost_usd"]) == (5, True, 0.0)
    assert third["started_at"] == datetime(2025, 6, 15, 15, 0, tzinfo=UTC)
    assert (third["finished_at"], third["inexact"]) == (None, ["finished_at"])
    assert (third["duration_ms"], third["flags"]) == (12.5, ["streamed"])


def test_what_was_reused_names_its_run_and_has_the_same_identity(tmp_path: Path) -> None:
    golden.reused(tmp_path / "run")
    before = rows_at(ATTEMPTS, tmp_path / "run" / "source")[0]
    copy, own = rows_at(ATTEMPTS, tmp_path / "run")
    assert (copy["copied"], copy["reused_run_id"]) == (True, "source-1")
    assert copy["identity"] == before["identity"] != own["identity"]
    assert copy["started_at"] == before["started_at"]
    assert copy["duration_s"] == before["duration_s"]
    assert (own["copied"], own["reused_run_id"]) == (False, None)
    task, other = rows_at(TASKS, tmp_path / "run")
    assert (task["reused"], task["reused_run_id"]) == (True, "source-1")
    assert (other["reused"], other["reused_run_id"]) == (False, None)
    (run,) = rows_at(RUNS, tmp_path / "run")
    assert (run["tasks_reused"], run["reused_run_id"]) == (1, "source-1")
    assert all(call["copied"] for call in rows_at(CALLS, tmp_path / "run")[:3])


def test_an_import_has_the_times_of_its_source_or_none(tmp_path: Path) -> None:
    report = do_import(sample(tmp_path, "k3-avg"), tmp_path / "results")
    (run,) = rows_at(RUNS, report.path)
    assert (run["import_format"], run["import_records_in"]) == ("agentcompass", report.records_in)
    assert run["started_at"] < run["finished_at"] < run["created_at"]
    attempts = rows_at(ATTEMPTS, report.path)
    assert len(attempts) == run["attempts"] > 0
    assert (
        {row["started_at"] for row in attempts} == {row["duration_s"] for row in attempts} == {None}
    )
    with LedgerView.open(report.path) as view:
        assert [row["correct"] for row in attempts] == [
            attempt.correct for _, attempt in fold(view.events()).attempts()
        ]


def test_odd_values_are_told_exactly_or_named(tmp_path: Path) -> None:
    golden.odd(tmp_path / "odd")
    tasks = rows_at(TASKS, tmp_path / "odd")
    ids = [row["task_id"] for row in tasks]
    inexact = {row["task_id"]: row["inexact"] for row in tasks if row["inexact"]}
    assert inexact == {
        "lone \\ud835 half": ["task_id"],
        "joined \\ud83d\\ude00 halves": ["task_id"],
    }
    exact = [row["task_id"] for row in tasks if not row["inexact"]]
    assert exact == [name for name in golden.ODD_IDS if name.isascii() or max(name) < "\ud800"]
    assert len(set(ids)) == len(golden.ODD_IDS)
    for event in rows_at(EVENTS, tmp_path / "odd"):
        assert event["body"].encode()


def test_a_huge_score_is_null_and_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run",
        ev.AttemptStarted(**_TRY),
        say.result("t"),
        say.verdict("t", correct=None, score=10**400),
        ev.AttemptFinished(**_TRY, status="completed", score=10**400),
    )
    (attempt,) = rows_at(ATTEMPTS, path)
    assert (attempt["score"], attempt["inexact"]) == (None, ["score"])


# -- what was erased ------------------------------------------------------------------------------


def erased_rows(path: Path, *types: str, pieces: bool = False) -> dict[str, list[dict[str, Any]]]:
    with LedgerView.open(path) as view:
        gone = [recorded.seq for recorded in view.events() if recorded.type in types]
        blobs = Erased(view, *gone, pieces=pieces)
        state = fold(blobs.events())
        return {table.name: rows_of(table, state, blobs) for table in TABLES}


def test_an_erased_verdict_is_null_and_told(full: Path) -> None:
    told = erased_rows(full, "evaluation.finished")
    attempt = told["attempts"][0]
    assert (attempt["correct"], attempt["score"], attempt["evaluator"]) == (None, None, None)
    assert attempt["erased"] == ["evaluation.finished"]
    assert told["runs"][0]["erased"] == ["evaluation.finished"]
    assert told["attempts"][3]["erased"] == []
    event = next(row for row in told["events"] if row["type"] == "evaluation.finished")
    assert (event["erased"], event["body"]) == (True, None)


def test_an_erased_end_of_a_call_leaves_its_start(full: Path) -> None:
    told = erased_rows(full, "call.finished")
    assert {call["state"] for call in told["calls"]} == {"erased"}
    assert {tuple(call["erased"]) for call in told["calls"]} == {("call.finished",)}
    assert {call["cost_usd"] for call in told["calls"]} == {None}
    assert told["attempts"][2]["cost_usd"] is None


def test_an_erased_start_of_a_call_leaves_its_end(full: Path) -> None:
    told = erased_rows(full, "call.started")
    assert [call["call_id"] for call in told["calls"]] == ["math-3/1/0", "math-3/1/1", "math-3/1/2"]
    assert {call["call_index"] for call in told["calls"]} == {None}
    assert {call["counted"] for call in told["calls"]} == {None}
    assert {tuple(call["erased"]) for call in told["calls"]} == {("call.started",)}


def test_an_erased_retry_leaves_open_which_try_a_call_was_of(full: Path) -> None:
    told = erased_rows(full, "attempt.retried")
    assert [call["counted"] for call in told["calls"]] == [None] * 3


def test_an_erased_piece_of_an_answer_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with golden.create(path, "long") as ledger:
        ledger.append(*golden.opening("long-1", golden.ref("t")))
        answer = golden.attempt("t", final_answer="x" * 9000)
        ledger.append(*golden.task("t", answer))
        piece = hashlib.sha256(b"x" * 4096).hexdigest()
        ledger.erase(blobs=[piece], reason="asked to")
    (attempt,) = rows_at(ATTEMPTS, path)
    assert (attempt["final_answer"], attempt["erased"]) == (None, ["result.recorded"])
    assert attempt["correct"] is True
    assert [row["type"] for row in rows_at(EVENTS, path) if row["erased"]] == []


def test_a_piece_that_is_missing_and_that_nobody_erased_is_damage(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run", ev.AttemptStarted(**_TRY), say.result("t", final_answer="x" * 9000)
    )
    with pytest.raises(LedgerDamaged, match="event 5"):
        erased_rows(path, pieces=True)


def test_erased_events_of_a_task_are_told(full: Path) -> None:
    told = erased_rows(full, "task.finished")
    assert {tuple(row["erased"]) for row in told["tasks"]} == {("task.finished",)}


def test_a_salvaged_run_says_where_the_damage_is(full: Path) -> None:
    with LedgerView.open(full) as view:
        state = Salvaged.of(fold(itertools.islice(view.events(), 20)), 20)
        (run,) = rows_of(RUNS, state, view)
    assert (run["damaged_at"], run["events"]) == (20, 20)


def test_an_integer_beyond_64_bits_is_the_nearest_where_a_column_is_never_null(
    tmp_path: Path,
) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t", k=2**64))
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        (run,) = rows_of(RUNS, state, view)
    assert state.k == 2**64
    assert (run["k"], run["inexact"]) == (2**63 - 1, ["k"])
