"""A run folded event by event, for whoever reads its ledger for another reason as well."""

from ledger.events import MetricsComputed
from ledger.fold import fold
from ledger.state import RunState
from ledger.view import Recorded


class Folded:
    """The state of a run so far, and the roots that its metrics name.

    With it a replay needs no second look at the ledger to compare the prefix of the metrics.
    """

    def __init__(self) -> None:
        self.state = RunState()
        self.roots: dict[int, bytes] = {}

    def take(self, recorded: Recorded) -> None:
        """Fold one more event."""
        if recorded.header.code == MetricsComputed.code:
            self.roots[self.state.size] = self.state.root
        fold((recorded,), self.state)
