"""RunState: what a prefix of events amounts to. Every view is computed from it, none stores it.

Per attempt only small values are kept; large ones are named by the sequence number of the event
that holds them, and fetched when a view writes them out.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, Literal, get_args

from ledger import events as ev
from ledger.attempt_state import AttemptState, Origin, Spend
from ledger.errors import RunNotFound
from ledger.packed import Field, Layout, Packed, Rare, rare_or_none
from ledger.tlog import Frontier
from ledger.view import spell_time

TaskStage = Literal["pending", "running", "done", "error", "cancelled"]
Bin = Literal["evaluated", "error", "skipped", "missing"]

_NO_ATTEMPTS: Final[dict[int, AttemptState]] = {}
_REMEMBERED: Final = 2**14
"""Of how many events at the end it is remembered of which tasks they are."""


_layout: Final = Layout()


class TaskState(Packed):
    """One selected task and its attempts by number.

    `stopped_early`: its later attempts were not made since one was correct. `origin` is where a
    reused task was copied from, `claim` where an import was told that it was reused from, and
    `source_checksum` that of its input there, where it was another one.
    """

    __slots__ = ("_attempts", "category", "checksum", "id", "metadata")

    id: str
    category: str | None
    checksum: str | None
    metadata: dict[str, Any]
    # The one attempt of a task that has but one, since most have.
    _attempts: AttemptState | dict[int, AttemptState]

    index = _layout.count()
    first = _layout.number()
    last = _layout.number()
    finished_address = _layout.digest()
    stage: Field[TaskStage] = _layout.word(*get_args(TaskStage))
    stopped_early: Field[bool] = _layout.word(False, True)
    origin_erased: Field[bool] = _layout.word(False, True)

    origin: Rare[Origin | None] = rare_or_none()
    claim: Rare[ev.Claim | None] = rare_or_none()
    source_checksum: Rare[str | None] = rare_or_none()
    erased: Rare[list[int]] = Rare(list)
    """Its own events whose body is gone, without those of its attempts."""

    def __init__(
        self,
        id: str,  # noqa: A002 - the name of the field
        index: int,
        category: str | None,
        checksum: str | None,
        metadata: dict[str, Any],
        **fields: Any,
    ) -> None:
        self.id = id
        self.category = category
        self.checksum = checksum
        self.metadata = metadata
        self.fixed = _layout.blank
        self.rare = None
        self._attempts = _NO_ATTEMPTS
        self.index = index
        for name, value in fields.items():
            setattr(self, name, value)

    def plain(self) -> tuple[object, ...]:
        """What two equal tasks have in common."""
        own = (self.id, self.category, self.checksum, self.metadata, self.attempts)
        return own + super().plain()

    @property
    def attempts(self) -> dict[int, AttemptState]:
        """The attempts by number, in the order in which they began; the dictionary is a copy."""
        held = self._attempts
        return {held.number: held} if isinstance(held, AttemptState) else dict(held)

    @attempts.setter
    def attempts(self, attempts: dict[int, AttemptState]) -> None:
        self._attempts = dict(attempts)

    def attempt(self, number: int) -> AttemptState:
        """The attempt of this number; it begins here if there was none."""
        held = self._attempts
        if isinstance(held, AttemptState):
            if held.number == number:
                return held
            held = self._attempts = {held.number: held}
        found = held.get(number)
        if found is None:
            found = AttemptState(number)
            self._attempts = {**held, number: found} if held else found
        return found

    def in_order(self) -> list[AttemptState]:
        """The attempts by number."""
        held = self._attempts
        if isinstance(held, AttemptState):
            return [held]
        return [held[number] for number in sorted(held)]

    @property
    def reused(self) -> bool:
        """True if the task ran in another run, by its copies or as an import was told."""
        return self.origin is not None or self.claim is not None or self.origin_erased

    @property
    def reused_attempts(self) -> list[AttemptState]:
        """Attempts that ran in another run, in a task that was not reused whole, by number."""
        if self.reused:
            return []
        return [attempt for attempt in self.in_order() if attempt.reused]

    @property
    def has_detail(self) -> bool:
        """True once the task has a detail record: when it finished. Cancelled tasks have none."""
        return self.stage in ("done", "error")

    @property
    def has_error(self) -> bool:
        """True if the record of any attempt holds a run or evaluation error."""
        return any(attempt.error for attempt in self.attempts.values())

    @property
    def correct(self) -> bool | None:
        """Any attempt correct; None when no attempt has a truth value."""
        verdicts = [a.correct for a in self.attempts.values() if a.correct is not None]
        return any(verdicts) if verdicts else None

    @property
    def solved_at(self) -> int | None:
        """The number of the first correct attempt."""
        return min((n for n, a in self.attempts.items() if a.correct), default=None)

    @property
    def score(self) -> float | None:
        """The score of the first correct attempt, else the best score, else None."""
        if self.solved_at is not None:
            return self.attempts[self.solved_at].score
        return max((a.score for a in self.attempts.values() if a.score is not None), default=None)

    def has_attempts_of(self, k: int, strategy: str) -> bool:
        """Whether its attempts are those that a run with this k and strategy makes."""
        made = len(self.attempts)
        if strategy == "stop_on_correct" and self.solved_at is not None:
            return made == self.solved_at <= k
        return made == k

    @property
    def retry_count(self) -> int:
        """Discarded tries over all attempts."""
        return sum(attempt.retry_count for attempt in self.attempts.values())

    @property
    def bin(self) -> Bin:
        """The one of the four counts that this task is counted in (their sum is the total)."""
        attempts = self.attempts.values()
        if any(attempt.verdict for attempt in attempts):
            return "evaluated"
        if any(attempt.error for attempt in attempts):
            return "error"
        if attempts and all(attempt.status == "skipped" for attempt in attempts):
            return "skipped"
        return "missing"


@dataclass(slots=True)
class Counts:
    """How many tasks there are of which kind; total = evaluated + error + skipped + missing.

    `reused_attempts` are those that ran in another run and came alone, for a verdict of this one.
    """

    total: int = 0
    evaluated: int = 0
    error: int = 0
    skipped: int = 0
    missing: int = 0
    correct: int = 0
    incorrect: int = 0
    reused: int = 0
    reused_attempts: int = 0
    attempts: int = 0
    retries: int = 0
    files_error: int = 0

    def add(self, task: TaskState) -> None:
        """Count one more task."""
        self.total += 1
        setattr(self, task.bin, getattr(self, task.bin) + 1)
        if task.correct is not None:
            self.correct += task.correct
            self.incorrect += not task.correct
        self.reused += task.reused
        self.reused_attempts += len(task.reused_attempts)
        self.attempts += len(task.attempts)
        self.retries += task.retry_count
        self.files_error += task.has_detail and task.has_error


@dataclass(slots=True)
class RunState:
    """The state of a run after a prefix of its events; only `fold` moves it.

    `frontier` is the Merkle tree of exactly the events folded, so `size` and `root` name the
    prefix that every view of this state was computed from. `gaps` are the events whose body is
    gone, `lost_types` their types; `erased` are the events that an erasure among those folded
    names, also for a large value alone. `any_task`: a selection of tasks is gone, so tasks are
    known once an event is of them.
    """

    frontier: Frontier = field(default_factory=Frontier)
    ledger_id: str = ""
    created: ev.RunCreated | None = None
    imported: ev.RunImported | None = None
    frozen: ev.ReuseFrozen | None = None
    benchmark: str | None = None
    benchmark_version: str | None = None
    tasks: dict[str, TaskState] = field(default_factory=dict)
    metrics: list[tuple[int, str, ev.MetricsComputed]] = field(default_factory=list)
    originals: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    annotations: list[int] = field(default_factory=list)
    extensions: list[int] = field(default_factory=list)
    erasures: list[int] = field(default_factory=list)
    erased: set[int] = field(default_factory=set)
    gaps: list[int] = field(default_factory=list)
    lost_types: set[str] = field(default_factory=set)
    any_task: bool = False
    registry: list[int] = field(default_factory=list)
    interrupts: list[str] = field(default_factory=list)
    finished: ev.RunFinished | None = None
    sealed_size: int | None = None
    redactions: int = 0
    late_calls: int = 0
    created_at: str | None = None
    finished_at: str | None = None
    last_ns: int | None = None
    """When the last event was recorded: nanoseconds since 1970, UTC."""
    recent: deque[str | None] = field(default_factory=partial(deque, maxlen=_REMEMBERED))
    """Of which tasks the last events are, the latest last; None for events of no task."""

    @property
    def size(self) -> int:
        """Number of events folded."""
        return self.frontier.size

    @property
    def root(self) -> bytes:
        """Root of the tree over the events folded, 32 bytes."""
        return self.frontier.root()

    @property
    def run_id(self) -> str:
        """The id the run was given."""
        return self.creation.run_id

    @property
    def creation(self) -> ev.RunCreated:
        """Event 0; raises RunNotFound where the ledger holds no run (a registry, say)."""
        if self.created is None:
            raise RunNotFound("this ledger holds no run")
        return self.created

    @property
    def request(self) -> dict[str, Any]:
        """The complete sanitised request."""
        return self.creation.request

    @property
    def k(self) -> int:
        """Attempts planned per task."""
        return int(self.request.get("execution", {}).get("k", 1))

    @property
    def strategy(self) -> str:
        """`all` or `stop_on_correct`."""
        return str(self.request.get("execution", {}).get("strategy", "all"))

    @property
    def status(self) -> str:
        """The status of run.finished, or `interrupted` when this prefix has none."""
        return self.finished.status if self.finished else "interrupted"

    @property
    def started_at(self) -> str | None:
        """When the run began: at its source if it was imported, else at event 0."""
        if self.imported is not None:
            return self.imported.started_at
        return self.created_at

    @property
    def ended_at(self) -> str | None:
        """When the run ended, at its source if it was imported; None while it has not."""
        if self.imported is not None:
            return self.imported.finished_at
        return self.finished_at

    @property
    def last_at(self) -> str | None:
        """When the last event was recorded: ISO-8601, UTC."""
        return None if self.last_ns is None else spell_time(self.last_ns)

    def counts(self, category: str | Literal[False] | None = False) -> Counts:
        """Count tasks: all, or (with `category` given, None included) those of one category."""
        counts = Counts()
        for task in self.tasks.values():
            if category is False or task.category == category:
                counts.add(task)
        return counts

    def categories(self) -> list[str | None]:
        """The categories that occur, None last."""
        found = {task.category for task in self.tasks.values()}
        return [*sorted(c for c in found if c is not None), *([None] if None in found else [])]

    def attempts(self) -> Iterator[tuple[TaskState, AttemptState]]:
        """Every attempt, in task order, then by number."""
        for task in self.tasks.values():
            for attempt in task.in_order():
                yield task, attempt

    def moved(self, since: int) -> list[TaskState]:
        """The tasks that any event from number `since` on is of, in task order.

        All of them, begun or not, where that is too long ago to know.
        """
        news = self.size - since
        if news > len(self.recent):
            return list(self.tasks.values())
        names = set(islice(reversed(self.recent), max(news, 0)))
        found = [self.tasks[name] for name in names if name is not None]
        return sorted(found, key=lambda task: task.index)

    def spend(self) -> tuple[Spend, Spend]:
        """(spend of counted tries, spend of discarded tries) over all attempts."""
        counted, discarded = Spend(), Spend()
        for _, attempt in self.attempts():
            counted.add(attempt.spend)
            discarded.add(attempt.discarded)
        return counted, discarded


__all__ = ["AttemptState", "Bin", "Counts", "Origin", "RunState", "Spend", "TaskStage", "TaskState"]
