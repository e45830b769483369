"""Bytes, events, tree and state of one run: the reading side.

The writing side is `ledger.store.Ledger`; only the recorder and the command line use it.
"""

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
