"""Verdicts again: the benchmark's own evaluator over the answers that a ledger holds.

The ledger is only read. A verdict that differs is named; an attempt that cannot be judged again
on equal terms is not comparable, and named with the reason.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any, Final

from ledger import canonical
from ledger.errors import AclError, LedgerDamaged, RunNotFound, UsageError
from ledger.events import EvaluationFinished, Evaluator, PayloadErased
from ledger.fold import fold
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import LedgerView
from runtime.containment import contained, named
from runtime.contracts import Benchmark, Task
from runtime.harvest import evaluation_event
from runtime.metrics.comparison import Difference, same
from runtime.replay import measure
from runtime.results import MetricResult
from runtime.selection import check_ids
from runtime.stages import StageTimeout, explain, stage
from runtime.stored_attempt import StoredAttempt, stored_attempt, stored_request

REPLACED: Final = "attempts with replacements are not comparable"
ERASED: Final = "erased"
NO_VERDICT: Final = "no verdict was recorded"
NO_RESULT: Final = "no result was recorded"
TASK_MISSING: Final = "the benchmark has no such task"
TASK_CHANGED: Final = "the task changed"
FAILED: Final = "the evaluator failed"
MIXED: Final = "mixed"

OnJudged = Callable[[int, int], None]
"""Called with how many attempts are done, and how many there are."""

_GRACE: Final = 5.0
"""Seconds that an evaluator has to stop when its time is over."""


@dataclass(frozen=True, slots=True)
class Changed:
    """An attempt whose verdict differs from the recorded one, with who gave which."""

    task: str
    attempt: int
    differences: tuple[Difference, ...]
    recorded_by: str
    judged_by: str


@dataclass(frozen=True, slots=True)
class NotComparable:
    """An attempt whose verdict was not compared, by the reason; `message` tells more."""

    task: str
    attempt: int
    reason: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Reevaluation:
    """What judging again found.

    `equal` counts attempts. `rejudged` are attempts that another evaluator (another version, or
    other code of the same) judged now: a difference there may be its doing. `verdicts_by` counts
    whose verdicts `metrics` is made of: the new ones, and where there is none the recorded one.
    """

    attempts: int
    equal: int
    different: tuple[Changed, ...]
    not_comparable: tuple[NotComparable, ...]
    rejudged: int
    recorded_by: Mapping[str, int]
    verdicts_by: Mapping[str, int]
    metrics: MetricResult

    @property
    def compared(self) -> int:
        """How many verdicts were compared."""
        return self.equal + len(self.different)

    @property
    def verdicts_equal(self) -> bool | None:
        """Whether no compared verdict differs; None where none could be compared."""
        return not self.different if self.compared else None

    @property
    def reasons(self) -> dict[str, int]:
        """How many attempts were not comparable for which reason."""
        return dict(sorted(Counter(one.reason for one in self.not_comparable).items()))

    @property
    def evaluator(self) -> str | None:
        """Who gave the verdicts that the metrics are made of: one evaluator, or `mixed`."""
        judges = list(self.verdicts_by)
        return MIXED if len(judges) > 1 else next(iter(judges), None)

    def document(self) -> dict[str, Any]:
        """The same as values that `canonical.encode` takes."""
        return {
            "equal": self.verdicts_equal,
            "counts": {
                "attempts": self.attempts,
                "compared": self.compared,
                "equal": self.equal,
                "different": len(self.different),
                "not_comparable": len(self.not_comparable),
                "by_another_evaluator": self.rejudged,
            },
            "reasons": self.reasons,
            "different": [asdict(one) for one in self.different],
            "not_comparable": [asdict(one) for one in self.not_comparable],
            "evaluator": self.evaluator,
            "recorded_by": dict(self.recorded_by),
            "verdicts_by": dict(self.verdicts_by),
            "metrics": self.metrics.model_dump(mode="python"),
        }


async def reevaluate(
    view: LedgerView,
    benchmark: Benchmark,
    *,
    at: int | None = None,
    concurrency: int = 4,
    on_judged: OnJudged | None = None,
) -> Reevaluation:
    """Judge every recorded result of a run again, as of event `at` (the last by default).

    `benchmark` is the run's own; at most `concurrency` evaluations run at once. Raises RunNotFound
    for an event that is not there or a ledger without a run, UsageError where the benchmark's
    tasks cannot be loaded, LedgerDamaged where the ledger is.
    """
    if at is not None and not 0 <= at < view.size:
        raise RunNotFound(f"there is no event {at}: the ledger has {view.size} events")
    events = view.events()
    state = fold(events if at is None else takewhile(lambda event: event.seq <= at, events))
    work = _Judging(view, state, benchmark, _tasks(state, benchmark), on_judged)
    work.erased |= state.erased | _erased_since(view, state.size)
    workers = [asyncio.create_task(work.take_turns()) for _ in range(max(1, concurrency))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return work.found()


def _tasks(state: RunState, benchmark: Benchmark) -> dict[str, Task]:
    """The tasks of the run as the benchmark has them now, by id."""
    params = dict(stored_request(state).benchmark.params)
    try:
        with contained():
            loaded = list(benchmark.load_tasks(params))
            chosen = list(benchmark.select_tasks(loaded, params))
        check_ids(benchmark.id, loaded)
        check_ids(benchmark.id, chosen)
    except AclError:
        raise
    except Exception as error:  # a plug-in may raise anything
        why = f"the tasks of {benchmark.id} cannot be loaded: {named(error)}"
        raise UsageError(why) from error
    # What the selection made of a task is what was judged.
    return {task.task_id: task for task in (*loaded, *chosen)}


def _erased_since(view: LedgerView, since: int) -> set[int]:
    """What later events say was erased: it is gone from the prefix as well."""
    later = (recorded.event for recorded in view.events(since=since))
    return {seq for event in later if isinstance(event, PayloadErased) for seq in event.sequence}


@dataclass(slots=True)
class _Judging:
    """Judges the attempts of `state`, whose verdicts it replaces by the new ones."""

    view: LedgerView
    state: RunState
    benchmark: Benchmark
    tasks: Mapping[str, Task]
    on_judged: OnJudged | None
    erased: set[int] = field(default_factory=set)
    equal: int = 0
    rejudged: int = 0
    done: int = 0
    different: list[Changed] = field(default_factory=list)
    not_comparable: list[NotComparable] = field(default_factory=list)
    recorded_by: Counter[str] = field(default_factory=Counter)
    verdicts_by: Counter[str] = field(default_factory=Counter)
    _queue: Iterator[tuple[TaskState, AttemptState]] = field(init=False)
    _total: int = field(init=False)

    def __post_init__(self) -> None:
        self._queue = self.state.attempts()
        self._total = sum(len(task.attempts) for task in self.state.tasks.values())

    async def take_turns(self) -> None:
        """Judge one attempt after another, as long as there are any that nobody took."""
        for task, attempt in self._queue:
            await self._judge(task, attempt)
            self.done += 1
            if self.on_judged is not None:
                self.on_judged(self.done, self._total)

    async def _judge(self, task: TaskState, attempt: AttemptState) -> None:
        stored = self._why_not(task, attempt) or self._stored(task, attempt)
        if isinstance(stored, str):
            self._keep(task, attempt, stored)
            return
        now = await self._verdict(self.tasks[task.id], attempt.number, stored)
        if now.correct is None and now.score is None:
            error = now.evaluation_error
            words = None if error is None else f"{error.code}: {error.message}"
            self._keep(task, attempt, FAILED, words)
        else:
            self._compare(task, attempt, stored.verdict, now)

    def _why_not(self, task: TaskState, attempt: AttemptState) -> str | None:
        """Why an attempt is not even to be read."""
        parts = (attempt.result, attempt.evaluation, attempt.artifacts)
        if any(seq in self.erased for seq in parts):
            return ERASED
        if attempt.result is None:
            return NO_RESULT
        if not attempt.verdict:
            return NO_VERDICT
        known = self.tasks.get(task.id)
        if known is None:
            return TASK_MISSING
        if self.state.any_task and task.checksum is None:
            return ERASED
        return None if known.checksum == task.checksum else TASK_CHANGED

    def _stored(self, task: TaskState, attempt: AttemptState) -> StoredAttempt | str:
        """The attempt as it is stored, or why it is not comparable."""
        try:
            stored = stored_attempt(self.view, self.state, task.id, attempt)
        except RunNotFound as error:
            where = f"task {task.id}, attempt {attempt.number}"
            raise LedgerDamaged(f"{where}: {error.message}", seq=attempt.result) from error
        if stored is None:
            return ERASED
        return REPLACED if stored.replaced else stored

    async def _verdict(self, task: Task, number: int, stored: StoredAttempt) -> EvaluationFinished:
        default = Evaluator(id=self.benchmark.id, version=self.benchmark.version)
        try:
            evaluating = partial(self.benchmark.evaluate, task, stored.result, stored.context)
            given = await stage(evaluating, timeout=stored.time_limit, grace=_GRACE)
            return evaluation_event(task, number, given, default)
        except StageTimeout as timeout:
            error = explain(timeout, "evaluate")
        except Exception as problem:  # noqa: BLE001 - plug-ins may raise anything
            error = explain(problem, "evaluate")
        return EvaluationFinished(
            task=task.task_id, attempt=number, evaluation_error=error, evaluator=default
        )

    def _compare(
        self,
        task: TaskState,
        attempt: AttemptState,
        recorded: EvaluationFinished,
        now: EvaluationFinished,
    ) -> None:
        before, after = _named(recorded.evaluator), _named(now.evaluator)
        self.recorded_by[before] += 1
        self.verdicts_by[after] += 1
        self.rejudged += before != after
        differences = compare_verdicts(recorded, now)
        if differences:
            changed = Changed(task.id, attempt.number, differences, before, after)
            self.different.append(changed)
        else:
            self.equal += 1
        attempt.correct, attempt.score, attempt.metrics = now.correct, now.score, now.metrics
        attempt.evaluator = (now.evaluator.id, now.evaluator.version)

    def _keep(
        self, task: TaskState, attempt: AttemptState, reason: str, message: str | None = None
    ) -> None:
        """Leave the recorded verdict, if there is one, where it is."""
        seq = attempt.evaluation if attempt.verdict else None
        event = None if seq is None else self.view.event(seq).event
        if isinstance(event, EvaluationFinished):
            name = _named(event.evaluator)
            self.recorded_by[name] += 1
            self.verdicts_by[name] += 1
        self.not_comparable.append(NotComparable(task.id, attempt.number, reason, message))

    def found(self) -> Reevaluation:
        """What was found, in task order."""
        place = {task.id: task.index for task in self.state.tasks.values()}

        def order(one: Changed | NotComparable) -> tuple[int, int]:
            return place[one.task], one.attempt

        return Reevaluation(
            attempts=self._total,
            equal=self.equal,
            different=tuple(sorted(self.different, key=order)),
            not_comparable=tuple(sorted(self.not_comparable, key=order)),
            rejudged=self.rejudged,
            recorded_by=dict(sorted(self.recorded_by.items())),
            verdicts_by=dict(sorted(self.verdicts_by.items())),
            metrics=measure(self.state, self.benchmark),
        )


def compare_verdicts(
    recorded: EvaluationFinished, now: EvaluationFinished
) -> tuple[Difference, ...]:
    """Name each field in which two verdicts differ, floats beyond 1e-9.

    Compared are `correct`, `score`, what was measured, and the status of the tests; the latter
    not where redaction replaced something in the recorded verdict. Words are not compared.
    """
    pairs: list[tuple[str, Any, Any]] = [
        ("correct", recorded.correct, now.correct),
        ("score", recorded.score, now.score),
        ("metrics", recorded.metrics, now.metrics),
    ]
    if not recorded.redactions:
        pairs.append(("tests_status", recorded.tests_status, now.tests_status))
    return tuple(found for pair in pairs for found in _differences(*pair))


def _differences(name: str, recorded: Any, now: Any) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in sorted({*recorded, *now}):
            yield from _differences(f"{name}/{key}", recorded.get(key), now.get(key))
    elif not _equal(recorded, now):
        yield Difference(name, recorded, now)


def _equal(recorded: Any, now: Any) -> bool:
    # Encoded, lists and tuples are equal, and NaN is NaN.
    return same(recorded, now) or canonical.encode(recorded) == canonical.encode(now)


def _named(judge: Evaluator) -> str:
    code = f" ({judge.sha256[:12]})" if judge.sha256 else ""
    return f"{judge.id} {judge.version}{code}"
