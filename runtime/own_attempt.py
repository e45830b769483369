"""An attempt that somebody's own loop makes: it tells the result, then the verdict."""

from itertools import count
from typing import Any

from ledger import events as ev
from ledger.errors import UsageError
from runtime.attempt_calls import AttemptCalls
from runtime.contracts import Task
from runtime.harvest import (
    attempt_status,
    evaluation_event,
    expected,
    failed_evaluation,
    kept_result,
    refused_error,
    result_event,
)
from runtime.recorder import Recorder
from runtime.results import ErrorInfo, Evaluation, RunResult
from runtime.stages import explain


class RecordedAttempt:
    """Attempt `number` of `task`; each call returns once what it tells is on disk.

    `calls` records its model calls, for `runtime.llm` and `runtime.litellm_bridge`.
    """

    def __init__(self, recorder: Recorder, task: Task, number: int, evaluator: str) -> None:
        self.task = task
        self.number = number
        self.calls = AttemptCalls.of(recorder, task.task_id, number, count())
        self.answer: Any = None
        self.correct: bool | None = None
        self.status: ev.AttemptStatus | None = None
        self._score: float | None = None
        self._recorder = recorder
        self._evaluator = ev.Evaluator(id=evaluator, version="own")
        self._told_result = False
        self._told_verdict = False
        self._run_error: ErrorInfo | None = None
        self._evaluation_error: ErrorInfo | None = None

    def result(
        self,
        final_answer: Any = None,
        *,
        trajectory: Any = None,
        artifacts: Any = None,
        metrics: dict[str, Any] | None = None,
        telemetry: Any = None,
        error: ErrorInfo | str | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        """Record what the agent gave, once. Values that no ledger holds become an error by name."""
        if self._told_result:
            raise UsageError(f"the result of {self._name} is recorded already")
        if isinstance(error, str):
            error = ErrorInfo(code="run_error", message=error, phase="run_harness")
        given = RunResult(
            self.task.task_id,
            final_answer=final_answer,
            trajectory=trajectory,
            artifacts=artifacts,
            metrics=metrics or {},
            telemetry=telemetry,
            error=error,
            extra=extra or {},
        )
        kept, self._run_error = kept_result(self.task, given)
        self._tell_result(kept)
        self.answer = final_answer

    def _tell_result(self, kept: RunResult) -> None:
        event = result_event(self.task.task_id, self.number, kept, self._run_error)
        self._recorder.record_sync(event)
        self._told_result = True

    def evaluation(
        self,
        *,
        correct: bool | None = None,
        score: float | None = None,
        metrics: dict[str, Any] | None = None,
        reason: str | None = None,
        ground_truth: Any = None,
        error: ErrorInfo | str | None = None,
        evaluator: ev.Evaluator | None = None,
    ) -> None:
        """Record the verdict on the result, once; without `correct` and `score` it is an error."""
        if not self._told_result or self._told_verdict:
            what = "has a verdict" if self._told_verdict else "has no result yet"
            raise UsageError(f"{self._name} {what}", hint="record one result, then one evaluation")
        if isinstance(error, str):
            error = ErrorInfo(code="eval_error", message=error, phase="evaluate")
        given = Evaluation(
            evaluator=evaluator or self._evaluator,
            correct=correct,
            score=score,
            metrics=metrics or {},
            reason=reason,
            error=error,
            ground_truth=ground_truth,
        )
        self._tell_verdict(evaluation_event(self.task, self.number, given, self._evaluator))

    def _tell_verdict(self, event: ev.EvaluationFinished) -> None:
        self._recorder.record_sync(event)
        self._told_verdict = True
        self._evaluation_error = event.evaluation_error
        self.correct, self._score = event.correct, event.score

    def tool(self, name: str, **fields: Any) -> None:
        """Record a tool that the agent used; `fields` are those of `tool.finished`."""
        self._recorder.record_sync(
            ev.ToolFinished(task=self.task.task_id, attempt=self.number, name=name, **fields)
        )

    # -- the end, for `Recording` ---------------------------------------------------------------

    def end(self, problem: Exception | None) -> None:
        """End the attempt. `problem` is the verifier's if a result was told and no verdict yet."""
        if not self._told_result:
            self._run_error = ErrorInfo(code="no_result", message="the loop recorded no result")
            if problem is not None:
                self._run_error = explain(problem, "run_harness")
            ground_truth = expected(self.task)
            self._tell_result(RunResult(self.task.task_id, ground_truth=ground_truth))
        elif problem is not None and not self._told_verdict:
            error = explain(problem, "evaluate")
            task = self.task.task_id
            self._tell_verdict(failed_evaluation(task, self.number, error, self._evaluator))
        elif problem is not None:
            self._run_error = self._run_error or explain(problem, None)
        refused = self._recorder.refusals(self.task.task_id, self.number)
        self._run_error = self._run_error or refused_error(refused, "run_harness")
        status = attempt_status(self._run_error, self._evaluation_error)
        self._finish(status, self._run_error or self._evaluation_error)

    def cancel(self) -> None:
        """End the attempt as cancelled."""
        self._finish("cancelled", None)

    def _finish(self, status: ev.AttemptStatus, error: ErrorInfo | None) -> None:
        self._recorder.record_sync(
            ev.AttemptFinished(
                task=self.task.task_id,
                attempt=self.number,
                status=status,
                correct=self.correct,
                score=self._score,
                error=error,
            )
        )
        self.status = status

    @property
    def _name(self) -> str:
        return f"attempt {self.number} of task {self.task.task_id!r}"
