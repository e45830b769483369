"""Harbor's jobs for tests: real ones, and made-up ones in its words."""

import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from runtime.importers import ImportPlan, ImportReport, Source
from runtime.importers.agentcompass import AgentCompass
from runtime.importers.atif import Atif
from runtime.importers.details import Details
from runtime.importers.jobs import Jobs
from runtime.importers.samples import unpack_sample
from tests import importer_runs

DATA = Path(__file__).parent / "data"
ATIF = DATA / "atif"
START = "2026-01-02T03:04:05.5Z"


def sample(directory: Path, name: str) -> Path:
    """Unpack a job as harbor 0.25.0 wrote it, in an environment of a local shell.

    `sample-job` and `binary-k5` ran the oracle alone, without steps; `variety` two agents on tasks
    with several rewards, none, unreadable ones, and in two steps; `solo` one of these agents, which
    leaves trajectories; `killed` was that, killed at its seventh trial.
    """
    archive = "jobs.tar.xz" if name in ("sample-job", "binary-k5") else "more.tar.xz"
    return unpack_sample(directory / name, DATA / "harbor" / archive, name)


def points(_: str) -> list[Any]:
    return [
        SimpleNamespace(name=importer.name, load=lambda importer=importer: importer)
        for importer in (AgentCompass, Atif, Details, Jobs)
    ]


def do_import(path: Path, results: Path, **options: Any) -> ImportReport:
    return importer_runs.do_import(path, results, **{"points": points, **options})


def write(path: Path, value: Any) -> Path:
    """Write a file: bytes and texts as they are, anything else as Harbor writes JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = value if isinstance(value, bytes | str) else json.dumps(value, indent=4)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def span(second: int) -> dict[str, str]:
    at = f"2026-01-02T03:04:{second:02}.000000Z"
    return {"started_at": at, "finished_at": at}


def raised(kind: str, message: str = "it went wrong") -> dict[str, str]:
    return {
        "exception_type": kind,
        "exception_message": message,
        "exception_traceback": f"Traceback (most recent call last):\n{kind}: {message}\n",
        "occurred_at": "2026-01-02T03:04:59.000000Z",
    }


def trial(name: str, **fields: Any) -> dict[str, Any]:
    """A trial's `result.json`; its task is what stands before `__`."""
    task = name.rpartition("__")[0]
    return {
        "id": "5e0c1a50-0000-4000-8000-000000000000",
        "task_name": task,
        "trial_name": name,
        "trial_uri": f"file:///jobs/job/{name}",
        "task_id": {"path": f"tasks/{task}"},
        "source": "tasks",
        "task_checksum": f"checksum of {task}",
        "config": {"task": {"path": f"tasks/{task}", "source": "tasks"}, "trial_name": name},
        "agent_info": {
            "name": "oracle",
            "version": "1.0.0",
            "model_info": {"name": "gpt-x", "provider": "openai"},
        },
        "agent_result": None,
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": START,
        "finished_at": "2026-01-02T03:05:05Z",
        "environment_setup": span(6),
        "agent_setup": span(7),
        "agent_execution": span(8),
        "verifier": span(9),
        "step_results": None,
        **fields,
    }


def job(path: Path, trials: Iterable[dict[str, Any]] = (), **fields: Any) -> Path:
    """A job of these trials, finished unless `finished_at` is None; counts are left out."""
    trials = list(trials)
    write(
        path / "result.json",
        {
            "id": "5e0c1a50-0000-4000-8000-00000000000f",
            "started_at": "2026-01-02T03:04:05Z",
            "updated_at": "2026-01-02T03:06:05Z",
            "finished_at": "2026-01-02T03:06:05Z",
            "n_total_trials": len(trials),
            "stats": {"n_completed_trials": len(trials)},
            **fields,
        },
    )
    counts: dict[str, int] = {}
    for one in trials:
        counts[one["task_name"]] = counts.get(one["task_name"], 0) + 1
    config = {
        "job_name": path.name,
        "n_attempts": max(counts.values(), default=1),
        "agents": [{"name": "oracle", "model_name": "openai/gpt-x"}],
        "datasets": [{"path": "tasks"}],
    }
    write(path / "config.json", config)
    for one in trials:
        write(path / one["trial_name"] / "result.json", one)
        write(path / one["trial_name"] / "config.json", one["config"])
    return path


def planned(path: Path) -> ImportPlan:
    """What an import would do; no ledger is written, so it is quick."""
    return Jobs().plan(Source.open(path))


def reasons(told: ImportReport | ImportPlan) -> dict[str, list[str]]:
    """What was told, by the file it was told of."""
    found: dict[str, list[str]] = {}
    for remark in told.remarks if isinstance(told, ImportPlan) else told.unplaced:
        found.setdefault(remark.source, []).append(remark.reason)
    return found
