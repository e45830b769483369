"""Records of tasks, folded from real ledgers."""

import json
import math
from pathlib import Path

import pytest

from exporters.details import build_detail_record
from exporters.jsontext import json_bytes
from exporters.record import has_record, record_file
from ledger import canonical
from ledger import events as ev
from ledger.errors import LedgerDamaged, RunNotFound
from ledger.fold import fold
from ledger.state import RunState, TaskState
from ledger.view import LedgerView
from tests.golden.erasing import Erased
from tests.golden.runs import (
    JUDGE,
    attempt,
    broken_attempt,
    create,
    finished,
    full,
    opening,
    ref,
    reused,
    stopped_early,
    task,
)

FIELDS = [
    "task_id",
    "category",
    "correct",
    "score",
    "k",
    "attempts_tried",
    "solved_at",
    "retry_count",
    "retry_counts",
    "attempts",
    "acl",
]
ATTEMPT_FIELDS = [
    "status",
    "correct",
    "score",
    "final_answer",
    "ground_truth",
    "trajectory",
    "artifacts",
    "metrics",
    "error",
    "evaluation_error",
    "analysis_result",
    "meta",
    "extra",
]


def record_of(path: Path, *events: ev.AnyEvent, k: int = 1, category: str | None = None) -> dict:
    """The record of task `t`, whose events these are."""
    with create(path, "record") as ledger:
        ledger.append(*opening("r", ref("t", category), k=k))
        ledger.append(*events)
    with LedgerView.open(path) as view:
        state = fold(view.events())
        return build_detail_record(state.tasks["t"], state, view)


def one_attempt(path: Path, *events: ev.AnyEvent, **end: object) -> dict:
    """Attempt 1 of the record of a task with one attempt."""
    error = "error" in str(end.get("status"))
    started = ev.AttemptStarted(task="t", attempt=1)
    whole = task("t", [started, *events, finished("t", **end)], error=error)
    return record_of(path, *whole)["attempts"]["1"]


def result(**fields: object) -> ev.ResultRecorded:
    return ev.ResultRecorded(task="t", attempt=1, **{"status": "completed", **fields})


def verdict(**fields: object) -> ev.EvaluationFinished:
    return ev.EvaluationFinished(task="t", attempt=1, evaluator=JUDGE, **fields)


def test_a_record_has_the_documented_fields_in_their_order(tmp_path: Path) -> None:
    full(tmp_path)
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        for known in state.tasks.values():
            record = build_detail_record(known, state, view)
            assert list(record) == FIELDS
            for told in record["attempts"].values():
                assert list(told) == [name for name in ATTEMPT_FIELDS if name in told]
                assert {"status", "correct", "score"} <= set(told)


def test_the_first_correct_attempt_decides(tmp_path: Path) -> None:
    attempts = (
        attempt("t", 1, correct=False, score=0.9),
        attempt("t", 2, correct=True, score=0.5),
        attempt("t", 3, correct=True, score=0.8),
    )
    record = record_of(tmp_path, *task("t", *attempts), k=3, category="c")
    assert (record["correct"], record["solved_at"], record["score"]) == (True, 2, 0.5)
    assert (record["k"], record["attempts_tried"], record["category"]) == (3, 3, "c")
    assert list(record["attempts"]) == ["1", "2", "3"]


def test_without_a_correct_attempt_the_best_score_stands(tmp_path: Path) -> None:
    attempts = (
        attempt("t", 1, correct=False, score=0.2),
        attempt("t", 2, correct=False, score=0.4),
        broken_attempt("t", 3),
    )
    record = record_of(tmp_path, *task("t", *attempts, error=True), k=3)
    assert (record["correct"], record["solved_at"], record["score"]) == (False, None, 0.4)


def test_a_scalar_benchmark_has_a_score_and_no_truth_value(tmp_path: Path) -> None:
    record = record_of(tmp_path, *task("t", attempt("t", correct=None, score=0.25)))
    assert (record["correct"], record["score"]) == (None, 0.25)


def test_attempts_are_in_numeric_order(tmp_path: Path) -> None:
    attempts = [attempt("t", number) for number in range(1, 12)]
    record = record_of(tmp_path, *task("t", *attempts), k=11)
    assert list(record["attempts"]) == [str(number) for number in range(1, 12)]


def test_stop_on_correct_tells_the_attempts_that_were_made(tmp_path: Path) -> None:
    stopped_early(tmp_path)
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        record = build_detail_record(state.tasks["t1"], state, view)
    assert (record["k"], record["attempts_tried"], record["solved_at"]) == (3, 2, 2)


def test_a_cancelled_attempt_is_left_out(tmp_path: Path) -> None:
    cancelled = [ev.AttemptStarted(task="t", attempt=2), finished("t", 2, status="cancelled")]
    record = record_of(tmp_path, *task("t", attempt("t"), cancelled), k=2)
    assert list(record["attempts"]) == ["1"]
    assert (record["attempts_tried"], record["retry_counts"]) == (1, {"1": 0})


def test_a_task_with_cancelled_attempts_alone_has_no_record(tmp_path: Path) -> None:
    with create(tmp_path, "cancelled") as ledger:
        ledger.append(*opening("r", ref("gone"), ref("given up"), ref("none")))
        cancelled = [
            ev.AttemptStarted(task="gone", attempt=1),
            finished("gone", status="cancelled"),
        ]
        ledger.append(*task("gone", cancelled), ev.TaskCancelled(task="given up", reason="timeout"))
        ledger.append(*task("none"))
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
    assert [t.id for t in state.tasks.values() if has_record(t)] == ["none"]


def test_an_error_is_told_as_text_and_in_full_beside_it(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="timeout", message="5 s", phase="run_harness", traceback="at line 1")
    told = one_attempt(
        tmp_path, result(status="run_error", error=error), status="run_error", error=error
    )
    assert told["error"] == "timeout: 5 s"
    assert told["extra"]["error_info"] == {
        "code": "timeout",
        "message": "5 s",
        "phase": "run_harness",
        "fatal": False,
        "traceback": "at line 1",
    }
    assert "evaluation_error" not in told


def test_an_attempt_that_failed_without_a_result_tells_its_error(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="plan_failed", message="", fatal=True)
    told = one_attempt(tmp_path, status="run_error", error=error)
    assert told["error"] == "plan_failed"


def test_a_verifier_that_failed_is_no_wrong_answer(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="judge_down", message="no route")
    told = one_attempt(
        tmp_path, result(), verdict(evaluation_error=error), status="eval_error", error=error
    )
    assert told["evaluation_error"] == "judge_down: no route"
    assert (told["status"], told["correct"], told["score"]) == ("eval_error", None, None)
    assert "error" not in told


def test_an_error_of_its_own_stands_beside_those_of_run_and_evaluation(tmp_path: Path) -> None:
    run, judge, own = (ev.ErrorInfo(code=code, message="m") for code in ("run", "judge", "own"))
    told = one_attempt(
        tmp_path,
        result(status="run_error", error=run),
        verdict(evaluation_error=judge),
        status="run_error_or_eval_error",
        error=own,
    )
    assert (told["error"], told["evaluation_error"]) == ("run: m", "judge: m")
    assert told["extra"]["attempt_error"] == "own: m"
    assert told["extra"]["attempt_error_info"]["code"] == "own"


def test_whatever_has_no_field_goes_to_extra(tmp_path: Path) -> None:
    issue = ev.Issue(severity="warning", code="slow", message="took long")
    told = one_attempt(
        tmp_path,
        result(telemetry={"turns": 3}, extra={"own": 1, "reason": "mine"}),
        verdict(
            correct=True,
            reason="right",
            stdout="out",
            stderr="err",
            tests_status=["ok"],
            extra=[1, 2],
        ),
        correct=True,
        issues=(issue,),
    )
    assert told["extra"] == {
        "evaluator": {"id": "judge", "version": "2", "sha256": "ab" * 32},
        "harness.reason": "mine",
        "issues": [{"severity": "warning", "code": "slow", "message": "took long"}],
        "own": 1,
        "reason": "right",
        "stderr": "err",
        "stdout": "out",
        "telemetry": {"turns": 3},
        "tests_status": ["ok"],
        "value": [1, 2],
    }
    assert list(told["extra"]) == sorted(told["extra"])


def test_where_two_measured_one_name_both_numbers_are_kept(tmp_path: Path) -> None:
    told = one_attempt(
        tmp_path,
        result(metrics={"tokens": 5, "same": 1, "own": 2}, ground_truth="theirs"),
        verdict(correct=True, metrics={"tokens": 6, "same": 1}, ground_truth="ours"),
        correct=True,
    )
    assert told["metrics"] == {"own": 2, "same": 1, "tokens": 6}
    assert told["extra"]["harness_metrics"] == {"tokens": 5}
    assert told["ground_truth"] == "ours"
    assert told["extra"]["harness_ground_truth"] == "theirs"


def test_artifacts_of_the_harness_stay_beside_those_that_were_collected(tmp_path: Path) -> None:
    collected = ev.ArtifactsCollected(
        task="t",
        attempt=1,
        artifacts=(ev.Artifact(path="a.txt", bytes=2, sha256="cd" * 32),),
        contents={"a.txt": "hi"},
        truncated=True,
    )
    file = {"path": "a.txt", "bytes": 2, "sha256": "cd" * 32, "content": "hi"}
    alone = one_attempt(tmp_path / "alone", result(), collected)
    assert alone["artifacts"] == {"files": [file], "truncated": True}
    both = one_attempt(tmp_path / "both", result(artifacts=["theirs"]), collected)
    assert both["artifacts"] == ["theirs"]
    assert both["extra"]["collected_artifacts"] == {"files": [file], "truncated": True}


def test_the_plan_stands_in_meta_beside_what_the_harness_said(tmp_path: Path) -> None:
    plan = ev.PlanResolved(
        task="t", attempt=1, plan={"z": 1, "a": 2}, plan_hash="00", timeouts={"run": 1.5}
    )
    meta = {"agent": "x", "resolved_execution_plan": "theirs"}
    told = one_attempt(tmp_path, plan, result(meta=meta))
    assert told["meta"] == {
        "agent": "x",
        "harness.resolved_execution_plan": "theirs",
        "resolved_execution_plan": {
            "a": 2,
            "applied_recipes": [],
            "timeouts": {"run": 1.5},
            "z": 1,
        },
    }


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    told = one_attempt(tmp_path, result(final_answer="", trajectory=[]))
    assert told["final_answer"] == ""
    assert told["trajectory"] == []
    assert "extra" not in told


def test_analyses_stand_by_analyzer(tmp_path: Path) -> None:
    failed = ev.ErrorInfo(code="crash", message="boom")
    told = one_attempt(
        tmp_path,
        result(),
        ev.AnalysisFinished(task="t", attempt=1, analyzer="z", family="f", error=failed),
        ev.AnalysisFinished(
            task="t", attempt=1, analyzer="a", family="f", is_badcase=False, score=0.5, details=[1]
        ),
    )
    assert told["analysis_result"] == {
        "a": {"family": "f", "is_badcase": False, "score": 0.5, "details": [1]},
        "z": {
            "family": "f",
            "is_badcase": None,
            "score": None,
            "error": "crash: boom",
            "error_info": {"code": "crash", "message": "boom", "fatal": False},
        },
    }


def test_large_values_come_whole(tmp_path: Path) -> None:
    trajectory = [{"role": "user", "content": "x" * 10_000, "nan": math.nan}] * 5
    told = one_attempt(tmp_path, result(trajectory=trajectory, final_answer="y" * 100_000))
    assert told["final_answer"] == "y" * 100_000
    assert [step["content"] for step in told["trajectory"]] == ["x" * 10_000] * 5
    assert all(math.isnan(step["nan"]) for step in told["trajectory"])


def test_the_trailer_names_events_addresses_and_the_prefix(tmp_path: Path) -> None:
    with create(tmp_path, "trailer") as ledger:
        ledger.append(*opening("r", ref("t")))
        receipt = ledger.append(*task("t", attempt("t")))
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        trailer = build_detail_record(state.tasks["t"], state, view)["acl"]
        addresses = {r.type: r.address.hex() for r in view.events()}
    assert trailer == {
        "schema": "acl.export.v1",
        "run_id": "r",
        "ledger_id": state.ledger_id,
        "size": receipt.size,
        "root": receipt.root.hex(),
        "events": [3, 9],
        "attempts": {
            "1": {
                "result": addresses["result.recorded"],
                "evaluation": addresses["evaluation.finished"],
            }
        },
        "reused_from": None,
    }


def test_a_reused_task_names_its_origin_and_keeps_its_addresses(tmp_path: Path) -> None:
    reused(tmp_path)
    with LedgerView.open(tmp_path / "source") as view:
        source = fold(view.events())
        wanted = source.tasks["math-3"].attempts[1].result_address
        origin = {
            "run_id": "source-1",
            "ledger_id": source.ledger_id,
            "size": source.size,
            "root": source.root.hex(),
        }
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        trailer = build_detail_record(state.tasks["math-3"], state, view)["acl"]
        own = build_detail_record(state.tasks["t2"], state, view)["acl"]
    assert trailer["reused_from"] == origin
    assert trailer["attempts"]["1"]["result"] == wanted.hex()
    assert own["reused_from"] is None


@pytest.fixture
def erased_run(tmp_path: Path) -> Path:
    """Task `t`: result is event 5, its verdict event 6; event 9 says that event 5 was erased."""
    with create(tmp_path, "erased") as ledger:
        ledger.append(*opening("r", ref("t")))
        events = task("t", [attempt("t", final_answer="z" * 9000)[i] for i in (0, 2, 3, 4)])
        ledger.append(*events, ev.PayloadErased(sequence=(5,), reason="asked to"))
    return tmp_path


def erased_record(view: Erased) -> tuple[RunState, TaskState, dict]:
    state = fold(view.events())
    return state, state.tasks["t"], build_detail_record(state.tasks["t"], state, view)


def test_an_erased_result_is_named_and_the_rest_is_told(erased_run: Path) -> None:
    with LedgerView.open(erased_run) as view:
        state, known, record = erased_record(Erased(view, 5))
        assert record["acl"]["erased"] == [
            {"event": 5, "type": "result.recorded", "attempt": 1, "reason": "erased by event 9"}
        ]
        assert record["attempts"]["1"]["correct"] is True
        assert "final_answer" not in record["attempts"]["1"]
        assert record["acl"]["attempts"]["1"]["result"] == view.event(5).address.hex()
        file = record_file(known, "t", state, Erased(view, 5))
        assert json.loads(b"".join(file.data))["acl"] == json.loads(json_bytes(record["acl"]))


def test_an_erased_piece_of_a_value_is_named(erased_run: Path) -> None:
    with LedgerView.open(erased_run) as view:
        _, _, record = erased_record(Erased(view, pieces=True))
    assert [gap["reason"] for gap in record["acl"]["erased"]] == ["erased by event 9"]
    assert "final_answer" not in record["attempts"]["1"]


def test_a_piece_that_nobody_erased_is_damage(tmp_path: Path) -> None:
    with create(tmp_path, "damaged") as ledger:
        ledger.append(*opening("r", ref("t")), *task("t", attempt("t", final_answer="z" * 9000)))
    with LedgerView.open(tmp_path) as view:
        hidden = Erased(view, pieces=True)
        state = fold(hidden.events())
        with pytest.raises(LedgerDamaged) as damage:
            build_detail_record(state.tasks["t"], state, hidden)
    assert damage.value.seq == 6
    assert isinstance(damage.value.__cause__, RunNotFound)


def test_binaries_stay_bytes_until_they_are_written(tmp_path: Path) -> None:
    told = one_attempt(tmp_path, result(final_answer={"raw": canonical.Binary(b"\xff")}))
    assert told["final_answer"] == {"raw": canonical.Binary(b"\xff")}
