"""Parts of a document that need nothing of the ledger's, written by orjson at once.

`exporters.jsontext` says how exported JSON is spelled; for what is passed by here orjson spells it
the same. It would not for a float with an exponent, whose layout differs, for NaN, and for what
only the ledger has an envelope for.
"""

from typing import Any, Final

import orjson

from ledger.canonical.escape import RESERVED

MOST: Final = 64 * 1024
"""About how many characters are written at once: memory stays bounded."""
_LEAST_DECIMAL: Final = 1e-4
_MOST_DECIMAL: Final = 1e15
_NODE: Final = 8
_CONTAINERS: Final = frozenset({dict, list, tuple})
_WORDS: Final = frozenset({int, bool, type(None)})


def written(value: Any, *, compact: bool) -> str | None:
    """The text of a container, on lines of two spaces of indentation a level, or on one line.

    None for what is large, and for what orjson may spell in another way: that is then to be
    written part by part.
    """
    try:
        if not is_ordinary(value):
            return None
        return orjson.dumps(value, option=None if compact else orjson.OPT_INDENT_2).decode()
    except TypeError:  # other keys than texts, a lone surrogate, a large integer, or too deep
        return None


def is_ordinary(value: Any) -> bool:
    """Whether there are only objects, arrays, texts, decimals and words below, and not too much."""
    stack, left = [value], MOST
    while stack:
        container = stack.pop()
        items = container
        if type(container) is dict:
            names = "".join(container)
            # Wherever it stands in them: that is rare, and the exact road knows.
            if RESERVED in names:
                return False
            left -= len(names)
            items = container.values()
        left -= _NODE * len(container)
        for item in items:
            kind = type(item)
            if kind is str:
                left -= len(item)
            elif kind in _CONTAINERS:
                stack.append(item)
            elif kind not in _WORDS and not (kind is float and _is_decimal(item)):
                return False
        if left < 0:
            return False
    return True


def _is_decimal(number: float) -> bool:
    """Whether every way to spell it has neither an exponent nor another number of digits."""
    return number == 0 or _LEAST_DECIMAL <= abs(number) < _MOST_DECIMAL
