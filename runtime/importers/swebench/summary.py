"""The report of a run: which instances it counts as what.

Schema version 2 is that of swebench.harness.reporting.make_run_report; the older one lists
`resolved`, `no_generation` and `no_logs`, as results on the leaderboard do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ledger.errors import VersionUnsupported
from runtime.importers.jsontext import NotARecord, read_record

NEWEST: Final = 2

_KINDS: Final = {
    "resolved_ids": "resolved",
    "unresolved_ids": "unresolved",
    "error_ids": "error",
    "empty_patch_ids": "empty_patch",
    "incomplete_ids": "incomplete",
}
_OLDER: Final = {
    "resolved": "resolved",
    "no_generation": "empty_patch",
    "no_logs": "error",
    "no_apply": "no_apply",
    "reset_failed": "error",
    "install_fail": "error",
    "test_errored": "error",
    "test_timeout": "error",
}
_ALL: Final = ("submitted_ids", "completed_ids")
_OLDER_ALL: Final = ("generated", "with_logs", "applied")
"""In the older form what was tried and is nowhere else was not resolved."""
_COUNTED: Final = {
    "resolved_instances": "resolved_ids",
    "unresolved_instances": "unresolved_ids",
    "error_instances": "error_ids",
    "empty_patch_instances": "empty_patch_ids",
    "completed_instances": "completed_ids",
    "submitted_instances": "submitted_ids",
}


@dataclass(slots=True)
class Summary:
    """What the report says: a kind for each instance, in its order, and why where it tells.

    `complete` is True if every instance of the run is listed, so that one that is not is none.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    words: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    version: str | None = None
    complete: bool = False
    faults: list[str] = field(default_factory=list)


def read_summary(data: bytes, path: str) -> Summary:
    """Read a report; NotARecord if it is none, VersionUnsupported if it is a newer one."""
    value = read_record(data).value
    version = value.get("schema_version")
    if type(version) is int and version > NEWEST:
        raise VersionUnsupported(f"{path} has schema_version {version}, newer than {NEWEST}")
    newer = "resolved_ids" in value
    found = Summary(
        version=None if version is None else str(version),
        complete=newer or any(isinstance(value.get(name), list) for name in _OLDER_ALL),
        words={name: item for name, item in value.items() if not isinstance(item, list | dict)},
        numbers={
            name: item
            for name, item in value.items()
            if name.endswith("_instances") and type(item) is int
        },
    )
    kinds = _KINDS if newer else _OLDER
    for name, kind in kinds.items():
        for one in _ids(value, name, found):
            before = found.kinds.setdefault(one, kind)
            if before != kind:
                found.faults.append(f"{one} is listed as {before} and as {kind}")
            if not newer and kind == "error":
                found.reasons.setdefault(one, name)
    for name in _ALL if newer else _OLDER_ALL:
        for one in _ids(value, name, found):
            found.kinds.setdefault(one, "submitted" if newer else "unresolved")
    reasons = value.get("failure_reasons")
    if isinstance(reasons, dict):
        found.reasons |= {one: str(why) for one, why in reasons.items()}
    found.faults += _miscounted(value)
    return found


def _ids(value: dict[str, Any], name: str, found: Summary) -> Iterator[str]:
    given = value.get(name)
    if given is None:
        return
    if not isinstance(given, list):
        raise NotARecord(f"{name} is no list")
    yield from dict.fromkeys(one for one in given if isinstance(one, str))
    odd = len(given) - len({one for one in given if isinstance(one, str)})
    if odd:
        found.faults.append(f"{name} has {odd} entries that are no instance, or one again")


def _miscounted(value: dict[str, Any]) -> Iterator[str]:
    for number, name in _COUNTED.items():
        told, listed = value.get(number), value.get(name)
        if type(told) is int and isinstance(listed, list) and told != len(listed):
            yield f"{number} is {told}, and {name} lists {len(listed)}"
