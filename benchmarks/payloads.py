"""Payloads in a file, one JSON document a line: every subject of every round stores the same."""

import gc
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from benchmarks.content import Attempt, attempts


def payload_file(directory: Path, count: int) -> Path:
    """Return a file of at least `count` attempts in `directory`, made if need be."""
    path = directory / "payloads.jsonl"
    if path.exists():
        with path.open("rb") as lines:
            if sum(1 for _ in lines) >= count:
                return path
    new = path.with_suffix(".new")
    with new.open("w", encoding="utf-8") as out:
        for attempt in attempts(count):
            out.write(json.dumps(asdict(attempt)) + "\n")
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
