"""Under which settings the tasks of a source ran: its own, or those of runs that it reused itself.

A source tells only where it differs from the runs that it reused (`reuse.frozen`). What a task ran
with is what its source was asked for, with these differences put back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.events import Differing
from ledger.state import RunState
from ledger.view import LedgerView
from runtime.lineage import SourceRun, lineage

__all__ = ["Makers", "find_makers", "put_back"]


@dataclass(frozen=True, slots=True)
class Makers:
    """Who ran what a source holds as done.

    `itself`: it ran tasks itself, or with the settings that it was asked for. `others` are, by run
    id, where other runs differed from these. `unknown` are runs of which nobody can tell.
    """

    itself: bool = True
    others: dict[str, tuple[Differing, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def find_makers(state: RunState, view: LedgerView) -> Makers:
    """Read who ran the tasks of a source that can be reused; without any the source itself did."""
    done = [task for task in state.tasks.values() if task.stage == "done" and not task.has_error]
    if not any(task.reused for task in done):
        frozen = state.frozen
        # An import may have been told that its run reused another, and not for which tasks.
        if state.imported is not None and frozen is not None and frozen.run_id is not None:
            return Makers(unknown=(frozen.run_id,))
        return Makers()
    told = _told(state)
    own = any(not task.reused for task in done)
    others: dict[str, tuple[Differing, ...]] = {}
    unknown: set[str] = set()
    for maker, known in _makers(lineage(view).sources):
        if not known:
            unknown.add(maker)
        elif maker in told:
            others[maker] = told[maker]
        else:
            own = True
    return Makers(own, dict(sorted(others.items())), tuple(sorted(unknown)))


def _told(state: RunState) -> dict[str, tuple[Differing, ...]]:
    """What the source recorded of each run that its tasks come from."""
    frozen = state.frozen
    if frozen is None or frozen.run_id is None:
        return {}
    told: dict[str, tuple[Differing, ...]] = {}
    for one in frozen.differences or ():
        maker = one.run_id or frozen.run_id
        told[maker] = (*told.get(maker, ()), one)
    return told


def _makers(
    sources: list[SourceRun], within: SourceRun | None = None
) -> Iterator[tuple[str, bool]]:
    """(run id, whether its settings can be known) of each run that ran tasks itself."""
    for source in sources:
        if source.kind == "claimed":
            # Exported files say that they are of the run as which they were read, or of another.
            yield source.run_id, within is not None and within.run_id == source.run_id
            continue
        yield from _makers(source.sources, source)
        if source.tasks > sum(one.tasks for one in source.sources):
            yield source.run_id, True


def put_back(section: dict[str, Any], differences: tuple[Differing, ...]) -> dict[str, Any]:
    """The section of settings as it was where `differences` are told; nothing given is changed."""
    found = dict(section)
    for one in differences:
        _put(found, one.path.split("."), one.before)
    return found


def _put(section: dict[str, Any], path: list[str], value: Any) -> None:
    name, *rest = path
    if rest:
        inner = section.get(name)
        section[name] = dict(inner) if isinstance(inner, Mapping) else {}
        _put(section[name], rest, value)
    elif value is None:
        section.pop(name, None)
    else:
        section[name] = value
