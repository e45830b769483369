"""Stands in for AgentCompass: the classes that the hook follows, and a run that is acted again.

The methods have the names, parameters and files of release 1.0.1; what they write is copied from a
real run, in the order in which that program writes it. The program itself is asked by
`make test-agentcompass`.
"""

import asyncio
import hashlib
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from runtime.agentcompass_hook import RECIPE_DIR, seams


class Layout:
    def __init__(self, root: Path) -> None:
        self.root = root

    def attempt_dir(self, task_id: str, attempt: int) -> Path:
        (home,) = self.root.glob(f"details/running/{name_of(task_id)}")
        return home / f"attempt-{attempt}"


def name_of(task_id: str) -> str:
    return f"*--{hashlib.sha256(task_id.encode()).hexdigest()}"


class RunStore:
    def __init__(self, source: Path, run: Path) -> None:
        self.source, self.run = source, run

    def _get_results_root(self) -> Path:
        return self.run.parent

    def _get_output_directory(self, params: Any) -> Path:
        return self.run

    def write_run_info(self, output_dir: Any, request_payload: Any, params: Any) -> Path:
        self.run.mkdir(parents=True)
        info = json.loads((self.source / "run_info.json").read_text())
        kept = ("request", "run_id", "schema_version", "started_at", "reused_from")
        told = {name: info[name] for name in kept if name in info}
        (self.run / "run_info.json").write_text(json.dumps(told, indent=2, sort_keys=True))
        return self.run / "run_info.json"

    async def record_resolved_execution_plan(
        self, output_dir: Any, task_id: str, attempt: int, plan_payload: Any
    ) -> None:
        info = json.loads((self.run / "run_info.json").read_text())
        plans = info.setdefault("resolved_execution_plans", {})
        plans.setdefault(task_id, {"attempts": {}})["attempts"][str(attempt)] = plan_payload
        (self.run / "run_info.json").write_text(json.dumps(info, indent=2, sort_keys=True))

    async def save_evaluation_checkpoint(
        self, checkpoint: Any, params: Any, *, limits: Any = None
    ) -> None:
        return None

    async def save_retry_detail(self, payload: Any, params: Any) -> str:
        return str(payload["written"])

    async def save_partial_result(self, result: Any, params: Any) -> str:
        at_work, target = result
        shutil.copyfile(self.source / "params.json", self.run / "params.json")
        target.parent.mkdir(parents=True, exist_ok=True)
        at_work.rename(target)
        return str(target / "task.json")

    async def save_results(self, results: Any, params: Any) -> None:
        for name in ("metrics.json", "summary.md"):
            shutil.copyfile(self.source / name, self.run / name)

    async def save_analysis_summary(self, params: Any, output_dir: Any = None) -> None:
        return None

    def write_terminal_status(self, output_dir: Any, status: str, error: str = "") -> None:
        shutil.copyfile(self.source / "run_info.json", self.run / "run_info.json")


class RunAttemptCheckpointRepository:
    def __init__(self, run: Path) -> None:
        self.layout = Layout(run)

    async def save(self, checkpoint: Any) -> None:
        return None


class UnifiedEvaluationRuntime:
    output_dir: Path

    async def prepare(self, *, reporter: Any = None) -> Any:
        return self.prepared


def classes() -> dict[str, type]:
    """Fresh classes, by the modules in which the hook looks for them."""
    kinds = {
        "agentcompass.runtime.results.store": RunStore,
        "agentcompass.runtime.attempts.repository": RunAttemptCheckpointRepository,
        "agentcompass.runtime.runner": UnifiedEvaluationRuntime,
    }
    return {module: type(kind.__name__, (), _own(kind)) for module, kind in kinds.items()}


def _own(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if name not in _SLOTS}


_SLOTS = {"__dict__", "__weakref__"}


def install(monkeypatch: Any, version: str = seams.MADE_FOR) -> dict[str, type]:
    """Put the stand-in where the hook imports it from; give its classes by their names."""
    found = classes()
    for module, kind in found.items():
        stand_in = ModuleType(module)
        setattr(stand_in, kind.__name__, kind)
        monkeypatch.setitem(sys.modules, module, stand_in)
    monkeypatch.setattr(seams.metadata, "version", lambda _: version)
    return {kind.__name__: kind for kind in found.values()}


class Acted:
    """A real run, acted again through the stand-in."""

    def __init__(self, kinds: dict[str, type], source: Path, run: Path) -> None:
        self.source, self.run = source, run
        self.store = kinds["RunStore"](source, run)
        self.repository = kinds["RunAttemptCheckpointRepository"](run)
        self.runtime = kinds["UnifiedEvaluationRuntime"]()
        self.info = json.loads((source / "run_info.json").read_text())
        self.plans = self.info.get("resolved_execution_plans", {})

    def begin(self, recipe_dirs: list[str] | None = None) -> None:
        dirs = [str(RECIPE_DIR)] if recipe_dirs is None else recipe_dirs
        request = {"benchmark": {"id": "acl_demo"}, "metadata": {"recipe_dirs": dirs}}
        self.store.write_run_info(self.run, request, {})
        self.runtime.output_dir = self.run
        tasks = [SimpleNamespace(**task) for task in self.tasks()]
        self.runtime.prepared = SimpleNamespace(tasks=tasks, reused_results={})
        asyncio.run(self.runtime.prepare())

    def tasks(self) -> list[dict[str, Any]]:
        found = []
        for file in sorted(self.source.glob("details/*/*/task.json")):
            index = json.loads(file.read_text())
            names = ("task_id", "category", "ground_truth")
            found.append({name: index.get(name) for name in names})
        return found

    def act(self, *, count: int | None = None) -> None:
        """Make `count` tasks, all by default."""
        homes = sorted(file.parent for file in self.source.glob("details/[!r]*/*/task.json"))
        for home in homes[:count]:
            asyncio.run(self._task(home))

    async def _task(self, home: Path) -> None:
        index = json.loads((home / "task.json").read_text())
        at_work = self.run / "details" / "running" / home.name
        at_work.mkdir(parents=True)
        shutil.copyfile(home / "task.json", at_work / "task.json")
        for number in map(int, index["attempts"]):
            await self._attempt(home, at_work, index["task_id"], number)
        await self.store.save_partial_result(
            (at_work, self.run / "details" / home.parent.name / home.name), {}
        )

    async def _attempt(self, home: Path, at_work: Path, task_id: str, number: int) -> None:
        source, target = home / f"attempt-{number}", at_work / f"attempt-{number}"
        target.mkdir()
        plan = self.plans.get(task_id, {}).get("attempts", {}).get(str(number))
        if plan is not None:
            await self.store.record_resolved_execution_plan(self.run, task_id, number, plan)
        for file in sorted(source.glob("retries/*.json"), key=_retry):
            (target / "retries").mkdir(exist_ok=True)
            shutil.copyfile(file, target / "retries" / file.name)
            await self.store.save_retry_detail({"written": target / "retries" / file.name}, {})
        if (source / "artifacts").is_dir():
            shutil.copytree(source / "artifacts", target / "artifacts")
        saved = json.loads((source / "checkpoint.json").read_text()).get("evaluation")
        if saved is not None:
            checkpoint = SimpleNamespace(
                task_id=task_id, attempt=number, run_result=saved["run_result"]
            )
            await self.store.save_evaluation_checkpoint(checkpoint, {})
        shutil.copyfile(source / "result.json", target / "result.json")
        key = SimpleNamespace(task_id=task_id, attempt_index=number)
        await self.repository.save(SimpleNamespace(key=key, value={}, error=""))

    def end(self) -> None:
        asyncio.run(self.store.save_results({}, {}))
        self.store.write_terminal_status(
            self.run, self.info["status"], error=self.info.get("error", "")
        )


def _retry(file: Path) -> int:
    return int(json.loads(file.read_text())["retry"])
