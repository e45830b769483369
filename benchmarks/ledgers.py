"""Ledgers to read: realistic ones, and ones of many small events."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.content import Attempt, attempts
from ledger import events as ev
from ledger import fold
from ledger.store import Ledger
from runtime.metrics import aggregate
from runtime.results import MetricResult

CONCURRENT = 16
SMALL_EVENTS = 8
"""Events of one task of a small ledger: it has one attempt."""
_BATCH = 1024
_JUDGE = ev.Evaluator(id="airline", version="1")

Events = Iterator[ev.AnyEvent]


def realistic(path: Path, tasks: int) -> Path:
    """Write a finished run of `tasks` tasks with trajectories of 20 kB, 16 at a time."""
    plan = [f"airline-{number:06d}" for number in range(tasks)]
    return _write(path, plan, _in_turns(_whole(one) for one in attempts(tasks)), batch=CONCURRENT)


def small(path: Path, tasks: int) -> Path:
    """Write a finished run of `tasks` tasks with one attempt, `SMALL_EVENTS` short events, each."""
    plan = [f"task-{number:07d}" for number in range(tasks)]
    work = (_short(task, number) for number, task in enumerate(plan))
    return _write(path, plan, _in_turns(work), batch=_BATCH)


def _write(path: Path, plan: list[str], work: Events, *, batch: int) -> Path:
    path.mkdir(parents=True)
    with Ledger.create(path) as ledger:
        ledger.append(_created(), ev.RunStarted())
        for first in range(0, len(plan), 10_000):
            refs = tuple(ev.TaskRef(task_id=task) for task in plan[first : first + 10_000])
            ledger.append(ev.TasksSelected(benchmark="airline", tasks=refs))
        while some := list(islice(work, batch)):
            ledger.append(*some)
        ledger.append(ev.SummaryStarted())
        with ledger.view() as view:
            state = fold(view.events())
            metrics, uses = aggregate(state)
        ledger.append(_computed(ledger, metrics, uses))
        ledger.append(ev.RunFinished(status="completed", exit_code=0))
        ledger.checkpoint()
    return path


def _created() -> ev.RunCreated:
    return ev.RunCreated(
        run_id="reading",
        request={
            "benchmark": {"id": "airline", "params": {}},
            "harness": {"id": "tools", "params": {}},
            "model": {"id": "model-1", "params": {}, "base_url": "", "api_protocol": ""},
            "execution": {"k": 1, "strategy": "all"},
            "output": {"run_name": "", "run_id": "reading"},
        },
        persistence_params={},
        acl_version="0",
        python="3",
        platform="linux",
        redaction_policy="1",
    )


def _computed(
    ledger: Ledger, metrics: MetricResult, uses: tuple[ev.ReducerUse, ...]
) -> ev.MetricsComputed:
    return ev.MetricsComputed(
        metrics=dict(metrics.metrics),
        counts=metrics.counts.model_dump(),
        details=metrics.details,
        extra=metrics.extra,
        reducers=uses,
        size=ledger.size,
        root=ledger.root().hex(),
        source="evaluation",
    )


def _in_turns(tasks: Iterator[Events]) -> Events:
    """The events of all, as if so many tasks as are concurrent took turns."""
    running = list(islice(tasks, CONCURRENT))
    while running:
        for slot, one in enumerate(running):
            event = next(one, None)
            if event is not None:
                yield event
            elif (following := next(tasks, None)) is not None:
                running[slot] = following
            else:
                del running[slot]
                break


def _whole(one: Attempt) -> Events:
    task = one.task
    yield ev.TaskStarted(task=task)
    yield ev.AttemptStarted(task=task, attempt=1)
    yield ev.PlanResolved(task=task, attempt=1, plan=one.plan, plan_hash="0" * 64)
    for retry, message in enumerate(one.errors, start=1):
        yield ev.AttemptRetried(
            task=task,
            attempt=1,
            retry=retry,
            max_retries=3,
            retry_delay_seconds=1.0,
            stage="run",
            scope="attempt",
            error=ev.ErrorInfo(code="connection", message=message),
        )
        yield ev.PlanResolved(task=task, attempt=1, plan=one.plan, plan_hash="0" * 64)
    yield ev.PhaseEntered(task=task, attempt=1, phase="run_harness")
    yield ev.ResultRecorded(
        task=task,
        attempt=1,
        status="completed",
        final_answer=one.answer,
        trajectory=one.trajectory,
        telemetry=one.telemetry,
    )
    yield from _judged(task, one.correct, one.score, len(one.errors))


def _short(task: str, number: int) -> Events:
    correct = number % 3 == 0
    yield ev.TaskStarted(task=task)
    yield ev.AttemptStarted(task=task, attempt=1)
    yield ev.PlanResolved(task=task, attempt=1, plan={"max_steps": 30}, plan_hash="0" * 64)
    yield ev.PhaseEntered(task=task, attempt=1, phase="run_harness")
    yield ev.ResultRecorded(task=task, attempt=1, status="completed", final_answer=str(number))
    yield from _judged(task, correct, float(correct), 0)


def _judged(task: str, correct: bool, score: float, retries: int) -> Events:
    yield ev.EvaluationFinished(
        task=task, attempt=1, correct=correct, score=score, evaluator=_JUDGE
    )
    yield ev.AttemptFinished(
        task=task, attempt=1, status="completed", correct=correct, score=score, retries=retries
    )
    yield ev.TaskFinished(task=task, reason="all_attempts", error=False)
