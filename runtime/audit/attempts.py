"""The attempts of one run: how many were planned, made, thrown away and evaluated once more."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.events import AttemptRetried, AttemptReused, ExtensionRecorded
from ledger.state import RunState, Spend
from ledger.view import Recorded
from runtime.audit.report import Attempts, Cost, Source
from runtime.lineage import SourceRun
from runtime.registry import REGISTERED, UNREGISTERED


@dataclass(slots=True)
class Watch:
    """What the state does not keep of the events that pass by."""

    tried_again: int = 0
    evaluated_again: int = 0
    began_ns: int | None = None
    unregistered: bool = False
    registered: Any = None

    def over(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        """Pass `events` on."""
        for recorded in events:
            self._look(recorded)
            yield recorded

    def _look(self, recorded: Recorded) -> None:
        if self.began_ns is None and recorded.attempt is not None and not recorded.copied:
            self.began_ns = recorded.wall_ns
        match recorded.event:
            case AttemptRetried(scope=scope) if not recorded.copied:
                self.tried_again += scope == "attempt"
                self.evaluated_again += scope == "evaluate"
            case AttemptReused() if not recorded.copied:
                self.evaluated_again += 1
            case ExtensionRecorded(name=name) if name == UNREGISTERED:
                self.unregistered = True
            case ExtensionRecorded(name=name, payload=payload) if name == REGISTERED:
                self.registered = payload
            case _:
                pass


def attempts(state: RunState, watch: Watch, planned: int | None) -> Attempts:
    """Count the attempts of a run; what ran elsewhere is told apart and costs nothing here."""
    counted = Counter[str]()
    spent, discarded = Spend(), Spend()
    for task, attempt in state.attempts():
        is_own = not (task.reused or attempt.reused)
        counted["made" if is_own else "reused"] += 1
        counted["without_end"] += attempt.finished is None
        counted["errors"] += attempt.error
        counted["skipped"] += attempt.status == "skipped"
        own, thrown_away = attempt.own_spend()
        spent.add(own)
        spent.add(thrown_away)
        discarded.add(thrown_away)
    return Attempts(
        planned=planned,
        made=counted["made"],
        reused=counted["reused"],
        without_end=counted["without_end"],
        errors=counted["errors"],
        skipped=counted["skipped"],
        stopped_early=_stopped_early(state),
        cancelled_tasks=sum(task.stage == "cancelled" for task in state.tasks.values()),
        discarded_tries=watch.tried_again,
        repeated_evaluations=watch.evaluated_again,
        spent=Cost.of(spent),
        discarded=Cost.of(discarded),
    )


def _stopped_early(state: RunState) -> int:
    """Attempts that were not made since an earlier one was correct."""
    return sum(
        max(0, state.k - len(task.attempts)) for task in state.tasks.values() if task.stopped_early
    )


def sources(found: Iterable[SourceRun], on_disk: Mapping[str, str]) -> list[Source]:
    """The runs that tasks come from, the nearest ones; `on_disk` has places by ledger id."""
    return [
        Source(one.run_id, one.ledger_id, one.tasks, one.attempts, on_disk.get(one.ledger_id))
        for one in found
    ]
