"""Two runs side by side: verdicts task by task, metrics with their intervals, what was asked for.

Pure: from two states to what differs between them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from ledger.state import Counts, RunState, Spend, TaskState
from runtime.metrics.comparison import same
from runtime.metrics.observations import counts_are_erased
from runtime.replay import measure

Direction = Literal["gained", "lost", "better", "worse", "other"]

DIRECTIONS: Final[tuple[Direction, ...]] = ("gained", "lost", "better", "worse", "other")
_RULES: Final = ("estimator", "policy", "version", "k")
_ASIDE: Final = frozenset({"output.run_id"})


@dataclass(frozen=True, slots=True)
class TaskVerdict:
    """A task as a run judged it; `solved` of `judged` attempts were right."""

    outcome: str
    correct: bool | None
    score: float | None
    solved: int
    judged: int


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A task whose verdict is not the same in both runs.

    gained: solved in the second only; lost: in the first only; better and worse: by the score, or
    by the share of right attempts; other: no better and no worse, an error instead of a wrong
    answer, say. `input_changed`: it is not the same task in both.
    """

    task: str
    category: str | None
    direction: Direction
    before: TaskVerdict
    after: TaskVerdict
    input_changed: bool


@dataclass(frozen=True, slots=True)
class MetricSide:
    """A metric in one run; `value` is None where `reason` says why."""

    value: float | None
    denominator: float | None = None
    interval: Mapping[str, Any] | None = None
    reason: str | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MetricPair:
    """One metric in both runs; `rules_differ` names the rules that make it two metrics."""

    name: str
    before: MetricSide | None
    after: MetricSide | None
    change: float | None
    rules_differ: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """Something that was asked for or used, and differs; None stands for nothing."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class RunSide:
    """One of the two runs. `spent` is what this run spent, `spend_with_reuse` what it stands on."""

    run_id: str
    status: str
    ledger_id: str
    size: int
    root: str
    counts: Counts
    spent: Spend
    spend_with_reuse: Spend


@dataclass(frozen=True, slots=True)
class RunComparison:
    """What `compare_runs` found; tasks and metrics in the order of the first run.

    `shared` counts tasks for which both runs hold the very same attempts: one reused the other,
    or both a third.
    """

    before: RunSide
    after: RunSide
    changes: tuple[TaskChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    equal_tasks: int
    shared: int
    inputs_changed: tuple[str, ...]
    metrics: tuple[MetricPair, ...]
    settings: tuple[Setting, ...]

    @property
    def equal(self) -> bool:
        """True if both runs hold the same tasks with the same verdicts."""
        return not (self.changes or self.only_before or self.only_after)

    @property
    def directions(self) -> dict[str, int]:
        """How many tasks changed in which direction."""
        counted = {d: sum(c.direction == d for c in self.changes) for d in DIRECTIONS}
        return {direction: number for direction, number in counted.items() if number}

    def document(self) -> dict[str, Any]:
        """The same as JSON values, but for settings that JSON has no word for."""
        return {"equal": self.equal, "directions": self.directions, **asdict(self)}


def compare_runs(before: RunState, after: RunState) -> RunComparison:
    """Compare two runs; raises RunNotFound where one of the states is of no run.

    Metrics are computed from each state by the rules that its own run recorded.
    """
    both = [
        (task, after.tasks[task.id]) for task in before.tasks.values() if task.id in after.tasks
    ]
    changes = tuple(change for a, b in both if (change := _change(a, b)) is not None)
    return RunComparison(
        before=_side(before),
        after=_side(after),
        changes=changes,
        only_before=tuple(task for task in before.tasks if task not in after.tasks),
        only_after=tuple(task for task in after.tasks if task not in before.tasks),
        equal_tasks=len(both) - len(changes),
        shared=sum(_shared(a, b) for a, b in both),
        inputs_changed=tuple(a.id for a, b in both if _input_changed(a, b)),
        metrics=tuple(_pairs(_metrics(before), _metrics(after))),
        settings=settings_that_differ(before, after),
    )


def _side(state: RunState) -> RunSide:
    own, everything = Spend(), Spend()
    for _, attempt in state.attempts():
        for spend in (attempt.spend, attempt.discarded):
            everything.add(spend)
        for spend in attempt.own_spend():
            own.add(spend)
    return RunSide(
        run_id=state.run_id,
        status=state.status,
        ledger_id=state.ledger_id,
        size=state.size,
        root=state.root.hex(),
        counts=state.counts(),
        spent=own,
        spend_with_reuse=everything,
    )


# -- verdicts ----------------------------------------------------------------------------------


def _verdict(task: TaskState) -> TaskVerdict:
    judged = [a.correct for a in task.attempts.values() if a.correct is not None]
    outcome: str = task.bin
    if task.correct is not None:
        outcome = "correct" if task.correct else "wrong"
    return TaskVerdict(outcome, task.correct, task.score, sum(judged), len(judged))


def _change(a: TaskState, b: TaskState) -> TaskChange | None:
    before, after = _verdict(a), _verdict(b)
    direction = _direction(before, after)
    if direction is None:
        return None
    return TaskChange(a.id, a.category, direction, before, after, _input_changed(a, b))


def _direction(before: TaskVerdict, after: TaskVerdict) -> Direction | None:
    """Where a verdict went; None if it stayed."""
    if bool(before.correct) != bool(after.correct):
        return "gained" if after.correct else "lost"
    if before.outcome != after.outcome:
        return "other"
    for x, y in ((before.score, after.score), (_share(before), _share(after))):
        if not same(x, y):
            if x is None or y is None:
                return "other"
            return "better" if y > x else "worse"
    return None


def _share(verdict: TaskVerdict) -> float | None:
    return verdict.solved / verdict.judged if verdict.judged else None


def _input_changed(a: TaskState, b: TaskState) -> bool:
    return None not in (a.checksum, b.checksum) and a.checksum != b.checksum


def _shared(a: TaskState, b: TaskState) -> bool:
    ours, theirs = ({x.identity for x in task.attempts.values()} for task in (a, b))
    return bool(ours) and None not in ours and ours == theirs


# -- metrics -----------------------------------------------------------------------------------


def _metrics(state: RunState) -> dict[str, MetricSide]:
    """What the state gives, and what the benchmark's own plug-in added when it was recorded."""
    found = measure(state)
    unavailable = found.extra.get("unavailable", {})
    sides = {
        name: _metric(found.metrics.get(name), detail, unavailable.get(name))
        for name, detail in found.details.items()
    }
    recorded = state.metrics[-1][2] if state.metrics else None
    if recorded is not None and not counts_are_erased(state):
        for name, value in recorded.metrics.items():
            detail = recorded.details.get(name)
            sides.setdefault(name, _metric(value, detail if isinstance(detail, dict) else {}, None))
    return sides


def _metric(value: float | None, detail: Mapping[str, Any], reason: str | None) -> MetricSide:
    interval = detail.get("interval")
    return MetricSide(
        value=value,
        denominator=detail.get("denominator"),
        interval=interval if isinstance(interval, Mapping) else None,
        reason=reason,
        rules={name: detail[name] for name in _RULES if detail.get(name) is not None},
    )


def _pairs(
    before: Mapping[str, MetricSide], after: Mapping[str, MetricSide]
) -> Iterator[MetricPair]:
    for name in dict.fromkeys((*before, *after)):
        a, b = before.get(name), after.get(name)
        change: float | None = None
        differ: tuple[str, ...] = ()
        if a is not None and b is not None:
            differ = tuple(r for r in _RULES if a.rules.get(r) != b.rules.get(r))
            if a.value is not None and b.value is not None:
                change = b.value - a.value
        yield MetricPair(name, a, b, change, differ)


# -- what was asked for ------------------------------------------------------------------------


def settings_that_differ(before: RunState, after: RunState) -> tuple[Setting, ...]:
    """Each path of the request that differs, then what the runs were made with.

    The run id is set aside.
    """
    asked, used = request_differences(before.request, after.request), []
    for name, a, b in zip(_USED, _used(before), _used(after), strict=True):
        if a != b:
            used.append(Setting(name, a, b))
    return (*(s for s in asked if s.path not in _ASIDE), *used)


def request_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Setting]:
    """Every path in which two requests differ, in order; lists are compared as a whole."""
    return sorted(_walk("", before, after), key=lambda setting: setting.path)


_USED: Final = ("benchmark_version", "evaluator", "acl_version", "python", "platform")


def _used(state: RunState) -> tuple[str | None, ...]:
    judges = {" ".join(a.evaluator) for _, a in state.attempts() if a.evaluator}
    made = state.creation
    return (
        state.benchmark_version,
        ", ".join(sorted(judges)) or None,
        made.acl_version,
        made.python,
        made.platform,
    )


def _walk(path: str, before: Any, after: Any) -> Iterator[Setting]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {*before, *after}:
            yield from _walk(f"{path}.{key}" if path else key, before.get(key), after.get(key))
    elif type(before) is not type(after) or before != after:
        yield Setting(path, before, after)
