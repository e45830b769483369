"""Where the events of a source stand, noted while it is folded, so that it is read only once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, get_args

from ledger import events as ev
from ledger.view import Recorded

_OF_TASKS: Final = frozenset(
    kind.code
    for kind in (*get_args(ev.OneTaskEvent), *get_args(ev.OneAttemptEvent))
    if kind is not ev.TaskReused
)
"""What can be a copy: the original files of an import are not."""


@dataclass(slots=True)
class SourceIndex:
    """The events of each task that can be copied, and the leaf hashes of all, one after another."""

    leaves: bytearray = field(default_factory=bytearray)
    _tasks: dict[str, list[int]] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=dict)

    def watch(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        """Pass the events on as they come, and note them; they must be all, in order."""
        for recorded in events:
            self.leaves += recorded.leaf
            header = recorded.header
            # Told by the header: an erased event is one all the same, and its task is not copied.
            if header.task is not None and header.code in _OF_TASKS:
                self._tasks.setdefault(header.task, []).append(header.seq)
                if header.code == ev.TaskFinished.code:
                    self._ends.setdefault(header.task, header.seq)
            yield recorded

    def of(self, task: str) -> list[int]:
        """The numbers of the events of a task, in order."""
        return self._tasks.get(task, [])

    def to_its_end(self, task: str) -> list[int]:
        """Those up to the event that ends the task."""
        end = self._ends.get(task)
        return [seq for seq in self.of(task) if end is None or seq <= end]
