"""Runs evaluations and records every step as an event.

>>> from runtime import RunRequest, Benchmark, Harness, run, replay, record
"""

# ruff: noqa: TC004 - these names are offered at run time, below
from typing import TYPE_CHECKING

from ledger.later import offer

if TYPE_CHECKING:
    from runtime.contracts import (
        BaseAnalyzer,
        BaseEnvironment,
        BaseHarness,
        BaseRecipe,
        Benchmark,
        HarnessFreeBenchmark,
        StageError,
        Task,
    )
    from runtime.contracts import BaseHarness as Harness
    from runtime.interrupt import StopSignal
    from runtime.models import RunRequest
    from runtime.orchestrator import Orchestrator
    from runtime.recording import record
    from runtime.replay import replay
    from runtime.results import (
        Evaluation,
        MetricResult,
        OrchestrationResult,
        RequestOutcome,
        RunResult,
    )
    from runtime.runner import UnifiedEvaluationRuntime, run
    from runtime.suite import Suite
    from runtime.surroundings import Surroundings

__all__ = [
    "BaseAnalyzer",
    "BaseEnvironment",
    "BaseHarness",
    "BaseRecipe",
    "Benchmark",
    "Evaluation",
    "Harness",
    "HarnessFreeBenchmark",
    "MetricResult",
    "OrchestrationResult",
    "Orchestrator",
    "RequestOutcome",
    "RunRequest",
    "RunResult",
    "StageError",
    "StopSignal",
    "Suite",
    "Surroundings",
    "Task",
    "UnifiedEvaluationRuntime",
    "record",
    "replay",
    "run",
]

offer(
    __name__,
    {
        "BaseAnalyzer": "runtime.contracts",
        "BaseEnvironment": "runtime.contracts",
        "BaseHarness": "runtime.contracts",
        "BaseRecipe": "runtime.contracts",
        "Benchmark": "runtime.contracts",
        "Evaluation": "runtime.results",
        "Harness": "runtime.contracts:BaseHarness",
        "HarnessFreeBenchmark": "runtime.contracts",
        "MetricResult": "runtime.results",
        "OrchestrationResult": "runtime.results",
        "Orchestrator": "runtime.orchestrator",
        "RequestOutcome": "runtime.results",
        "RunRequest": "runtime.models",
        "RunResult": "runtime.results",
        "StageError": "runtime.contracts",
        "StopSignal": "runtime.interrupt",
        "Suite": "runtime.suite",
        "Surroundings": "runtime.surroundings",
        "Task": "runtime.contracts",
        "UnifiedEvaluationRuntime": "runtime.runner",
        "record": "runtime.recording",
        "replay": "runtime.replay",
        "run": "runtime.runner",
    },
)
