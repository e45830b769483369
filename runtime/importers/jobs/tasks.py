"""Which trials are attempts at one task, what the task is called, and in which order they count.

The attempts at a task are numbered by when they started, then by the names of their directories;
those that do not say when come last. So the same files give the same numbers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from runtime.importers.jobs.facts import (
    ADHOC,
    CUT_AT,
    Facts,
    Kind,
    kind_of,
    name_in,
    task_name_of,
)

_Key = tuple[Kind, str, str | None]
_Plan = tuple[Kind, str]
_END_OF_CUT: Final = "_-"
_LAST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class JobTask:
    """One task of the run: its trials by number, and how many the job planned (None: not told)."""

    id: str
    kind: Kind
    name: str
    task_id: str | None
    checksums: tuple[str, ...] = ()
    trials: dict[int, str] = field(default_factory=dict)
    planned: int | None = None


@dataclass(slots=True)
class Tasks:
    """All tasks of a job by name; `guessed` are trials whose task only their directory tells."""

    tasks: list[JobTask]
    kinds: list[Kind]
    guessed: list[str]


def arrange(trials: Sequence[Facts], lock: Mapping[str, Any]) -> Tasks:
    """Put the trials to tasks, with those that `lock.json` planned and nobody tried."""
    meaning = {one.configured: one.kind for one in trials if one.configured is not None}
    planned = _planned(lock, meaning, {one.kind for one in trials if one.ended})
    kinds = {one.kind for one in trials if one.ended} or {kind for kind, _ in planned}
    named = {one.task_name for one in trials if one.ended} | {name for _, name in planned}
    known = {name for name in named if name is not None}
    groups: dict[_Key, list[Facts]] = {}
    guessed = []
    for facts in sorted(trials, key=lambda one: not one.ended):
        name = facts.task_name
        if name is None:
            guessed.append(facts.name)
            name = _told_by(facts.name, known)
        kind = facts.kind if facts.ended else _meant(facts.kind, meaning, kinds)
        groups.setdefault(_group(kind, name, facts.task_id, groups), []).append(facts)
    for kind, name in planned:
        groups.setdefault(_group(kind, name, None, groups), [])
    return _named(groups, planned, guessed)


def _group(kind: Kind, name: str, task_id: str | None, groups: Mapping[_Key, Any]) -> _Key:
    """The task of a trial; one that does not say which of a name it is goes to the first."""
    if task_id is None:
        for key in groups:
            if key[:2] == (kind, name):
                return key
    return kind, name, task_id


def _meant(kind: Kind, meaning: Mapping[Kind, Kind], kinds: set[Kind]) -> Kind:
    """The kind that a configuration means: what others so configured were, or the only one."""
    if kind in meaning:
        return meaning[kind]
    same = [one for one in kinds if kind.source in (None, one.source)]
    close = [one for one in same if one.agent == kind.agent] or same
    return close[0] if len(close) == 1 and kind not in kinds else kind


def _named(
    groups: Mapping[_Key, list[Facts]], planned: Counter[_Plan], guessed: list[str]
) -> Tasks:
    kinds = sorted({kind for kind, _, _ in groups}, key=lambda kind: kind.key)
    several = len({kind.player for kind in kinds}) > 1
    same_name = Counter((kind.player, name) for kind, name, _ in groups)
    same_source = Counter((kind, name) for kind, name, _ in groups)
    found = []
    for (kind, name, task_id), trials in groups.items():
        alone = same_source[kind, name] == 1
        words = [name] if alone or task_id is None else [name, task_id]
        if same_name[kind.player, name] > same_source[kind, name]:
            words.insert(0, kind.source or ADHOC)
        if several:
            words.insert(0, kind.player)
        checksums = dict.fromkeys(one.checksum for one in trials if one.checksum is not None)
        found.append(
            JobTask(
                id="/".join(words),
                kind=kind,
                name=name,
                task_id=task_id,
                checksums=tuple(checksums),
                trials=_numbered(trials),
                planned=planned.get((kind, name)) if alone else None,
            )
        )
    return Tasks(sorted(found, key=lambda task: task.id), kinds, guessed)


def _numbered(trials: Sequence[Facts]) -> dict[int, str]:
    told = [facts.number for facts in trials]
    if all(told) and len(set(told)) == len(told):
        return {number: facts.name for number, facts in zip(told, trials, strict=True) if number}
    ordered = sorted(trials, key=lambda one: (_moment(one.started_at), one.name))
    return {number: facts.name for number, facts in enumerate(ordered, 1)}


def _moment(told: str | None) -> datetime:
    """When a trial started. A time without a zone is put in order as if it were UTC."""
    try:
        found = datetime.fromisoformat(told or "")
    except ValueError:
        return _LAST
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _told_by(trial: str, known: set[str]) -> str:
    """The task whose name the trial's directory begins with, if there is exactly one."""
    if trial in known:
        return trial
    begun = name_in(trial)
    fitting = [name for name in known if _cut(name) == begun]
    return fitting[0] if len(fitting) == 1 else begun


def _cut(name: str) -> str:
    return name.rpartition("/")[2][:CUT_AT].rstrip(_END_OF_CUT)


def _planned(
    lock: Mapping[str, Any], meaning: Mapping[Kind, Kind], kinds: set[Kind]
) -> Counter[_Plan]:
    """How many trials `lock.json` plans of each task."""
    found: Counter[_Plan] = Counter()
    trials = lock.get("trials")
    for trial in trials if isinstance(trials, list) else []:
        if isinstance(trial, dict) and isinstance(trial.get("task"), dict):
            name = task_name_of(trial["task"])
            if name is not None:
                found[_meant(kind_of(trial), meaning, kinds), name] += 1
    return found
