"""Scores of how an attempt was gone about, each in [0, 1] or None where it cannot be computed.

The names are those of the upstream analysis, the definitions those of the taxonomy `acl-1`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from exporters.job_analysis.actions import Actions, Tool
from exporters.job_analysis.config import Turns, Weights
from exporters.job_analysis.toolkinds import edited_path, runs_test, writes_test

Scores = dict[str, float | None]

COMPOSITE: Final = "composite_score"
_LATE: Final = 0.3
_LAST: Final = 0.2
_VERIFIED: Final = 0.15
_OUTCOMES: Final = {"pass": 1.0, "unclear": 0.6, "fail": 0.3}
_CURVES: Final[dict[str, Callable[[float], float]]] = {
    "fec_score": lambda x: x**5,
    "dpi_score": lambda x: x**3,
}


@dataclass(frozen=True, slots=True)
class Pathologies:
    """What was found wrong with an attempt's steps; None where nothing of them is known."""

    loop: bool | None
    storm: bool | None
    truncated: bool | None


@dataclass(frozen=True, slots=True)
class _Step:
    seq: int
    is_error: bool
    verifies: bool


def component_scores(
    actions: Actions,
    *,
    delivered: bool | None,
    turns: int | None,
    pathologies: Pathologies,
    weights: Weights,
    stp: Turns,
) -> Scores:
    """All scores of one attempt; `delivered` is None where its answer is not known any more."""
    scores: Scores = {
        "sub_score": None if delivered is None else _submission(actions, delivered=delivered),
        "stp_score": None if turns is None else _turns(turns, stp),
        "tvr_score": _verification(actions.tools),
        "fec_score": _edits(actions.tools),
        "dpi_score": _discipline(pathologies) if actions.is_known else None,
    }
    scores[COMPOSITE] = _composite(scores, weights)
    return scores


def is_tested(actions: Actions) -> bool | None:
    """Whether the agent ran tests; None where nothing of it is known."""
    if not actions.is_known:
        return None
    return any(runs_test(tool.name, tool.arguments) for tool in actions.tools)


def _submission(actions: Actions, *, delivered: bool) -> float:
    """1 for an answer, 0.5 if an error came late, 0 for none; more where it was verified last."""
    steps = _steps(actions)
    score = 0.0
    if delivered:
        score = 0.5 if any(step.is_error for step in _tail(steps, _LATE)) else 1.0
    if any(step.verifies for step in _tail(steps, _LAST)):
        score += _VERIFIED
    return min(1.0, score)


def _steps(actions: Actions) -> list[_Step]:
    calls = [_Step(call.seq, call.failed, False) for call in actions.counted]
    tools = [
        _Step(tool.seq, tool.is_error is True, runs_test(tool.name, tool.arguments))
        for tool in actions.tools
    ]
    return sorted([*calls, *tools], key=lambda step: step.seq)


def _tail(steps: Sequence[_Step], share: float) -> Sequence[_Step]:
    """The last steps: this share of them, rounded up."""
    count = math.ceil(len(steps) * share - 1e-9)
    return steps[len(steps) - count :]


def _turns(turns: int, stp: Turns) -> float:
    if turns < stp.lo:
        return turns / stp.lo
    if turns <= stp.hi:
        return 1.0
    return max(0.0, (stp.zero - turns) / (stp.zero - stp.hi))


def _verification(tools: Sequence[Tool]) -> float | None:
    """0.3 for a test that was written, 0.3 for one that ran, 0.4 by how the last one ended."""
    if not tools:
        return None
    wrote = any(writes_test(tool.name, tool.arguments) for tool in tools)
    ran = [tool for tool in tools if runs_test(tool.name, tool.arguments)]
    outcome = _OUTCOMES[_outcome(ran[-1])] if ran else 0.0
    return 0.3 * wrote + 0.3 * bool(ran) + 0.4 * outcome


def _outcome(tool: Tool) -> str:
    if tool.is_error or tool.exit_code not in (None, 0):
        return "fail"
    return "pass" if tool.exit_code == 0 else "unclear"


def _edits(tools: Sequence[Tool]) -> float | None:
    """1 for one edit a file, falling to 0 at five."""
    paths = [path for tool in tools if (path := edited_path(tool.name, tool.arguments))]
    if not paths:
        return None
    return 1 - min(1.0, max(0.0, (len(paths) / len(set(paths)) - 1) / 4))


def _discipline(found: Pathologies) -> float:
    lost = 0.4 * bool(found.loop) + 0.3 * bool(found.storm) + 0.3 * bool(found.truncated)
    return max(0.0, 1 - lost)


def _composite(scores: Scores, weights: Weights) -> float | None:
    """Σ w·f(c) / Σ w over the components that there are."""
    parts = [
        (weight, _CURVES.get(name, float)(score))
        for name, weight in weights
        if (score := scores[name]) is not None
    ]
    total = math.fsum(weight for weight, _ in parts)
    return math.fsum(weight * value for weight, value in parts) / total if total else None
