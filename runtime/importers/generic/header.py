"""The optional first line: what is known of the run as a whole."""

from dataclasses import dataclass, field
from typing import Any, Final

from ledger.errors import UsageError, VersionUnsupported
from runtime.importers.times import utc
from runtime.models import Strategy

FORMAT: Final = "generic"
MARK: Final = "acl.generic"
VERSION: Final = 1

_TEXTS: Final = ("benchmark", "benchmark_version", "model", "harness", "run_id", "run_name")


@dataclass(frozen=True, slots=True)
class Header:
    """The words of the first line; empty or None for what it does not tell.

    `tasks` are the ids that were planned, `records` the number of lines that follow in all files.
    """

    benchmark: str = ""
    benchmark_version: str = ""
    model: str = ""
    harness: str = ""
    run_id: str = ""
    run_name: str = ""
    k: int | None = None
    strategy: Strategy = "all"
    tasks: tuple[str, ...] = ()
    records: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    words: dict[str, Any] = field(default_factory=dict)


def is_header(value: dict[str, Any]) -> bool:
    """True for an object that says that it is a first line."""
    return MARK in value


def read_header(value: dict[str, Any], place: str) -> Header:
    """Read a first line; UsageError for a wrong type: nothing of such a file could be trusted."""
    version = value[MARK]
    if type(version) is not int or version < 1:
        raise UsageError(f"{place}: {MARK} is {version!r}, not the number of a version")
    if version > VERSION:
        raise VersionUnsupported(f"{place} is of version {version}, newer than {VERSION}")
    texts = {name: value.get(name) or "" for name in _TEXTS}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise UsageError(f"{place}: {name} is no text")
    return Header(
        **texts,
        k=_count(value, "k", 1, place),
        strategy=_strategy(value.get("strategy"), place),
        tasks=_tasks(value.get("tasks"), place),
        records=_count(value, "records", 0, place),
        started_at=utc(value.get("started_at")),
        finished_at=utc(value.get("finished_at")),
        words={name: item for name, item in value.items() if name != "tasks"},
    )


def task_id_of(value: Any) -> str | None:
    """A task's id: a text that is not empty, or the decimal digits of a whole number."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value else None


def _count(value: dict[str, Any], name: str, least: int, place: str) -> int | None:
    number = value.get(name)
    if number is None:
        return None
    if type(number) is not int or number < least:
        raise UsageError(f"{place}: {name} is no whole number of at least {least}")
    return number


def _strategy(value: Any, place: str) -> Strategy:
    match value:
        case None | "all":
            return "all"
        case "stop_on_correct":
            return "stop_on_correct"
        case _:
            raise UsageError(f"{place}: strategy is {value!r}, not all or stop_on_correct")


def _tasks(value: Any, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    ids = [task_id_of(item) for item in value] if isinstance(value, list) else [None]
    found = tuple(one for one in ids if one is not None)
    if len(set(found)) != len(ids):
        raise UsageError(f"{place}: tasks is no list of task ids, each different")
    return found
