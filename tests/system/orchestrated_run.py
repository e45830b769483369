"""Two requests in a process of their own: `python -m tests.system.orchestrated_run RESULTS MODE`.

Modes: `wait`, until a signal comes; `stubborn`, which ignores being cancelled; `time`, of which
there is too little; `load`, whose second request never gets its tasks; `work RUN_ID`, which goes on
to its end. Prints how the requests ended.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runtime.contracts import AttemptContext, Task
from runtime.interrupt import StopSignal, listening
from runtime.orchestrator import Orchestrator
from runtime.results import OrchestrationResult
from runtime.surroundings import Surroundings
from tests.fake_plugins import Scripted, plugins
from tests.suites import ByParams, named, suite
from tests.system.killed_run import act

MODELS = ("m1", "m2")
NO_SOURCES: Mapping[str, str] = {}
TASKS = [f"task-{number:02}" for number in range(10)]


def on_load(params: Mapping[str, Any]) -> None:
    if "hang" in params["tasks"]:
        threading.Event().wait()


async def waiting(t: Task, context: AttemptContext) -> str:
    if t.task_id == "quick":
        return "right"
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if "stubborn" not in sys.argv:
                raise


async def working(t: Task, context: AttemptContext) -> Any:
    await asyncio.sleep(0.02 if __name__ == "__main__" else 0)
    return act(t, context)


async def run(
    results: Path, mode: str, run_id: str = "r", sources: Mapping[str, str] = NO_SOURCES
) -> OrchestrationResult:
    second = ["hang"] if mode == "load" else ["quick", "slow", "never"]
    fields: dict[str, Any] = {"k": 1}
    requests = [("quick", "slow"), tuple(second)]
    if mode == "work":
        requests = [tuple(TASKS), tuple(TASKS)]
        fields = {"k": 2, "max_retries": 1, "retry_min_delay_seconds": 0.001}
    wanted = suite(
        *(
            named(
                model,
                *tasks,
                **fields,
                model={"id": model},
                output={"run_id": run_id},
                runtime={"reuse_run_id": sources.get(model, "")},
            )
            for model, tasks in zip(MODELS, requests, strict=True)
        ),
        task_concurrency=2 if mode == "work" else 4,
        timeout_seconds=8.0 if mode in {"time", "load"} else 0,
        cleanup_grace_seconds=0.2 if mode in {"time", "load"} else 30,
    )
    stop = StopSignal()
    made = Orchestrator(
        wanted,
        results,
        surroundings=Surroundings(
            plugins=plugins(ByParams(on_load), Scripted(working if mode == "work" else waiting)),
            environ={},
        ),
        stop=stop,
    )
    with listening(stop):
        return await made.run()


if __name__ == "__main__":
    where, *more = sys.argv[1:]
    ended = asyncio.run(run(Path(where), *more))
    outcomes = {name: outcome.status for name, outcome in ended.requests.items()}
    sys.stdout.write(json.dumps({"status": ended.status, "requests": outcomes}) + "\n")
    codes = [outcome.exit_code for outcome in ended.requests.values()]
    sys.exit(max(codes))
