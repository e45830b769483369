import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ledger import events as ev
from ledger.canonical import encode
from ledger.events import ErrorInfo
from runtime.contracts import Task
from runtime.harvest import (
    Sieve,
    attempt_status,
    discarded,
    evaluation_event,
    kept_result,
    refused_error,
    result_event,
)
from runtime.results import Evaluation, RunResult

TASK = Task("t", category="math", ground_truth=42)
JUDGE = ev.Evaluator(id="judge", version="1")


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


KEPT = [
    math.nan,
    -math.inf,
    -0.0,
    1e21,
    2**70,
    -(2**64),
    "\ud835",
    "a\udc00b",
    "\u0000",
    "\u2028",
    {"\ud800": {"\u0000": [1, None, True]}},
    nested(198),
    "x" * 100_000,
]


@pytest.mark.parametrize("value", KEPT, ids=lambda value: repr(value)[:20])
def test_what_a_ledger_holds_is_kept_as_it_is(value: Any) -> None:
    kept, error = kept_result(TASK, RunResult("t", final_answer=value, trajectory=[{"x": value}]))
    assert error is None
    assert repr(kept.final_answer) == repr(value)
    encode(kept.trajectory)


REFUSED = [
    {1, 2},
    b"raw",
    np.float32(0.1),
    np.float64(0.1),
    np.int64(3),
    np.bool_(True),
    Decimal("0.1"),
    object(),
    nested(201),
    nested(2000),
    {3: "x"},
    {None: 1},
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: type(value).__name__)
def test_what_no_ledger_holds_is_named_and_the_rest_is_kept(value: Any) -> None:
    trajectory = [{"step": 1}, {"step": 2, "x": value}]
    kept, error = kept_result(TASK, RunResult("t", final_answer="fine", trajectory=trajectory))
    assert error is not None
    assert error.code == "value_refused"
    assert "$.trajectory[1].x" in error.message
    assert kept.final_answer == "fine"
    assert kept.trajectory[0] == {"step": 1}
    assert kept.trajectory[1]["step"] == 2
    encode(kept.trajectory)


def test_a_trajectory_that_is_changed_later_does_not_change_what_is_kept() -> None:
    trajectory = [{"step": 1}]
    kept, _ = kept_result(TASK, RunResult("t", trajectory=trajectory))
    trajectory[0]["step"] = 2
    assert kept.trajectory == [{"step": 1}]


@pytest.mark.parametrize("number", [0, 1, 1.0, -0.0, 2**70, True])
def test_measures_keep_the_type_they_were_given(number: Any) -> None:
    kept, error = kept_result(TASK, RunResult("t", metrics={"n": number}))
    assert error is None
    assert repr(kept.metrics["n"]) == repr(number)


@pytest.mark.parametrize("number", [math.nan, math.inf, np.float64(1), np.int64(1), "1", None, [1]])
def test_a_measure_that_is_no_finite_number_is_named_and_the_others_are_kept(number: Any) -> None:
    kept, error = kept_result(TASK, RunResult("t", metrics={"bad": number, "good": 2}))
    assert error is not None
    assert "$.metrics.bad" in error.message
    assert kept.metrics == {"good": 2}


def test_what_is_no_result_is_an_error() -> None:
    kept, error = kept_result(TASK, {"final_answer": 1})
    assert error is not None
    assert error.code == "bad_result"
    assert kept.final_answer is None


@pytest.mark.parametrize("status", ["run_error", "cancelled", "done", ["x"], None])
def test_a_status_other_than_completed_or_skipped_is_an_error(status: Any) -> None:
    _, error = kept_result(TASK, RunResult("t", status=status))
    assert error is not None


def test_skipped_stays_skipped() -> None:
    kept, error = kept_result(TASK, RunResult("t", status="skipped"))
    assert (kept.status, error) == ("skipped", None)


def test_the_harness_own_error_comes_before_refused_values() -> None:
    given = RunResult("t", error=ErrorInfo(code="gave_up", message="x"), trajectory={1})
    _, error = kept_result(TASK, given)
    assert error is not None
    assert error.code == "gave_up"


def test_an_error_that_is_no_error_info_is_told_in_its_words() -> None:
    _, error = kept_result(TASK, RunResult("t", error="out of tokens"))  # type: ignore[arg-type]
    assert error == ErrorInfo(code="harness_error", message="'out of tokens'")


def test_what_the_harness_says_of_correctness_is_no_verdict_and_is_kept() -> None:
    given = RunResult("other", correct=True, score=1.0, extra={"a": 1})
    kept, error = kept_result(TASK, given)
    assert error is None
    assert (kept.correct, kept.score, kept.task_id, kept.category) == (None, None, "t", "math")
    assert kept.extra == {
        "a": 1,
        "harness_correct": True,
        "harness_score": 1.0,
        "harness_task_id": "other",
    }


def test_the_ground_truth_is_the_tasks_unless_the_harness_has_another() -> None:
    assert kept_result(TASK, RunResult("t"))[0].ground_truth == 42
    assert kept_result(TASK, RunResult("t", ground_truth=43))[0].ground_truth == 43


def test_a_result_becomes_an_event_with_its_error() -> None:
    kept, error = kept_result(TASK, RunResult("t", final_answer=1, extra={"x": {2}}))
    event = result_event("t", 1, kept, error)
    assert (event.status, event.error, event.final_answer) == ("run_error", error, 1)


def test_of_a_discarded_result_only_what_is_there_is_kept() -> None:
    assert discarded(RunResult("t", final_answer="no")) == {"final_answer": "no"}
    assert discarded(RunResult("t")) is None
    assert discarded(None) is None


def test_many_refusals_are_counted_not_listed() -> None:
    sieve = Sieve()
    sieve.value("x", [{1} for _ in range(12)])
    error = refused_error(sieve.refusals, "evaluate")
    assert error is not None
    assert error.message.endswith("and 2 more")
    assert refused_error([], "evaluate") is None


# -- evaluations --------------------------------------------------------------------------------


def test_a_verdict_becomes_an_event() -> None:
    event = evaluation_event(TASK, 1, Evaluation(JUDGE, correct=True, score=1), JUDGE)
    assert (event.correct, event.score, event.evaluation_error) == (True, 1, None)


def test_no_verdict_is_an_error_and_not_a_wrong_answer() -> None:
    event = evaluation_event(TASK, 1, Evaluation(JUDGE), JUDGE)
    assert event.correct is None
    assert event.evaluation_error is not None
    assert event.evaluation_error.code == "no_verdict"


@pytest.mark.parametrize("score", [math.nan, math.inf, np.float64(1.0), "1", [1]])
def test_a_score_that_is_no_finite_number_is_an_evaluation_error(score: Any) -> None:
    event = evaluation_event(TASK, 1, Evaluation(JUDGE, score=score, reason="why"), JUDGE)
    assert event.score is None
    assert event.reason == "why"
    assert event.evaluation_error is not None
    assert "$.score" in event.evaluation_error.message


def test_a_truth_value_as_a_score_counts_one() -> None:
    event = evaluation_event(TASK, 1, Evaluation(JUDGE, score=True), JUDGE)
    assert repr(event.score) == "1"


@pytest.mark.parametrize("correct", [np.bool_(True), 1, "yes"])
def test_correct_is_a_truth_value_or_nothing(correct: Any) -> None:
    event = evaluation_event(TASK, 1, Evaluation(JUDGE, correct=correct, score=0.5), JUDGE)
    assert (event.correct, event.score) == (None, 0.5)
    assert event.evaluation_error is not None


def test_values_of_the_verifier_that_no_ledger_holds_are_its_own_error() -> None:
    given = Evaluation(
        JUDGE, correct=True, tests_status={"a": {1}, "b": 2}, metrics={"x": math.nan}
    )
    event = evaluation_event(TASK, 1, given, JUDGE)
    assert event.correct is True
    assert event.tests_status == {"b": 2}
    assert event.evaluation_error is not None
    assert "$.tests_status.a" in event.evaluation_error.message
    assert "$.metrics.x" in event.evaluation_error.message


def test_a_ground_truth_that_no_ledger_holds_is_the_benchmarks_error() -> None:
    task = Task("t", ground_truth={"one": {1}, "two": 2})
    kept, error = kept_result(task, RunResult("t", final_answer=1))
    assert error is None
    assert kept.ground_truth == {"two": 2}
    event = evaluation_event(task, 1, Evaluation(JUDGE, correct=True), JUDGE)
    assert event.evaluation_error is not None
    assert "$.ground_truth.one" in event.evaluation_error.message


def test_what_is_no_evaluation_is_an_error() -> None:
    event = evaluation_event(TASK, 1, True, JUDGE)
    assert event.evaluation_error is not None
    assert event.evaluation_error.code == "bad_evaluation"


def test_the_status_says_which_errors_there_were() -> None:
    error = ErrorInfo(code="x", message="x")
    assert attempt_status(None, None) == "completed"
    assert attempt_status(error, None) == "run_error"
    assert attempt_status(None, error) == "eval_error"
    assert attempt_status(error, error) == "run_error_or_eval_error"
