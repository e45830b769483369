"""Proofs that stand in one file each and are checked without the ledger that they were made from.

`inclusion`: one event stands in the tree of a checkpoint (C2SP tlog-proof). `history`: one
checkpoint extends another, or two contradict each other. Here is how they are made and read;
`ledger.proof.checking` judges them, with or without keys.
"""

from ledger.proof.choice import covering
from ledger.proof.history import (
    Consistency,
    Fork,
    consistency,
    extends,
    fork,
    format_consistency,
    format_fork,
    parse_consistency,
    parse_fork,
)
from ledger.proof.inclusion import (
    Entry,
    Inclusion,
    format_inclusion,
    inclusion,
    pack_entry,
    parse_inclusion,
    unpack_entry,
)

__all__ = [
    "Consistency",
    "Entry",
    "Fork",
    "Inclusion",
    "consistency",
    "covering",
    "extends",
    "fork",
    "format_consistency",
    "format_fork",
    "format_inclusion",
    "inclusion",
    "pack_entry",
    "parse_consistency",
    "parse_fork",
    "parse_inclusion",
    "unpack_entry",
]
