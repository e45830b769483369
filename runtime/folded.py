"""A run folded event by event, for whoever reads its ledger for another reason as well."""

from typing import Final

from ledger.events import MetricsComputed
from ledger.fold import fold
from ledger.state import RunState
from ledger.view import Recorded

# So many events are folded at once.
_TOGETHER: Final = 64


class Folded:
    """The state of a run so far, and the roots that its metrics name.

    With it a replay needs no second look at the ledger to compare the prefix of the metrics.
    """

    def __init__(self) -> None:
        self._state = RunState()
        self._waiting: list[Recorded] = []
        self.roots: dict[int, bytes] = {}

    @property
    def state(self) -> RunState:
        """The state after all events that were taken."""
        waiting, self._waiting = self._waiting, []
        return fold(waiting, self._state)

    def take(self, recorded: Recorded) -> None:
        """Fold one more event, at the latest when the state is asked for."""
        if recorded.header.code == MetricsComputed.code:
            state = self.state
            self.roots[state.size] = state.root
        self._waiting.append(recorded)
        if len(self._waiting) >= _TOGETHER:
            fold(self._waiting, self._state)
            self._waiting.clear()
