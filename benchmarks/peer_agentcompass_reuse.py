"""Child of `benchmarks.reuse` in an environment of AgentCompass: its store reuses a finished run.

    python benchmarks/peer_agentcompass_reuse.py RUN RESULTS_DIR TASKS

The calls are those of its runner before the first task of a run that reuses another, but for the
log. RUN is a directory in its layout, which is moved to where it looks for it. Prints one JSON
document.
"""

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agentcompass.runtime.results.store import RunStore


def main(run: Path, results: Path, names: Path) -> None:
    """Reuse all tasks of a run, and tell what it took."""
    tasks = [{"task_id": name, "category": ""} for name in json.loads(names.read_bytes())]
    store = RunStore(SimpleNamespace(model="model-1"))
    store._get_results_root = lambda: results
    info = json.loads((run / "run_info.json").read_bytes())
    plan = RunStore._normalized_attempt_plan(info["request"]["execution"]["attempts"])
    params: dict[str, Any] = {
        **info["request"],
        "output": {"run_id": "again"},
        "runtime": {"reuse": True, "reuse_run_id": run.name},
    }
    root = store._get_output_root(params)
    root.mkdir(parents=True)
    run.rename(root / run.name)
    gc.collect()
    gc.freeze()
    wall, cpu = time.perf_counter(), time.process_time()
    output = store._get_output_directory(params)
    store.write_run_info(output, dict(params), params)
    found = asyncio.run(_reuse(store, tasks, params, plan))
    told = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({**told, "copied": found["copied"], "failed": found["failed"]}))


async def _reuse(
    store: RunStore, tasks: list[dict[str, Any]], params: dict[str, Any], plan: dict[str, Any]
) -> dict[str, int]:
    await store.materialize_reused_evaluation_checkpoints(tasks, params)
    found: dict[str, int] = await store.materialize_reused_details(
        tasks, params, expected_attempt_plan=plan
    )
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
