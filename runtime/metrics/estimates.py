"""The estimate of one task: policy first, then formula, and the rules that hold for all of them."""

from collections.abc import Sequence

from runtime.metrics import reasons
from runtime.metrics.observations import Observation
from runtime.metrics.policies import exclude, policy_named
from runtime.metrics.reducers import Estimate, Reducer


def estimate(
    reducer: Reducer,
    attempts: Sequence[Observation],
    *,
    k: int | None,
    policy: str,
    stopping: bool,
) -> Estimate:
    """Reduce the attempts of one task under an error policy; `stopping` for `stop_on_correct`.

    Under `stop_on_correct` the later attempts exist only where the earlier ones failed. What may
    be used without bias is the first attempt (k = 1), and when the first success came.
    """
    needs = k or 1
    if stopping and needs > 1 and reducer.stopped is None:
        return Estimate(reason=reasons.STOPPED_EARLY)
    window = k if stopping or reducer.first_k else None
    sample = (exclude if reducer.handles_gaps else policy_named(policy))(attempts, window)
    if sample.veto is not None and not reducer.handles_gaps:
        return Estimate(reason=sample.veto)
    if gaps := [gap for gap in sample.gaps if gap in reasons.ENDS_THE_METRIC]:
        return Estimate(reason=reasons.gravest(gaps))
    if reducer.truth and not sample.is_truth:
        return Estimate(reason=reasons.NOT_A_TRUTH_VALUE)
    formula = reducer.stopped if stopping and needs > 1 and reducer.stopped else reducer.formula
    if formula is reducer.formula and not reducer.handles_gaps and sample.n < needs:
        return Estimate(reason=reasons.NEEDS_K if sample.n else reasons.gravest(sample.gaps))
    return formula(sample, needs)


def estimator(reducer: Reducer, *, k: int | None, stopping: bool) -> str:
    """The name of the estimator that `estimate` uses for a run of this strategy."""
    if not stopping or k is None or reducer.handles_gaps:
        return reducer.estimator
    return "first_attempt" if k == 1 else "first_success"
