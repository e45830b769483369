"""The deterministic features of an attempt: numbers, truth values, and None for what is unknown.

Calls, tokens, cost, model time and tools are those of all tries; turns, times of phases and
pathologies those of the counted try.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

from exporters.job_analysis.actions import Tool
from exporters.job_analysis.components import is_tested
from exporters.job_analysis.config import Features
from exporters.job_analysis.facts import Facts
from exporters.job_analysis.patches import NAMES, Feature, patch_features
from exporters.job_analysis.steps import Step
from exporters.jobs.calls import Spent
from exporters.jobs.numbers import dollars, rounded, total
from ledger import events as ev

TRUTHS: Final = frozenset(
    {
        "C1_file_read",
        "C2_func_read",
        "C5_test_executed",
        "context_truncation",
        "loop_detected",
        "premature_stop",
        "tool_error_storm",
    }
)
"""The features that are truth values; all others are numbers."""


@dataclass(frozen=True, slots=True)
class Found:
    """The features, and the events that show each pathology."""

    values: dict[str, Feature]
    loop: tuple[Tool, ...] = ()
    storm: tuple[Tool, ...] = ()
    truncated: tuple[int, ...] = ()


def features_of(facts: Facts, config: Features) -> Found:
    """All features, in the order in which they are written."""
    calls = facts.actions.calls
    loop = _longest_loop(facts.actions.tools)
    storm = _longest_storm(facts.actions.tools)
    truncated = tuple(_truncations(facts))
    turns = _turns(facts)
    used = _share(turns, facts.max_iterations)
    known = facts.actions.is_known
    judged = facts.actions.all_tool_errors is not None
    values: dict[str, Feature] = {
        "assistant_turns": turns,
        "llm_calls": None if facts.imported and not calls else len(calls),
        "llm_calls_failed": None if facts.imported and not calls else sum(c.failed for c in calls),
        "llm_calls_lost": None if facts.imported and not calls else sum(c.call.lost for c in calls),
        "total_tool_calls": facts.actions.all_tools,
        "tool_errors": facts.actions.all_tool_errors,
        **_tokens(facts),
        "run_seconds": rounded(facts.run_seconds),
        "evaluation_seconds": rounded(facts.evaluation_seconds),
        "model_seconds": rounded(_model_seconds(facts)),
        "ttft_ms_median": rounded(_first_token(facts)),
        "retries": len(facts.attempt.retries),
        "max_iterations": facts.max_iterations,
        "iterations_used_frac": rounded(used),
        "answer_chars": facts.answer_chars,
        "loop_detected": len(loop) >= config.loop_threshold if known else None,
        "loop_length": len(loop) if known else None,
        **_premature(facts, used, config.premature_stop_threshold),
        "tool_error_storm": (len(storm) >= config.tool_error_storm_threshold if judged else None),
        "tool_error_storm_count": len(storm) if judged else None,
        "context_truncation": bool(truncated) if known else None,
    }
    return Found(values | _patch(facts), loop, storm, truncated)


def _patch(facts: Facts) -> dict[str, Feature]:
    if facts.gold is None:
        return dict.fromkeys(NAMES)
    tested = is_tested(facts.actions)
    found = patch_features(facts.gold, facts.given, facts.actions.tools, tested=tested)
    return {n: rounded(v) if isinstance(v, float) else v for n, v in found.items()}


def _turns(facts: Facts) -> int | None:
    if facts.actions.calls:
        return sum(call.replies for call in facts.actions.counted)
    return None if facts.actions.steps is None else len(facts.actions.steps)


def _tokens(facts: Facts) -> dict[str, Feature]:
    """Of successful calls; of the agent's own steps where no call was recorded."""
    if not facts.actions.calls and facts.actions.steps:
        return _tokens_of_steps(facts.actions.steps)
    calls = [one.call for one in facts.actions.calls]
    usages = [call.usage for call in calls if call.success and call.usage is not None]
    spent = Spent.of(calls)
    sizes = [size for usage in usages if (size := _context(usage)) is not None]
    return {
        "prompt_tokens": spent.input_tokens,
        "completion_tokens": spent.output_tokens,
        "cached_tokens": spent.cached_tokens,
        "reasoning_tokens": total(usage.reasoning_tokens for usage in usages),
        "total_tokens": total(
            _context(usage) if usage.total_tokens is None else usage.total_tokens
            for usage in usages
        ),
        "peak_context_tokens": max(sizes, default=None),
        "cost_usd": dollars(spent.cost_usd),
    }


def _tokens_of_steps(steps: Sequence[Step]) -> dict[str, Feature]:
    sizes = [
        step.prompt_tokens + step.completion_tokens
        for step in steps
        if step.prompt_tokens is not None and step.completion_tokens is not None
    ]
    costs = [step.cost_usd for step in steps if step.cost_usd is not None]
    return {
        "prompt_tokens": total(step.prompt_tokens for step in steps),
        "completion_tokens": total(step.completion_tokens for step in steps),
        "cached_tokens": total(step.cached_tokens for step in steps),
        "reasoning_tokens": None,
        "total_tokens": sum(sizes) if sizes else None,
        "peak_context_tokens": max(sizes, default=None),
        "cost_usd": dollars(math.fsum(costs)) if len(costs) == len(steps) else None,
    }


def _context(usage: ev.Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def _model_seconds(facts: Facts) -> float | None:
    """The time in which at least one call ran: calls in parallel do not add."""
    intervals = sorted(filter(None, (_interval(one.call.end) for one in facts.actions.calls)))
    if not intervals:
        return None
    seconds = 0.0
    reached = intervals[0][0]
    for start, stop in intervals:
        seconds += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
    return seconds


def _interval(end: ev.CallFinished | None) -> tuple[float, float] | None:
    if end is None or end.started_at is None or end.finished_at is None:
        return None
    try:
        start, stop = map(datetime.fromisoformat, (end.started_at, end.finished_at))
        found = (start.timestamp(), stop.timestamp())
    except (ValueError, OverflowError):
        return None
    return found if found[0] <= found[1] else None


def _first_token(facts: Facts) -> float | None:
    ends = (one.call.end for one in facts.actions.calls)
    times = [end.ttft_ms for end in ends if end is not None and end.ttft_ms is not None]
    return statistics.median(times) if times else None


def _longest_loop(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    rows = (tuple(row) for _, row in groupby(tools, key=lambda tool: (tool.name, tool.digest)))
    return max(rows, key=len, default=())


def _longest_storm(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    rows = groupby(tools, key=lambda tool: tool.is_error is True)
    return max((tuple(row) for failed, row in rows if failed), key=len, default=())


def _truncations(facts: Facts) -> Iterator[int]:
    yield from (one.seq for one in facts.actions.counted if one.truncated)
    told = facts.actions.harness_truncated
    if told is None and any(step.truncated for step in facts.actions.steps or ()):
        told = facts.attempt.result
    if told is not None:
        yield told


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or whole is None else part / whole


def _premature(facts: Facts, used: float | None, threshold: float) -> dict[str, Feature]:
    """Whether an agent that ended by itself, unresolved, left more than `threshold` unused."""
    if used is None:
        return {"premature_stop": None, "premature_stop_remaining_frac": None}
    left = round(max(0.0, 1 - used), 9)  # 1 - 0.7 is not more than 0.3
    stopped = facts.attempt.status == "completed" and not facts.resolved and left > threshold
    return {"premature_stop": stopped, "premature_stop_remaining_frac": rounded(left)}
