"""Metrics: named, versioned reducers over the attempts of each task, then a mean over tasks."""

from runtime.metrics.aggregation import EVALUATED_TASKS, aggregate
from runtime.metrics.observations import Observation
from runtime.metrics.policies import COUNT_AS_ZERO, EXCLUDE, POLICIES, UNAVAILABLE, Sample
from runtime.metrics.reducers import Estimate, Reducer
from runtime.metrics.summary import summarize_results
from runtime.metrics.uses import BUILT_IN, default_uses, find_reducer, parse_use

__all__ = [
    "BUILT_IN",
    "COUNT_AS_ZERO",
    "EVALUATED_TASKS",
    "EXCLUDE",
    "POLICIES",
    "UNAVAILABLE",
    "Estimate",
    "Observation",
    "Reducer",
    "Sample",
    "aggregate",
    "default_uses",
    "find_reducer",
    "parse_use",
    "summarize_results",
]
