"""Payloads in a file, one JSON document a line: every subject of every round stores the same.

The plan of each attempt is as large as those that AgentCompass resolves: 0.9 kB, nearly the same
in all of them.
"""

import gc
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.content import Attempt, attempts

_NETWORK: Final = {"allowed_hosts": [], "denied_hosts": [], "network_mode": "public"}
# The fields and values of a plan that AgentCompass 1.0.1 recorded in a real run.
_PLAN: Final[dict[str, Any]] = {
    "applied_recipes": [],
    "artifact_collect_timeout_seconds": None,
    "artifact_collection_supported": True,
    "artifact_limits": {"max_files": 100_000, "max_mb": 16_384, "timeout_seconds": 600.0},
    "collect_artifacts": True,
    "environment": {
        "baseline_network_policy": _NETWORK,
        "id": "host_process",
        "resources": {},
        "setup": {},
    },
    "evaluation_environment": None,
    "evaluation_environment_mode": "none",
    "evaluation_network_policy": _NETWORK,
    "evaluation_timeout_seconds": None,
    "run_network_policy": _NETWORK,
    "run_timeout_seconds": None,
    "run_timer_compensation_seconds": 120.0,
    "runresult_collect_timeout_seconds": 60.0,
    "save_artifacts": False,
}


def payload_file(directory: Path, count: int) -> Path:
    """Return a file of at least `count` attempts in `directory`, made if need be."""
    path = directory / "attempts.jsonl"
    if path.exists():
        with path.open("rb") as lines:
            if sum(1 for _ in lines) >= count:
                return path
    new = path.with_suffix(f".{os.getpid()}")
    with new.open("w", encoding="utf-8") as out:
        for attempt in attempts(count):
            told = asdict(attempt)
            told["plan"] = _PLAN | told["plan"]
            out.write(json.dumps(told) + "\n")
    new.replace(path)
    return path


def read(path: Path, count: int) -> list[Attempt]:
    """Read the first `count` attempts; the collector looks at them no more."""
    found = list(_read(path, count))
    gc.collect()
    gc.freeze()
    return found


def _read(path: Path, count: int) -> Iterator[Attempt]:
    with path.open("rb") as lines:
        for line in islice(lines, count):
            told = json.loads(line)
            yield Attempt(**{**told, "errors": tuple(told["errors"])})
