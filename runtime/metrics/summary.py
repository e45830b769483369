"""The finished request: what finalization hands back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ledger.state import Counts, RunState
from runtime.metrics.observations import label
from runtime.results import MetricResult, RequestResult


def summarize_results(
    state: RunState,
    metrics: MetricResult | None,
    *,
    paths: Mapping[str, str] | None = None,
    applied_recipes: Sequence[str] = (),
) -> RequestResult:
    """Put the new and the reused tasks of a run together with its metrics.

    `metadata` names the run and what was run; `summary` holds the counts, the counts of each
    category, and what the counted and the discarded tries spent.
    """
    request = state.request
    counted, discarded = state.spend()
    metadata: dict[str, Any] = {
        "run_id": state.run_id,
        "ledger_id": state.ledger_id,
        "benchmark": state.benchmark or request.get("benchmark", {}).get("id"),
        "benchmark_version": state.benchmark_version,
        "harness": request.get("harness", {}).get("id"),
        "model": request.get("model", {}).get("id"),
        "k": state.k,
        "strategy": state.strategy,
    }
    summary: dict[str, Any] = {
        "counts": asdict(state.counts()),
        "by_category": _by_category(state),
        "spend": {"counted": asdict(counted), "discarded": asdict(discarded)},
    }
    return RequestResult(
        metadata=metadata,
        metrics=metrics,
        summary=summary,
        paths=dict(paths or {}),
        applied_recipes=list(applied_recipes),
    )


def _by_category(state: RunState) -> dict[str, dict[str, int]]:
    found: dict[str, Counts] = {}
    for task in state.tasks.values():
        found.setdefault(label(task.category), Counts()).add(task)
    return {category: asdict(found[category]) for category in sorted(found)}
