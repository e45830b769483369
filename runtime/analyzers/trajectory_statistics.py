"""The analyzer `trajectory-statistics`: how long attempts are and what they consist of."""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

import asyncio
from collections import Counter
from typing import Any, ClassVar, Final

from runtime.analyzers.trajectory import Trajectory, characters, longest_repetition, read_trajectory
from runtime.contracts import Analysis, BaseAnalyzer, Task
from runtime.results import Evaluation, RunResult

_TOOLS: Final = 20
NO_TOOL: Final = "none"


class TrajectoryStatistics(BaseAnalyzer):
    """Counts steps, messages, tool calls and characters; it calls nothing a bad case.

    Per attempt `details` declares the numbers `steps`, `messages`, `tool_calls`,
    `longest_repetition`, `trajectory_characters` and `answer_characters`, and the values `form`,
    `outcome` and `most_used_tool`; `tools` has the 20 most used with their counts.
    """

    id: ClassVar[str] = "trajectory-statistics"
    base_analyzer: ClassVar[str] = "trajectory"

    def should_skip(self, result: RunResult) -> bool:
        """True where there is no trajectory."""
        return result.trajectory is None

    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
        """Count, in a thread: trajectories can be long."""
        return Analysis(details=await asyncio.to_thread(_statistics, result, evaluation))


def _statistics(result: RunResult, evaluation: Evaluation) -> dict[str, Any]:
    seen = read_trajectory(result.trajectory)
    tools = _tools(seen)
    most = tools.most_common(1)
    return {
        "value_counts": {
            "form": seen.form,
            "outcome": outcome(evaluation),
            "most_used_tool": most[0][0] if most else NO_TOOL,
        },
        "numeric_stats": {
            "steps": len(seen.steps),
            "messages": seen.messages,
            "tool_calls": sum(tools.values()),
            "longest_repetition": longest_repetition(seen.actions())[0],
            "trajectory_characters": characters(result.trajectory),
            "answer_characters": characters(result.final_answer),
        },
        "tools": dict(tools.most_common(_TOOLS)),
    }


def _tools(seen: Trajectory) -> Counter[str]:
    return Counter(action.tool for action in seen.actions() if action.tool is not None)


def outcome(evaluation: Evaluation) -> str:
    """The verdict in a word: correct, wrong, scored (where there is no truth value) or none."""
    if evaluation.correct is not None:
        return "correct" if evaluation.correct else "wrong"
    return "none" if evaluation.score is None else "scored"
