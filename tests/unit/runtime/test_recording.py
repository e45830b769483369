import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import UsageError
from ledger.fold import fold
from ledger.state import RunState
from ledger.view import Recorded
from runtime.contracts import Task
from runtime.recording import Recording, record
from runtime.surroundings import Surroundings
from tests.ledger_checks import check_ledger


def recorded(path: Path) -> list[Recorded]:
    check_ledger(path)
    with LedgerView.open(path) as view:
        return list(view.events())


def state_of(run: Recording) -> RunState:
    return fold(recorded(run.path))


def of(run: Recording, kind: type) -> list[Any]:
    return [r.event for r in recorded(run.path) if isinstance(r.event, kind)]


def opened(results: Path, **more: Any) -> Any:
    around = Surroundings(environ={}, patience=0.0)
    return record(results, benchmark="mine", model="m", surroundings=around, **more)


def test_five_lines_make_a_sealed_run(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        for question, answer in (("1+1", 2), ("1+2", 4)):
            with run.attempt(question) as attempt:
                attempt.result(eval(question), trajectory=[{"role": "user"}])
                attempt.evaluation(correct=attempt.answer == answer, score=0.5)
    assert run.path.parent == tmp_path / "mine" / "m"
    assert [r.type for r in recorded(run.path)] == [
        *("run.created", "reuse.frozen", "extension.recorded"),
        *("run.started", "tasks.selected"),
        *2
        * (
            *("tasks.selected", "task.started", "attempt.started", "result.recorded"),
            *("evaluation.finished", "attempt.finished", "task.finished"),
        ),
        *("summary.started", "metrics.computed", "run.finished", "ledger.sealed"),
    ]
    assert run.metrics is not None
    assert run.metrics.metrics["correct.accuracy"] == 0.5
    state = state_of(run)
    assert (state.status, list(state.tasks)) == ("completed", ["1+1", "1+2"])


def test_an_attempt_is_on_disk_before_its_block_begins(tmp_path: Path) -> None:
    with opened(tmp_path) as run, run.attempt("t"), LedgerView.open(run.path) as view:
        assert list(view.events())[-1].type == "attempt.started"


def test_an_exception_in_an_attempt_is_its_error_and_the_loop_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        with run.attempt("a"):
            raise ValueError("no idea")
        with run.attempt("b") as attempt:
            attempt.result("x")
            attempt.evaluation(correct=True)
    failed, good = of(run, ev.AttemptFinished)
    assert (failed.status, failed.error.code) == ("run_error", "ValueError")
    assert "no idea" in failed.error.traceback
    assert good.status == "completed"
    assert state_of(run).status == "completed"


def test_an_exception_between_result_and_verdict_is_the_verifiers(tmp_path: Path) -> None:
    with opened(tmp_path) as run, run.attempt("a") as attempt:
        attempt.result("x")
        raise KeyError("rubric")
    (end,) = of(run, ev.AttemptFinished)
    assert (end.status, end.error.code) == ("eval_error", "KeyError")


def test_an_attempt_without_a_result_is_an_error(tmp_path: Path) -> None:
    with opened(tmp_path) as run, run.attempt("a"):
        pass
    (end,) = of(run, ev.AttemptFinished)
    assert (end.status, end.error.code) == ("run_error", "no_result")


def test_a_result_without_a_verdict_stays_without_one(tmp_path: Path) -> None:
    with opened(tmp_path) as run, run.attempt("a") as attempt:
        attempt.result("x")
    (end,) = of(run, ev.AttemptFinished)
    assert (end.status, end.correct) == ("completed", None)


def test_values_that_no_ledger_holds_are_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path) as run, run.attempt("a") as attempt:
        attempt.result("x", trajectory=[{"seen": {1}}, 2], metrics={"n": np.int64(1), "m": 2})
        attempt.tool("grep", output={"lines": {1}})
        attempt.evaluation(correct=True)
    (result,) = of(run, ev.ResultRecorded)
    assert (result.final_answer, result.metrics) == ("x", {"m": 2})
    assert "$.trajectory[0].seen" in result.error.message
    assert "$.metrics.n" in result.error.message
    (end,) = of(run, ev.AttemptFinished)
    assert (end.status, end.correct) == ("run_error", True)


def test_errors_may_be_told_in_words(tmp_path: Path) -> None:
    with opened(tmp_path) as run, run.attempt("a") as attempt:
        attempt.result(error="the agent gave up")
        attempt.evaluation(error="no rubric")
    (end,) = of(run, ev.AttemptFinished)
    assert (end.status, end.error.message) == ("run_error_or_eval_error", "the agent gave up")


# -- attempts and tasks -------------------------------------------------------------------------


def attempts(run: Recording, task: str, *correct: bool) -> None:
    for right in correct:
        with run.attempt(task) as attempt:
            attempt.result("x")
            attempt.evaluation(correct=right)


def test_attempts_count_up_to_k(tmp_path: Path) -> None:
    with opened(tmp_path, k=2) as run:
        attempts(run, "a", False, True)
        with pytest.raises(UsageError, match="has had its attempts"):
            attempts(run, "a", True)
    assert [end.reason for end in of(run, ev.TaskFinished)] == ["all_attempts"]
    assert state_of(run).tasks["a"].solved_at == 2


def test_a_task_with_fewer_attempts_ends_early(tmp_path: Path) -> None:
    with opened(tmp_path, k=3) as run:
        attempts(run, "a", True)
    assert [end.reason for end in of(run, ev.TaskFinished)] == ["stopped_early"]


def test_the_first_right_answer_ends_the_task_under_stop_on_correct(tmp_path: Path) -> None:
    with opened(tmp_path, k=3, strategy="stop_on_correct") as run:
        attempts(run, "a", False, True)
        with pytest.raises(UsageError, match="has had its attempts"):
            attempts(run, "a", True)
    assert [end.reason for end in of(run, ev.TaskFinished)] == ["stopped_early"]


def test_a_plan_may_be_given_and_is_told_first(tmp_path: Path) -> None:
    tasks = [Task("a", category="x", ground_truth=5), "b", "c"]
    with opened(tmp_path, tasks=tasks) as run:
        attempts(run, "a", True)
        attempts(run, "b", False)
        with pytest.raises(UsageError, match="'d' is not in the plan"):
            attempts(run, "d", True)
    (selected,) = of(run, ev.TasksSelected)
    assert [(ref.task_id, ref.category) for ref in selected.tasks] == [
        ("a", "x"),
        ("b", None),
        ("c", None),
    ]
    assert [(c.task, c.reason) for c in of(run, ev.TaskCancelled)] == [("c", "no attempt was made")]
    assert of(run, ev.ResultRecorded)[0].ground_truth == 5


def test_two_tasks_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="same id 'a'"), opened(tmp_path, tasks=["a", "b", "a"]):
        pass
    assert list(tmp_path.iterdir()) == []


VERDICT = ("evaluation", {"correct": True})
RESULT = ("result", {"final_answer": "x"})


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([VERDICT], "has no result yet"),
        ([RESULT, RESULT], "is recorded already"),
        ([RESULT, VERDICT, VERDICT], "has a verdict"),
    ],
)
def test_results_and_verdicts_are_told_once_and_in_order(
    tmp_path: Path, calls: list[tuple[str, dict[str, Any]]], why: str
) -> None:
    def told(run: Recording) -> None:
        with run.attempt("a") as attempt:
            for name, fields in calls:
                getattr(attempt, name)(**fields)

    with opened(tmp_path) as run, pytest.raises(UsageError, match=why):
        told(run)
    assert state_of(run).status == "completed"


def test_threads_may_record_side_by_side(tmp_path: Path) -> None:
    with opened(tmp_path, k=4) as run:
        work = [
            threading.Thread(target=attempts, args=(run, name, True, False))
            for name in ("a", "b", "a", "b")
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert len(of(run, ev.AttemptFinished)) == 8
    assert [end.reason for end in of(run, ev.TaskFinished)] == ["all_attempts"] * 2


# -- the end ------------------------------------------------------------------------------------


def test_an_exception_of_the_loop_fails_the_run_and_goes_on(tmp_path: Path) -> None:
    run: Recording | None = None

    def fails() -> None:
        nonlocal run
        with opened(tmp_path, tasks=["a", "b"]) as run:
            attempts(run, "a", True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert run is not None
    (end,) = of(run, ev.RunFinished)
    assert (end.status, end.error.code) == ("failed", "ZeroDivisionError")
    assert recorded(run.path)[-1].type == "ledger.sealed"
    assert state_of(run).tasks["a"].correct is True


def test_an_interrupt_inside_an_attempt_cancels_it_and_the_run(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), opened(tmp_path) as run, run.attempt("a"):
        raise KeyboardInterrupt
    assert [end.status for end in of(run, ev.AttemptFinished)] == ["cancelled"]
    assert [end.exit_code for end in of(run, ev.RunFinished)] == [130]
    assert state_of(run).status == "cancelled"


def test_secrets_are_replaced(tmp_path: Path) -> None:
    around = Surroundings(environ={"API_TOKEN": "correct-horse-battery"})
    with (
        record(tmp_path, benchmark="b", model="m", surroundings=around) as run,
        run.attempt("t") as attempt,
    ):
        attempt.result("it is correct-horse-battery")
    assert of(run, ev.ResultRecorded)[0].final_answer == "it is ********"


def test_projectors_see_the_sealed_run(tmp_path: Path) -> None:
    seen: list[tuple[Path, str, bool]] = []

    def make(directory: Path) -> Any:
        return lambda state, _: seen.append(
            (directory, state.status, state.sealed_size is not None)
        )

    with opened(tmp_path, projectors=[make]) as run:
        attempts(run, "a", True)
    assert seen == [(run.path, "completed", True)]


def test_every_recording_is_a_run_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path) as two:
        assert one.run_id != two.run_id
