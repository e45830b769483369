"""Sums over the tasks of a run that cost what moved since the last look, not what is there."""

from collections.abc import Callable

from ledger.state import RunState, TaskState

Share = tuple[int, ...]


class Tally:
    """Sums over all tasks that have begun, which follow the state of one run.

    `share` gives the numbers of one task, always as many. They must depend on its own events
    alone: a task is counted anew when there is one.
    """

    def __init__(self, share: Callable[[TaskState], Share]) -> None:
        self._share = share
        self._shares: dict[str, Share] = {}
        self._size = 0
        self.sums: Share = ()
        """The sums of the shares, one by one; empty while nothing has begun."""

    @property
    def begun(self) -> int:
        """How many tasks have begun."""
        return len(self._shares)

    def follow(self, state: RunState) -> list[TaskState]:
        """Catch up with the state; return the tasks that moved, in task order."""
        moved = [task for task in state.moved(self._size) if task.first is not None]
        for task in moved:
            new = self._share(task)
            nothing = (0,) * len(new)
            old = self._shares.get(task.id, nothing)
            self._shares[task.id] = new
            sums = zip(self.sums or nothing, old, new, strict=True)
            self.sums = tuple(total - before + now for total, before, now in sums)
        self._size = state.size
        return moved
