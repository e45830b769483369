"""The states of run, task and attempt, and what is known of an event whose body was erased.

All are immutable. What depends on erased content is unknown: None, or `UNKNOWN` for a verdict.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Protocol

from ledger import events as ev

Stage = Literal["none", "created", "preparing", "running", "summarizing", "terminal", "registry"]
TaskStage = Literal["pending", "reusing", "running", "over"]
Key = tuple[str, int]
Verdict = tuple[bool | None, float | None]
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Unknown:
    """An event whose body was erased: its header tells what it was of, and nothing else is known.

    A rule accepts it where some content would have been legal, and whatever depends on its content
    afterwards is accepted too.
    """

    kind: type[ev.AnyEvent]
    task: str | None
    attempt: int | None

    @property
    def type(self) -> str:
        """The name of the event type."""
        return ev.TYPE_NAMES[self.kind.code]


class RunStage(NamedTuple):
    """Where the run stands; `any_task`: a selection was erased, so any task can be one of it."""

    stage: Stage = "none"
    unfinished: int = 0
    sealed: bool = False
    any_task: bool = False


class TaskStep(NamedTuple):
    """Where a task stands; `error` is None where only an attempt whose end is unknown can tell."""

    stage: TaskStage = "pending"
    error: bool | None = False
    open_attempts: int = 0
    attempts: int = 0


class AttemptStep(NamedTuple):
    """Where an attempt stands.

    `planned` and `result` are None once a retry was erased that may have begun anew, or not; `rank`
    is then the least that it can be. `calls_known` is False once an event of a call was erased.
    """

    over: bool = False
    planned: bool | None = False
    announced: bool = False  # by attempt.reused; the copied attempt.started comes next
    reusing: bool = False  # copies are coming in, up to the result
    reused: bool = False
    rank: int = -1
    retry: int = 0
    result: bool | None = False
    verdict: Verdict | Literal["unknown"] | None = None
    calls: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    calls_known: bool = True


@lru_cache(maxsize=64)
def task_but(step: TaskStep, **changes: Any) -> TaskStep:
    """The step with these changes: one object for the many tasks that stand there."""
    return step._replace(**changes)


@lru_cache(maxsize=1024)
def attempt_but(step: AttemptStep, **changes: Any) -> AttemptStep:
    """The step with these changes: one object for the many attempts that stand there."""
    return step._replace(**changes)


@dataclass(slots=True)
class Pending:
    """What an admitted batch would change; hand it to `Machine.commit` once it is stored."""

    run: RunStage
    tasks: dict[str, TaskStep] = field(default_factory=dict)
    attempts: dict[Key, AttemptStep] = field(default_factory=dict)

    def begin_anew(self, run: RunStage) -> None:
        """Change nothing any more, where the run stands at `run`."""
        self.run = run
        self.tasks.clear()
        self.attempts.clear()


class States(Protocol):
    """The committed states that a step reads through to."""

    def task(self, task_id: str) -> TaskStep | None:
        """The state of a task, or None if it was never selected."""

    def attempt(self, key: Key) -> AttemptStep | None:
        """The state of an attempt, or None if it was never started."""
