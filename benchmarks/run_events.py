"""A run as the runner records it, with nothing between the events: 16 attempts at once.

Each worker takes the next task and, as the runner does, goes on with an attempt when what it told
of it is on disk: 13 acknowledgements for a task that is tried once, 19 for one that is tried again.
"""

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.content import Attempt
from ledger import canonical
from ledger import events as ev
from runtime.recorder import Recorder
from runtime.redact import POLICY_VERSION

WORKERS: Final = 16
_JUDGE: Final = ev.Evaluator(id="airline", version="1")
_BEFORE_A_RESULT: Final[tuple[ev.Phase, ...]] = (
    "prepare_task",
    "start_harness",
    "run_harness",
    "collect_result",
)


async def record_run(recorder: Recorder, attempts: Sequence[Attempt]) -> None:
    """Record a whole run, from its creation to its one terminal event."""
    await recorder.record(*opening(attempts))
    await recorder.record(ev.RunStarted())
    refs = tuple(ev.TaskRef(task_id=one.task, category="airline") for one in attempts)
    await recorder.record(ev.TasksSelected(benchmark="airline", benchmark_version="1", tasks=refs))
    waiting = deque(attempts)

    async def work() -> None:
        while waiting:
            await _Task(recorder, waiting.popleft()).record()

    async with asyncio.TaskGroup() as group:
        for _ in range(WORKERS):
            group.create_task(work())
    await recorder.record(ev.SummaryStarted())
    await recorder.record(ev.RunFinished(status="completed", exit_code=0))


def opening(attempts: Sequence[Attempt]) -> list[ev.AnyEvent]:
    """The events that a run begins with."""
    request = {
        "benchmark": {"id": "airline", "params": {"tasks": len(attempts)}},
        "harness": {"id": "act", "params": {"max_steps": 30}},
        "model": {"id": "model-1", "params": {}, "base_url": "", "api_protocol": ""},
        "execution": {"k": 1, "strategy": "all", "task_concurrency": WORKERS},
        "output": {"run_name": "", "run_id": "run-1"},
    }
    created = ev.RunCreated(
        run_id="run-1",
        request=request,
        persistence_params=request,
        acl_version="0",
        python="3",
        platform="linux",
        redaction_policy=POLICY_VERSION,
    )
    return [created, ev.ReuseFrozen(mode="none")]


class _Task:
    """One task with its one attempt."""

    def __init__(self, recorder: Recorder, content: Attempt) -> None:
        self._recorder = recorder
        self._content = content
        self._at: dict[str, Any] = {"task": content.task, "attempt": 1}
        self._phase: tuple[ev.Phase, float] | None = None

    async def record(self) -> None:
        record, content = self._recorder.record, self._content
        await record(ev.TaskStarted(task=content.task))
        await record(ev.AttemptStarted(**self._at))
        for number, message in enumerate(content.errors, 1):
            await self._try()
            await record(self._retried(number, message))
            self._phase = None
        plan_hash = await self._try()
        await record(
            ev.ResultRecorded(
                **self._at,
                status="completed",
                final_answer=content.answer,
                trajectory=content.trajectory,
                telemetry=content.telemetry,
            )
        )
        await record(self._entering("collect_artifacts"))
        await record(self._entering("evaluate"))
        await record(
            ev.EvaluationFinished(
                **self._at, correct=content.correct, score=content.score, evaluator=_JUDGE
            )
        )
        await record(
            ev.AttemptFinished(
                **self._at,
                status="completed",
                correct=content.correct,
                score=content.score,
                retries=len(content.errors),
                resolved_plan_hash=plan_hash,
            )
        )
        await record(ev.TaskFinished(task=content.task, reason="all_attempts", error=False))

    async def _try(self) -> str:
        """Everything of one try up to its result; the hash of its plan."""
        plan = self._content.plan
        plan_hash = hashlib.sha256(canonical.encode(plan)).hexdigest()
        resolved = ev.PlanResolved(
            **self._at, plan=plan, plan_hash=plan_hash, timeouts={"run": 600.0}
        )
        await self._recorder.record(resolved, self._entering("open_environment"))
        for phase in _BEFORE_A_RESULT:
            await self._recorder.record(self._entering(phase))
        return plan_hash

    def _entering(self, phase: ev.Phase) -> ev.PhaseEntered:
        now = time.monotonic()
        previous, began = self._phase or (None, now)
        self._phase = phase, now
        took = None if previous is None else round((now - began) * 1000, 3)
        return ev.PhaseEntered(**self._at, phase=phase, previous=previous, duration_ms=took)

    def _retried(self, number: int, message: str) -> ev.AttemptRetried:
        return ev.AttemptRetried(
            **self._at,
            retry=number,
            max_retries=2,
            retry_delay_seconds=0.0,
            stage="run_harness",
            scope="attempt",
            matched_pattern="connection",
            error=ev.ErrorInfo(code="APIError", message=message, phase="run_harness"),
        )
