"""The estimate of one task: policy first, then formula, and the rules that hold for all of them."""

from collections.abc import Collection

from runtime.metrics import reasons
from runtime.metrics.observations import TaskObservations
from runtime.metrics.policies import Policy, Sample, exclude, policy_named
from runtime.metrics.reducers import Estimate, Reducer

Samples = dict[tuple[Policy, int | None], Sample]
"""What a task gives under a policy, of its first so many attempts or of all."""


def estimate(
    reducer: Reducer,
    task: TaskObservations,
    *,
    k: int | None,
    policy: str,
    samples: Samples | None = None,
) -> Estimate:
    """Reduce the attempts of one task under an error policy.

    `samples` are those of this very task that were taken already; what is taken here joins them.

    Where attempts end with the first correct one, later attempts exist only where earlier ones
    failed. What may be used without bias is the first attempt (k = 1), and when the first success
    came.
    """
    needs = k or 1
    stopped = task.stopping and needs > 1
    if stopped and reducer.stopped is None and reducer.takes_k:
        return Estimate(reason=reasons.STOPPED_EARLY)
    window = k if task.stopping or reducer.first_k else None
    taken = exclude if reducer.handles_gaps else policy_named(policy)
    sample = samples.get((taken, window)) if samples else None
    if sample is None:
        sample = taken(task.attempts, window)
        if samples is not None:
            samples[taken, window] = sample
    if sample.veto is not None:
        return Estimate(reason=sample.veto)
    if gaps := [gap for gap in sample.gaps if gap in reasons.ENDS_THE_METRIC]:
        return Estimate(reason=reasons.gravest(gaps))
    if reducer.truth and not sample.is_truth:
        return Estimate(reason=reasons.NOT_A_TRUTH_VALUE)
    if stopped and reducer.stopped is not None:
        return reducer.stopped(sample, needs)
    if not reducer.handles_gaps and sample.n < needs:
        return Estimate(reason=reasons.NEEDS_K if sample.n else reasons.gravest(sample.gaps))
    return reducer.formula(sample, needs)


def estimator(reducer: Reducer, *, k: int | None, stopping: Collection[bool]) -> str:
    """The name of what `estimate` uses for tasks that are `stopping`, that are not, or for both."""
    special = k == 1 or (k is not None and reducer.stopped is not None)
    if not special or reducer.handles_gaps or True not in stopping:
        return reducer.estimator
    stopped = "first_attempt" if k == 1 else "first_success"
    return f"{reducer.estimator}, {stopped}" if False in stopping else stopped
