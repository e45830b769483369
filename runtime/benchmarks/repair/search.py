"""Repair by mutation search: try small changes until the visible examples pass.

First every single change in a seeded order, then pairs, those upon the singles that got furthest
first.  The search sees the source and the examples, nothing else; whether a repair is right is not
for it to say.
"""

import itertools
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from runtime.benchmarks.repair.mutate import Mutation, apply, compatible, mutations

# How many examples each candidate passes.
Score = Callable[[Sequence[str]], Awaitable[Sequence[int]]]

_FIRST_BATCH = 8
_LARGEST_BATCH = 64
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Step:
    """A candidate that got further than all before it."""

    tried: int  # candidates up to and with this one
    changes: tuple[str, ...]
    passed: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the search ends with; without progress it is the source as it was."""

    source: str
    tried: int
    passed: int
    steps: tuple[Step, ...]


async def search(source: str, *, examples: int, budget: int, seed: str, score: Score) -> Found:
    """Try at most `budget` changed sources and give the one that passes most examples.

    Stops at the first that passes all `examples`.  The same seed tries the same candidates in the
    same order.  A budget of 0 gives the source back.
    """
    if budget <= 0:
        return Found(source, 0, 0, ())
    run = _Search(source, examples, budget, score)
    singles = list(mutations(source))
    random.Random(seed).shuffle(singles)  # noqa: S311 (reproducible on purpose)
    # The source as it is goes first, in the same batch: a score of its own would cost a process.
    await run.go_through([(), *((change,) for change in singles)])
    await run.go_through(run.pairs(singles))
    return run.best


class _Search:
    """The state of one search; `best.tried` counts what the budget pays for."""

    def __init__(self, source: str, examples: int, budget: int, score: Score) -> None:
        self.best = Found(source, 0, _UNKNOWN, ())
        self._source = source
        self._examples = examples
        self._budget = budget
        self._score = score
        self._passed: dict[Mutation, int] = {}  # by each single change alone

    async def go_through(self, candidates: Iterable[tuple[Mutation, ...]]) -> None:
        """Try candidates in growing batches until one passes all, or the budget is spent."""
        left = iter(candidates)
        size = _FIRST_BATCH
        while self.best.passed < self._examples:
            room = self._budget - self.best.tried + (self.best.passed == _UNKNOWN)
            batch = list(itertools.islice(left, min(size, room)))
            if not batch:
                return
            sources = [apply(self._source, changes) for changes in batch]
            counts = await self._score(sources)
            for changes, patched, passed in zip(batch, sources, counts, strict=True):
                self._take(changes, patched, passed)
            size = min(2 * size, _LARGEST_BATCH)

    def pairs(self, singles: Sequence[Mutation]) -> Iterator[tuple[Mutation, ...]]:
        """Pair each change with each later one, beginning with the changes that got furthest."""
        ranked = sorted(singles, key=lambda change: -self._passed.get(change, 0))
        for one, other in itertools.combinations(ranked, 2):
            if compatible(one, other):
                yield (one, other)

    def _take(self, changes: tuple[Mutation, ...], patched: str, passed: int) -> None:
        if self.best.passed == self._examples:
            return  # in the same batch, behind the one that was found
        if not changes:
            self.best = replace(self.best, passed=passed)
            return
        if len(changes) == 1:
            self._passed[changes[0]] = passed
        best, tried = self.best, self.best.tried + 1
        if passed > best.passed:
            step = Step(tried, tuple(c.describe(self._source) for c in changes), passed)
            self.best = Found(patched, tried, passed, (*best.steps, step))
        else:
            self.best = replace(best, tried=tried)
