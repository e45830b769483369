"""Bytes, events, tree and state of one run: the reading side.

The writing side is `ledger.store.Ledger`; only the recorder and the command line use it.
"""

# ruff: noqa: TC004 - these names are offered at run time, below
from typing import TYPE_CHECKING

from ledger.later import offer

if TYPE_CHECKING:
    from ledger import events
    from ledger.fold import fold
    from ledger.state import RunState
    from ledger.verify import Finding, verify
    from ledger.view import Blobs, LedgerView, Recorded

__all__ = [
    "Blobs",
    "Finding",
    "LedgerView",
    "Recorded",
    "RunState",
    "events",
    "fold",
    "verify",
]

offer(
    __name__,
    {
        "Blobs": "ledger.view",
        "Finding": "ledger.verify",
        "LedgerView": "ledger.view",
        "Recorded": "ledger.view",
        "RunState": "ledger.state",
        "events": "ledger.events:",
        "fold": "ledger.fold",
        "verify": "ledger.verify",
    },
)
