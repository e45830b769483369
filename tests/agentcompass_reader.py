"""What AgentCompass itself reads from run directories; run by a Python that has it installed.

    python tests/agentcompass_reader.py DIR…

Prints one JSON document: by directory, what its store, its summary command and the reader of its
viewer make of the files. A file that any of them refuses is an error.
"""

import contextlib
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agentcompass.cli.main import summary_command
from agentcompass.launcher import summary
from agentcompass.runtime.base import BaseBenchmark
from agentcompass.runtime.metrics.contract import make_metric_contract
from agentcompass.runtime.metrics.report import MetricReport
from agentcompass.runtime.registry import BENCHMARKS, load_builtin_components
from agentcompass.runtime.results.store import RunStore
from agentcompass.viewer import reader


def read(directory: Path) -> dict[str, Any]:
    """One directory, read in all three ways."""
    results = RunStore(SimpleNamespace(model="m")).load_persisted_results(directory)
    run = reader.read_run(str(directory))
    found: dict[str, Any] = {
        "results": {one["task_id"]: one for one in results},
        "run": run,
        "counts": reader.read_run_counts(str(directory)),
        "details": details(directory),
        "metrics": report(directory),
        "summary": None,
    }
    if results:
        stand_in(run["runInfoJson"]["request"]["benchmark"]["id"], results)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert summary_command(str(directory), dry_run=True) == 0
        again = summary(directory, dry_run=True)["metrics"]
        found["summary"] = MetricReport.model_validate(again).model_dump(mode="json")
        found["markdown"] = printed.getvalue()
    return found


def report(directory: Path) -> dict[str, Any] | None:
    """The metric report that stands there, through AgentCompass's strict model."""
    file = directory / "metrics.json"
    if not file.exists():
        return None
    return MetricReport.model_validate(json.loads(file.read_text())).model_dump(mode="json")


def details(directory: Path) -> dict[str, Any]:
    """Every task as the viewer shows it, with every step of every attempt."""
    page = reader.read_details_page(str(directory), 1, 200)
    assert page["total"] <= 200
    shown = {}
    for card in page["details"]:
        told = reader.read_detail(str(directory), card["fileName"])
        for number, attempt in told["detail"]["attempts"].items():
            for index in range(len((attempt["trajectory"] or {"steps": []})["steps"])):
                reader.read_detail_step(str(directory), card["fileName"], number, index)
        shown[card["taskId"]] = {
            "card": card,
            "detail": told["detail"],
            "retries": told["retryDetails"],
        }
    return shown


def stand_in(name: str, results: list[dict[str, Any]]) -> None:
    """Register a benchmark of this id that declares the metrics that were measured."""
    load_builtin_components()
    kinds: dict[str, bool] = {}
    for result in results:
        for attempt in result["attempts"].values():
            for metric, value in attempt["metrics"].items():
                kinds[metric] = kinds.get(metric, True) and isinstance(value, bool)
    primary = "score" if "score" in kinds and "correct" not in kinds else "correct"
    kinds.setdefault(primary, primary == "correct")
    contract = make_metric_contract(
        primary=primary,
        binary=tuple(name for name, is_truth in kinds.items() if is_truth),
        scalar=tuple(name for name, is_truth in kinds.items() if not is_truth),
    )
    body = {"description": "Stands in.", "metric_contract": contract, "load_tasks": lambda *_: []}
    for method in BaseBenchmark.__abstractmethods__:
        body.setdefault(method, None)
    BENCHMARKS._entries.pop(name, None)
    BENCHMARKS.register(name)(type("StandIn", (BaseBenchmark,), body))


if __name__ == "__main__":
    documents = {argument: read(Path(argument)) for argument in sys.argv[1:]}
    json.dump(documents, sys.stdout, default=str)
