"""Suites of small requests for tests: the tasks of each stand in its parameters."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runtime.contracts import AttemptContext, Benchmark, Task
from runtime.interrupt import StopSignal
from runtime.orchestrator import Orchestrator
from runtime.results import OrchestrationResult
from runtime.suite import Suite
from runtime.surroundings import Surroundings
from tests.fake_plugins import Act, Listed, Ran, Scripted, at_once, plugins, read, task


class ByParams(Listed):
    """Has the tasks that a request names; `loading` is called first, with the parameters."""

    def __init__(self, loading: Callable[[Mapping[str, Any]], object] = lambda _: None) -> None:
        super().__init__()
        self._loading = loading

    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        self._loading(params)
        return [task(name) for name in params["tasks"]]


def named(name: str, *tasks: str, **parts: Any) -> dict[str, Any]:
    """One request of a suite; `parts` are its fields, or those of `execution`."""
    fields = {"benchmark", "harness", "environment", "model", "runtime", "output", "metadata"}
    return {
        "name": name,
        "benchmark": {"id": "listed", "params": {"tasks": list(tasks)}},
        "harness": {"id": "scripted"},
        "environment": {"id": "rooms"},
        "execution": {key: value for key, value in parts.items() if key not in fields},
        **{key: value for key, value in parts.items() if key in fields},
    }


def suite(*requests: dict[str, Any], **fields: Any) -> Suite:
    return Suite.model_validate({"name": "s", "requests": list(requests), **fields})


def orchestrator(
    results: Path,
    act: Act,
    wanted: Suite,
    *,
    benchmark: Benchmark | None = None,
    stop: StopSignal | None = None,
) -> Orchestrator:
    found = plugins(benchmark or ByParams(), Scripted(act))
    around = Surroundings(plugins=found, sleep=at_once, environ={}, patience=0.0)
    return Orchestrator(wanted, results, surroundings=around, stop=stop)


def orchestrate(
    results: Path, act: Act, *requests: dict[str, Any], **more: Any
) -> OrchestrationResult:
    """Run requests in a fresh event loop; `more` are fields of the suite, or of `orchestrator`."""
    ours = {name: more.pop(name) for name in ("benchmark", "stop") if name in more}
    made = orchestrator(results, act, suite(*requests, **more), **ours)
    return asyncio.run(made.run())


def right(t: Task, context: AttemptContext) -> str:
    return "right"


def ran(result: OrchestrationResult, name: str) -> Ran:
    """What the ledger of one request holds."""
    return read(result.requests[name])


def statuses(result: OrchestrationResult) -> dict[str, str]:
    return {name: outcome.status for name, outcome in result.requests.items()}
