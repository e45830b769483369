"""Bytes, events, tree and state of one run. The writing side is `ledger.store`."""
