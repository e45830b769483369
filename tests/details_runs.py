"""Runs in the layout `details` for tests: exported trees, foreign directories, and the door."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from exporters.compare import TreeComparison, compare_trees
from exporters.details import LAYOUT, export_details
from exporters.identity import Identity
from exporters.write import write_tree
from ledger import LedgerView, RunState, fold
from runtime.importers import ImportReport, import_path
from runtime.importers.agentcompass import AgentCompass
from runtime.importers.details import Details
from tests.importer_runs import create


def points(_: str) -> list[Any]:
    return [
        SimpleNamespace(name="agentcompass", load=lambda: AgentCompass),
        SimpleNamespace(name="details", load=lambda: Details),
    ]


def do_import(path: Path, results: Path, **options: Any) -> ImportReport:
    return import_path(path, results_dir=results, **{"create": create, "points": points, **options})


def export(run: Path, target: Path) -> RunState:
    """Export the ledger of a run; returns the state that was projected."""
    with LedgerView.open(run) as view:
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, target, identity=Identity.of(state), layout=LAYOUT)
    return state


def round_trip(run: Path, scratch: Path) -> tuple[ImportReport, TreeComparison]:
    """Export a run, import what was written, export that; the report and the comparison."""
    export(run, scratch / "first")
    report = do_import(scratch / "first", scratch / "results")
    export(report.path, scratch / "second")
    return report, compare_trees(scratch / "first", scratch / "second")


# -- directories of other programs ------------------------------------------------------------


def write_json(path: Path, value: Any, *, ascii_only: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=2, ensure_ascii=ascii_only) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def record(task_id: str, *attempts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A record as another program writes it: no `acl`, and only what is needed."""
    return {
        "task_id": task_id,
        "category": None,
        "attempts": {str(number): attempt for number, attempt in enumerate(attempts, 1)},
        **fields,
    }


def right(**fields: Any) -> dict[str, Any]:
    return {"status": "completed", "correct": True, "score": 1.0, "final_answer": "42", **fields}


def failed(**fields: Any) -> dict[str, Any]:
    return {"status": "run_error", "error": "429: slow down", **fields}


def foreign_run(run: Path, **info: Any) -> Path:
    """Two tasks, right and failed, in a directory that no export of ours wrote."""
    write_json(
        run / "run_info.json",
        {
            "schema_version": "agentcompass.run_info.v1",
            "run_id": "old",
            "status": "completed",
            "started_at": "2025-01-02T03:04:05Z",
            "finished_at": "2025-01-02T03:05:05Z",
            "request": {
                "benchmark": {"id": "bench", "params": {}},
                "harness": {"id": "agent"},
                "model": {"id": "model", "api_key": "********"},
                "execution": {"k": 1},
                "output": {"run_id": "old", "run_name": ""},
            },
            **info,
        },
    )
    write_json(run / "details" / "t1.json", record("t1", right()))
    write_json(run / "details" / "_error_t2.json", record("t2", failed()))
    return run


def edit(path: Path, change: Any) -> None:
    """Read a JSON file, let `change` work on it, and write it as exports do."""
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8", "backslashreplace"))
