"""With which settings reused tasks ran otherwise, as `acl show` and `acl log` tell it."""

from collections.abc import Iterator
from json import dumps
from typing import Any


def differences(state: Any) -> list[dict[str, Any]]:
    """What was recorded, one object each: the run that ran so, path, value there, value here."""
    frozen = state.frozen
    return [
        {
            "run_id": one.run_id or frozen.run_id,
            "path": one.path,
            "there": one.before,
            "here": one.now,
        }
        for one in (frozen.differences if frozen else None) or ()
    ]


def spoken_differences(state: Any) -> Iterator[str]:
    """A line for each, without characters that a terminal obeys."""
    for one in differences(state):
        there, here = (dumps(one[name]) for name in ("there", "here"))
        path, run_id = (dumps(one[name])[1:-1] for name in ("path", "run_id"))
        how = "asked for" if path.startswith("execution.") else "run"
        yield f"{how} otherwise in run {run_id}: {path}, there {there}, here {here}"
