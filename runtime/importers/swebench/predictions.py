"""Predictions: the patch of each instance, in any of the forms that the harness takes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runtime.importers.jsontext import NotARecord, read_record


@dataclass(slots=True)
class Predictions:
    """Patches by instance, the models that they name, and what could not be read."""

    patches: dict[str, str | None] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)
    faults: list[tuple[str, bool]] = field(default_factory=list)
    """Why something has no place, and whether only a crash is behind it."""
    rest: dict[str, dict[str, Any]] = field(default_factory=dict)


def add_predictions(found: Predictions, path: str, data: bytes) -> None:
    """Read a file: JSON lines, a list, or an object by instance."""
    if path.endswith(".jsonl"):
        for number, line in enumerate(data.splitlines(keepends=True), 1):
            if line.strip():
                _add_line(found, number, line)
        return
    for place, value in _values(found, data):
        if not isinstance(value, dict):
            found.faults.append((f"{place}: no object", False))
        elif (fault := _add(found, value)) is not None:
            found.faults.append((f"{place}: {fault}", False))


def _add_line(found: Predictions, number: int, line: bytes) -> None:
    try:
        fault = _add(found, read_record(line).value)
    except NotARecord as why:
        found.faults.append((f"line {number}: {why}", why.cut and not line.endswith(b"\n")))
        return
    if fault is not None:
        found.faults.append((f"line {number}: {fault}", False))


def _values(found: Predictions, data: bytes) -> Iterator[tuple[str, Any]]:
    if data.lstrip()[:1] == b"[":
        # A list is read as the only value of an object, so by the same strict rules.
        data = b'{"":' + data + b"}"
    try:
        value = read_record(data).value
    except NotARecord as why:
        found.faults.append((str(why), why.cut))
        return
    if isinstance(value.get(""), list):
        yield from ((f"[{number}]", one) for number, one in enumerate(value[""]))
    elif "instance_id" in value:
        yield "it", value
    else:
        yield from ((name, _named(name, one)) for name, one in value.items())


def _named(name: str, value: Any) -> Any:
    return {"instance_id": name, **value} if isinstance(value, dict) else value


def _add(found: Predictions, value: dict[str, Any]) -> str | None:
    name, patch, model = (
        value.get(key) for key in ("instance_id", "model_patch", "model_name_or_path")
    )
    if not isinstance(name, str) or not name:
        return "it has no instance_id"
    if patch is not None and not isinstance(patch, str):
        return f"the model_patch of {name} is no text"
    if name in found.patches and found.patches[name] != patch:
        return f"another prediction for {name}"
    found.patches[name] = patch
    if isinstance(model, str) and model:
        found.models.add(model)
    known = ("instance_id", "model_patch", "model_name_or_path")
    rest = {key: item for key, item in value.items() if key not in known}
    if rest:
        found.rest[name] = rest
    return None


def as_json(patch: str | None) -> str:
    """A patch as it can be compared: the harness writes none where there is no text."""
    return json.dumps((patch or "").strip())
