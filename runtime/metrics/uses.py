"""Which reducers a run is measured with: written as text, recorded as `ReducerUse`, or by default.

A metric's name is `<metric>.<reducer>@<k>`; where its error policy is not that of the result as
a whole, the policy stands behind it in brackets: `correct.avg@3[exclude]`.
"""

import re
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Final

from ledger.errors import UsageError
from ledger.events import ReducerUse
from ledger.state import RunState
from runtime.metrics import agentcompass, reducers
from runtime.metrics.observations import measured
from runtime.metrics.policies import EXCLUDE, policy_named
from runtime.metrics.reducers import Reducer

GROUP: Final = "acl.reducers"
BUILT_IN: Final = (
    reducers.ACCURACY,
    reducers.AVG,
    reducers.PASS,
    reducers.PASS_HAT,
    reducers.BEST,
    reducers.ANY,
    reducers.MAJORITY,
    agentcompass.NATIVE,
    agentcompass.AVG,
    agentcompass.PASS,
)
EVERY_K_UP_TO: Final = 10

_TEXT = re.compile(
    r"(?:(?P<metric>.+)\.)?(?P<reducer>[^.@^\[\]]+)(?:(?P<mark>[@^])(?P<k>k|[1-9][0-9]*))?"
    r"(?:\[(?P<policy>[^\]]+)\])?",
    re.DOTALL,
)


def find_reducer(name: str, version: int | None = None) -> Reducer:
    """The reducer of this name and version (the newest by default), built in or a plug-in.

    Raises UsageError that names the known ones. A plug-in cannot take a built-in's name.
    """
    for reducer in BUILT_IN:
        if reducer.name == name and version in (None, reducer.version):
            return reducer
    points = {point.name: point for point in metadata.entry_points(group=GROUP)}
    known = sorted({*(reducer.name for reducer in BUILT_IN), *points})
    plug_in = points.get(name)
    if plug_in is None or any(reducer.name == name for reducer in BUILT_IN):
        wanted = name if version is None else f"{name} of version {version}"
        raise UsageError(f"there is no reducer {wanted}", hint=f"known: {', '.join(known)}")
    loaded = plug_in.load()
    if not isinstance(loaded, Reducer) or loaded.name != name:
        raise UsageError(f"the entry point {name!r} of {GROUP} is not the reducer it says it is")
    if version not in (None, loaded.version):
        raise UsageError(f"reducer {name} is installed in version {loaded.version}, not {version}")
    return loaded


def parse_use(text: str, *, policy: str, k: int) -> ReducerUse:
    """Read `[metric.]reducer[@k][[policy]]`, such as `majority@3` or `score.best@2[exclude]`.

    The metric is `correct` by default, k the run's where it is the letter or left out. Raises
    UsageError for what is not a reducer, a policy or a k.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} names no reducer", hint="write it like correct.pass@3")
    name = match["reducer"]
    if match["mark"] is not None:
        name += match["mark"] + "k"
    reducer = find_reducer(name)
    given = match["k"]
    return make_use(
        match["metric"] or "correct",
        reducer,
        k=int(given) if given not in (None, "k") else k,
        policy=match["policy"] or policy,
    )


def make_use(metric: str, reducer: Reducer, *, k: int, policy: str) -> ReducerUse:
    """The use of `reducer` on `metric`, as it is recorded; UsageError if the policy cannot be."""
    policy_named(policy)
    if policy not in reducer.policies:
        raise UsageError(
            f"reducer {reducer.name} knows no error policy {policy!r}",
            hint=f"it knows {', '.join(reducer.policies)}",
        )
    return ReducerUse(
        metric=metric,
        name=reducer.name,
        version=reducer.version,
        k=k if reducer.takes_k else None,
        policy=policy,
    )


def default_uses(state: RunState, *, policy: str, k: int) -> tuple[ReducerUse, ...]:
    """What is computed when nobody says: see docs/metrics.md, "The default set"."""
    verdicts = [attempt for _, attempt in state.attempts() if attempt.verdict]
    scored = any(attempt.score is not None for attempt in verdicts)
    judged = any(attempt.correct is not None for attempt in verdicts) or not scored
    uses: list[ReducerUse] = []
    if judged:
        uses += _all("correct", reducers.ACCURACY, [k], (policy, EXCLUDE))
        uses += _all("correct", reducers.AVG, [k], (policy,))
        uses += _all("correct", reducers.PASS, steps(k), (policy,))
        uses += _all("correct", reducers.PASS_HAT, [k], (policy,))
    if scored:
        uses += _all("score", reducers.AVG, [k], (policy, EXCLUDE))
        uses += _all("score", reducers.BEST, [k], (policy,))
    for name in measured(state):
        uses += _all(name, reducers.AVG, [k], (EXCLUDE,))
    return tuple(dict.fromkeys(uses))


def steps(k: int) -> list[int]:
    """The j of pass@j for a run of k attempts: every one up to 10, then powers of two, and k."""
    few = range(1, min(k, EVERY_K_UP_TO) + 1)
    many = [2**e for e in range(4, k.bit_length()) if 2**e < k]
    return sorted({*few, *many, k})


def names(uses: Sequence[ReducerUse], *, policy: str) -> list[str]:
    """A name for each use, all different, that depends on nothing but the uses and `policy`."""
    taken: dict[str, ReducerUse] = {}
    for use in uses:
        name = _name(use, policy)
        if name in taken:
            name += f"[{use.name} v{use.version}]"
        taken[name] = use
    assert len(taken) == len(uses), "a use is listed twice"
    return list(taken)


def _name(use: ReducerUse, policy: str) -> str:
    name = f"{use.metric}.{find_reducer(use.name, use.version).named(use.k)}"
    return name if use.policy == policy else f"{name}[{use.policy}]"


def _all(
    metric: str, reducer: Reducer, ks: Iterable[int], policies: Iterable[str]
) -> list[ReducerUse]:
    return [make_use(metric, reducer, k=k, policy=policy) for policy in policies for k in ks]
