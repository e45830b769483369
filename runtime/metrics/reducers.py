"""The reducers: from the attempts of one task to one number, each with its formula and source.

A metric is the mean of these numbers over the tasks that have one. With n attempts that count, c
of them correct, every `@k` reducer but `any@k` and `majority@k` is the mean of its value over all
C(n, k) choices of k attempts, so that the order of attempts does not matter and all are used; for
n = k that is its value for the k attempts. A task with n < k gives no value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledger import statistics
from runtime.metrics import reasons
from runtime.metrics.policies import POLICIES, Sample


class Estimate(NamedTuple):
    """What one task gives: a value or a reason; `binary` if it is one 0/1 outcome by its making."""

    value: float | None = None
    reason: str | None = None
    binary: bool = False


Formula = Callable[[Sample, int], Estimate]


@dataclass(frozen=True, slots=True)
class Reducer:
    """A named, versioned formula. A changed formula is a new version; old ones stay callable.

    `name` ends in `@k` or `^k` where metrics carry their k in that place. `truth`: values must
    be 0 or 1. `first_k`: only the first k attempts are looked at. `stopped` is the formula for
    k > 1 under `stop_on_correct`; None: there is none, since attempts are missing by the outcome
    of others. `handles_gaps`: the formula is also given tasks whose attempts lack values, and
    tasks with fewer than k. `takes_k`: False for a formula over all attempts.
    """

    name: str
    version: int
    estimator: str
    formula: Formula
    stopped: Formula | None = None
    truth: bool = False
    first_k: bool = False
    takes_k: bool = True
    handles_gaps: bool = False
    policies: tuple[str, ...] = tuple(POLICIES)

    @property
    def text(self) -> str:
        """The docstring of the formula: what it computes, and its source."""
        return self.formula.__doc__ or ""

    def named(self, k: int | None) -> str:
        """The reducer's part of a metric's name: `avg@k` at 3 is `avg@3`."""
        if k is None:
            return self.name
        for mark in ("@k", "^k"):
            if self.name.endswith(mark):
                return f"{self.name[:-1]}{k}"
        return f"{self.name}@{k}"


def accuracy(sample: Sample, _: int) -> Estimate:
    """1 if any attempt is correct, else 0: the metric is tasks correct / denominator.

    Under one attempt per task it is the plain accuracy. Source: the definition of a task's
    `correct` in results-and-reuse.
    """
    return Estimate(float(any(sample.values)), binary=True)


def avg_at_k(sample: Sample, _: int) -> Estimate:
    """x̄ = Σx/n, the mean over the task's attempts.

    It is the expected mean of any k of them, so it does not depend on k but in asking for k.
    Source: the sample mean.
    """
    return Estimate(statistics.mean(sample.values), binary=sample.n == 1 and sample.is_truth)


def pass_at_k(sample: Sample, k: int) -> Estimate:
    """1 - C(n-c, k)/C(n, k), the chance that any of k attempts is correct, without bias.

    Source: Chen et al., Evaluating Large Language Models Trained on Code (arXiv:2107.03374),
    section 2.1.
    """
    return Estimate(statistics.pass_at_k(sample.n, _correct(sample), k), binary=sample.n == k)


def pass_hat_k(sample: Sample, k: int) -> Estimate:
    """C(c, k)/C(n, k), the chance that all of k attempts are correct, without bias.

    Source: Yao et al., tau-bench (arXiv:2406.12045), section 3. The other convention, (c/n)^k,
    is biased and is not used.
    """
    return Estimate(statistics.pass_hat_k(sample.n, _correct(sample), k), binary=sample.n == k)


def best_at_k(sample: Sample, k: int) -> Estimate:
    """Σ_{i=k..n} C(i-1, k-1) x_(i) / C(n, k), the expected best of k attempts; x_(i) ascending.

    For n = k the best value itself. Source: x_(i) is the largest of a choice of k exactly when
    the other k-1 are among the i-1 below it.
    """
    ways = math.comb(sample.n, k)
    ascending = sorted(sample.values)
    terms = (math.comb(i - 1, k - 1) / ways * ascending[i - 1] for i in range(k, sample.n + 1))
    return Estimate(math.fsum(terms), binary=sample.n == 1 and sample.is_truth)


def any_at_k(sample: Sample, k: int) -> Estimate:
    """1 if any of the first k attempts is correct, else 0.

    The plain count that pass@k estimates with less variance. Source: the definition of success
    at k tries.
    """
    return Estimate(float(any(sample.values[:k])), binary=True)


def majority_at_k(sample: Sample, k: int) -> Estimate:
    """The verdict of the most frequent final answer of the first k attempts; ties: first seen.

    Answers are compared as canonical JSON. No answer is an answer like any other, so attempts
    that failed have a vote; a task with correct attempts and no answers at all gives no value.
    Of the attempts with that answer the first that was judged decides. Source: Wang et al.,
    Self-Consistency (arXiv:2203.11171).
    """
    if sample.answers_erased:
        return Estimate(reason=reasons.ERASED)
    answers, values = sample.answers[:k], sample.values[:k]
    if any(values) and not any(answers):
        return Estimate(reason=reasons.NO_ANSWER)
    winner = max(answers, key=answers.count)  # keeps the first of equals
    voters = [i for i, answer in enumerate(answers) if answer == winner]
    speaker = next((i for i in voters if sample.judged[i]), voters[0])
    return Estimate(float(values[speaker]), binary=True)


def first_success(sample: Sample, j: int) -> Estimate:
    """1 if the first correct attempt is one of the first j, 0 if j attempts were made without one.

    For runs that stop at the first correct attempt: its number tells the outcome at every later
    j. A task that has neither a correct attempt nor j attempts is unknown at j and gives no
    value. Source: the empirical distribution of the first success.
    """
    solved_at = next((i for i, value in enumerate(sample.values, 1) if value), None)
    if solved_at is not None:
        return Estimate(float(solved_at <= j), binary=True)
    if sample.n >= j:
        return Estimate(0.0, binary=True)
    return Estimate(reason=reasons.NEEDS_K if sample.n else reasons.gravest(sample.gaps))


def _correct(sample: Sample) -> int:
    return sum(1 for value in sample.values if value)


ACCURACY: Final = Reducer("accuracy", 1, "any_attempt", accuracy, truth=True, takes_k=False)
AVG: Final = Reducer("avg@k", 1, "mean", avg_at_k)
PASS: Final = Reducer("pass@k", 1, "unbiased", pass_at_k, first_success, truth=True)
PASS_HAT: Final = Reducer("pass^k", 1, "unbiased", pass_hat_k, truth=True)
BEST: Final = Reducer("best@k", 1, "expected_best", best_at_k)
ANY: Final = Reducer("any@k", 1, "first_k", any_at_k, first_success, truth=True, first_k=True)
MAJORITY: Final = Reducer("majority@k", 1, "first_k", majority_at_k, truth=True, first_k=True)
