"""Runs evaluations and records every step as an event.

>>> from runtime import RunRequest, Benchmark, Harness, run, replay, record
"""

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
