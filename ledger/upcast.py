"""Bodies of older event versions, brought up to date as plain dicts when they are read.

What is stored never changes. When a model changes, its `v` goes up by one, and `UPCASTS` gets the
function that turns a decoded body of the version before into the new one: every version that was
ever released stays readable.
"""

from collections.abc import Callable
from typing import Any

from ledger.errors import LedgerDamaged, VersionUnsupported
from ledger.events import BY_CODE, TYPE_NAMES

Fields = dict[str, Any]

UPCASTS: dict[tuple[int, int], Callable[[Fields], Fields]] = {}
"""(type code, version) -> the fields of that version as those of the next one."""


def upcast(code: int, version: object, fields: Fields) -> Fields:
    """Return the fields of a body of `version` as its event type has them today.

    Raises VersionUnsupported for a version that a newer release wrote, LedgerDamaged for one that
    never was.
    """
    current = BY_CODE[code].v
    if type(version) is not int or version < 1:
        raise LedgerDamaged(f"a body of {TYPE_NAMES[code]} names version {version!r}")
    if version > current:
        raise VersionUnsupported(
            f"{TYPE_NAMES[code]} has version {version}, this release reads up to {current}"
        )
    for step in range(version, current):
        fields = UPCASTS[code, step](fields)
    return fields
