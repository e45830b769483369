"""What two runs are compared by: their state, their exported records, their metrics."""

import json
from pathlib import Path
from typing import Any

from exporters.details import export_details
from ledger import LedgerView
from ledger.fold import fold
from ledger.state import RunState


def state_of(path: Path) -> RunState:
    with LedgerView.open(path) as view:
        return fold(view.events())


def projected(path: Path) -> dict[str, Any]:
    """The details and counts of a run, lineage set aside."""
    found: dict[str, Any] = {}
    with LedgerView.open(path) as view:
        for file in export_details(fold(view.events()), view):
            if file.path.startswith("details/") or file.path == ".summary_counts.json":
                data = file.data if isinstance(file.data, bytes) else b"".join(file.data)
                found[file.path] = without(json.loads(data), {"acl", "reused"})
    return found


def without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: without(item, names) for key, item in value.items() if key not in names}
    return [without(item, names) for item in value] if isinstance(value, list) else value


def metrics(path: Path) -> tuple[dict[str, float], dict[str, Any]]:
    _, _, event = state_of(path).metrics[-1]
    return dict(event.metrics), dict(event.details)
