"""AgentCompass runs for tests: the real samples, small made-up ones, and the door with defaults."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ledger import LedgerView, RunState, canonical, fold
from ledger.canonical import Binary
from ledger.store import Ledger
from runtime.importers import ImportReport, import_path
from runtime.importers.agentcompass import AgentCompass
from runtime.importers.originals import original_bytes
from runtime.importers.samples import unpack_sample
from runtime.recorder import Recorder
from runtime.redact import Redactor

DATA = Path(__file__).parent / "data" / "agentcompass" / "runs.tar.xz"
PLANTED = (b"sk-live-0123456789abcdef", b"abcdefghijklmnop", b"hunter2", b"ground-truth-kept")
"""What the samples hold that must not get into a ledger."""


def sample(directory: Path, name: str) -> Path:
    """Unpack one of the four real runs."""
    if name == "k3-avg":
        return unpack_sample(directory / name)
    return unpack_sample(directory / name, DATA, name)


def points(_: str) -> list[Any]:
    return [SimpleNamespace(name="agentcompass", load=lambda: AgentCompass)]


def create(directory: Path) -> Recorder:
    return Recorder(Ledger.create(directory), Redactor({}), patience=0.0)


def do_import(path: Path, results: Path, **options: Any) -> ImportReport:
    return import_path(path, results_dir=results, **{"create": create, "points": points, **options})


def state_of(report: ImportReport) -> RunState:
    with LedgerView.open(report.path) as view:
        return fold(view.events())


def events(report: ImportReport, kind: str | None = None) -> list[Any]:
    """The events with their values put together, of one type if `kind` is given."""
    with LedgerView.open(report.path) as view:
        found = [one for one in view.events() if kind in (None, one.type)]
        return [
            one.event.model_copy(
                update={
                    name: view.resolve(value)
                    for name, value in one.event
                    if value is not None and not isinstance(value, Binary)
                }
            )
            for one in found
            if one.event is not None
        ]


def originals(report: ImportReport) -> dict[str, Any]:
    """Path of each original, and its event with the content as bytes."""
    return {
        event.path: event.model_copy(update={"content": original_bytes(event.content)})
        for event in events(report, "original.recorded")
    }


def stored_bytes(path: Path) -> Iterator[bytes]:
    """The file itself, and every body, header and piece that can be read from it."""
    yield path.joinpath("ledger.sqlite").read_bytes()
    with LedgerView.open(path) as view:
        for one in view.events():
            header, body = view.raw(one.seq)
            yield header
            yield body
            for piece in canonical.reachable(canonical.decode(body), view.blob):
                yield view.blob(piece)


# -- made-up runs -----------------------------------------------------------------------------


def write_json(path: Path, value: Any) -> Path:
    """Write as AgentCompass does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def result(**fields: Any) -> dict[str, Any]:
    """A `result.json` of a correct attempt."""
    return {
        "status": "completed",
        "metrics": {"correct": True},
        "final_answer": "42",
        "trajectory": {"steps": []},
        "issues": [],
        "artifacts": {},
        "analysis_result": {},
        "meta": {"benchmark": {}, "harness": {}},
        "retry_count": 0,
        **fields,
    }


def task_path(run: Path, task_id: str, state: str = "normal") -> Path:
    digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()
    return run / "details" / state / f"t--{digest}"


def add_task(
    run: Path,
    task_id: str,
    results: dict[int, Any] | None = None,
    *,
    state: str = "normal",
    **fields: Any,
) -> Path:
    """A task with an index and one result per attempt; returns its directory."""
    results = {1: result()} if results is None else results
    path = task_path(run, task_id, state)
    index = {
        "schema_version": "agentcompass.task.v3",
        "task_id": task_id,
        "attempts": {str(number): f"attempt-{number}" for number in results},
        "category": None,
        "ground_truth": "42",
        "attempt_plan": {"k": len(results) or 1, "strategy": "avg"},
        **fields,
    }
    write_json(path / "task.json", index)
    for number, value in results.items():
        if value is not None:
            write_json(path / f"attempt-{number}" / "result.json", value)
    return path


def small_run(run: Path, tasks: int = 1, **info: Any) -> Path:
    """A finished run of `tasks` correct tasks, `t1` and so on."""
    write_json(
        run / "run_info.json",
        {
            "schema_version": "agentcompass.run_info.v3",
            "run_id": "small",
            "status": "completed",
            "started_at": "2026-01-02T03:04:05+02:00",
            "finished_at": "2026-01-02T03:05:05+02:00",
            "request": {
                "benchmark": {"id": "bench"},
                "harness": {"id": "agent"},
                "model": {"id": "model", "api_key": "********"},
                "execution": {"attempts": {"k": 1, "strategy": "avg"}},
                "output": {"run_id": "small", "run_name": ""},
            },
            **info,
        },
    )
    for number in range(1, tasks + 1):
        add_task(run, f"t{number}")
    return run
