"""What a job's result tells of tasks and trials, summed as they come.

A job that grows is told of each trial once, and of each task whenever it moves: its result costs
little more than what is new in it.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import NamedTuple, Self

from exporters.jobs.numbers import mean, rounded, total
from exporters.jobs.resolution import countable_attempts, is_ended, is_task_resolved
from exporters.jobs.rewards import REWARD
from exporters.jobs.trial_result import Facts
from ledger.state import RunState, TaskState
from ledger.statistics import pass_at_k
from ledger.tally import Tally

_Names = dict[str, list[str]]
_OVER = frozenset({"done", "error", "cancelled"})


class TaskSums(NamedTuple):
    """Numbers of attempts of one task or of several; `judged` and `resolved` are tasks.

    `planned` are attempts made, taken over, and those that may still be made while the run goes on.
    """

    planned: int = 0
    begun: int = 0
    ended: int = 0
    errored: int = 0
    cancelled: int = 0
    retries: int = 0
    judged: int = 0
    resolved: int = 0


class Tasks:
    """The sums over all tasks of a run, which follow its state."""

    def __init__(self, state: RunState) -> None:
        self._k = max(state.k, 0)
        self._stops = state.strategy == "stop_on_correct"
        self._tally = Tally(self._share)

    @classmethod
    def of(cls, state: RunState) -> Self:
        """The sums of one state."""
        tasks = cls(state)
        tasks.follow(state)
        return tasks

    def follow(self, state: RunState) -> list[TaskState]:
        """Catch up with the state; return the tasks that moved, in task order."""
        return self._tally.follow(state)

    def sums(self, state: RunState) -> TaskSums:
        """The sums over all tasks, those that have not begun too."""
        begun = TaskSums(*self._tally.sums)
        if self._stops and state.finished is not None:
            return begun._replace(planned=begun.begun)
        waiting = len(state.tasks) - self._tally.begun
        return begun._replace(planned=begun.planned + waiting * self._k)

    def _share(self, task: TaskState) -> TaskSums:
        attempts = task.in_order()
        return TaskSums(
            planned=self._planned(task, len(attempts)),
            begun=len(attempts),
            ended=sum(map(is_ended, attempts)),
            errored=sum(attempt.error for attempt in attempts),
            cancelled=sum(attempt.status == "cancelled" for attempt in attempts),
            retries=sum(attempt.retry_count for attempt in attempts),
            judged=int(bool(countable_attempts(task))),
            resolved=int(is_task_resolved(task)),
        )

    def _planned(self, task: TaskState, made: int) -> int:
        is_enough = self._stops and (task.stage in _OVER or task.solved_at is not None)
        return made if task.reused or is_enough else max(made, self._k)


@dataclass(slots=True)
class TrialSums:
    """What is known of all trials of a job, in whatever order they came."""

    rewards: list[float] = field(default_factory=list)
    """The reward of each trial that has one."""
    trials: int = 0
    failed: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    costs: list[float] = field(default_factory=list)
    _by_reward: dict[str, _Names] = field(default_factory=dict)
    _by_exception: _Names = field(default_factory=dict)
    _made: Counter[str] = field(default_factory=Counter)
    _solved: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, trials: Iterable[Facts]) -> Self:
        """The sums over these."""
        sums = cls()
        for facts in trials:
            sums.add(facts)
        return sums

    def add(self, facts: Facts) -> None:
        """Count one more trial."""
        self.trials += 1
        self._made[facts.task] += 1
        if facts.rewards is not None:
            reward = facts.rewards[REWARD]
            self.rewards.append(reward)
            self._solved[facts.task] += reward == 1
        for name, value in (facts.rewards or {}).items():
            _note(self._by_reward.setdefault(name, {}), repr(value), facts.name)
        if facts.exception is not None:
            self.failed += 1
            _note(self._by_exception, facts.exception, facts.name)
        spent = facts.spent
        self.input_tokens = total((self.input_tokens, spent.input_tokens))
        self.cached_tokens = total((self.cached_tokens, spent.cached_tokens))
        self.output_tokens = total((self.output_tokens, spent.output_tokens))
        if spent.cost_usd is not None:
            self.costs.append(spent.cost_usd)

    def mean_over_graded(self) -> float | None:
        """The mean reward of the trials that have one."""
        return rounded(mean(self.rewards))

    def mean_over_all(self) -> float | None:
        """The mean reward, that of a trial without one being 0."""
        return rounded(mean([*self.rewards, *repeat(0.0, self.trials - len(self.rewards))]))

    def are_binary(self) -> bool:
        """Whether no reward is other than 0 or 1."""
        return self._by_reward.get(REWARD, {}).keys() <= {"0.0", "1.0"}

    def pass_at_k(self) -> dict[str, float | None]:
        """The unbiased estimate for each k up to the least number of trials that a task has."""
        alike = Counter((made, self._solved[task]) for task, made in self._made.items())
        least = min((made for made, _ in alike), default=0)
        found: dict[str, float | None] = {}
        for k in _ks(least):
            values = (repeat(pass_at_k(n, c, k), times) for (n, c), times in alike.items())
            told = (value for value in chain.from_iterable(values) if value is not None)
            found[str(k)] = rounded(mean(told))
        return found

    def by_reward(self) -> dict[str, _Names]:
        """Which trials have which reward, by the reward's name and its value as Python writes it.

        All sorted.
        """
        return {
            name: dict(sorted(found.items())) for name, found in sorted(self._by_reward.items())
        }

    def by_exception(self) -> _Names:
        """Which trials ended in an exception of which type; both sorted."""
        return dict(sorted(self._by_exception.items()))


def _note(names: _Names, key: str, name: str) -> None:
    insort(names.setdefault(key, []), name)


def _ks(most: int) -> Iterator[int]:
    """2, 4, 8, … and 5, 10, 15, …, in order."""
    powers = {2**exponent for exponent in range(1, max(most, 1).bit_length())}
    yield from sorted(k for k in powers | set(range(5, most + 1, 5)) if k <= most)
