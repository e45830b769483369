"""GitHub-flavoured Markdown: escaped cells and aligned tables."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

DASH: Final = "-"

_ACTIVE: Final = re.compile(r"[\\`*\[\]<>|~&]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SHOWN: Final = 200
# Between these, four decimals say something.
_SMALL: Final = 1e-4
_LARGE: Final = 1e12


def escape(text: str) -> str:
    """Text that shows as itself on one line, whatever it holds; over 200 characters it is cut."""
    if len(text) > _SHOWN:
        text = text[: _SHOWN - 1] + "…"
    shown = _ACTIVE.sub(lambda match: "\\" + match.group(), text)
    # The backslash is doubled: what the reader sees is an escape, not a control character.
    return _UNPRINTABLE.sub(lambda match: f"\\\\u{ord(match.group()):04x}", shown)


def number(value: float | None) -> str:
    """A number for people: integers whole, others with four decimals; a dash for None."""
    if value is None:
        return DASH
    if isinstance(value, int):
        return str(value)
    is_readable = value == 0 or _SMALL <= abs(value) < _LARGE
    return f"{value:.4f}" if is_readable else f"{value:.4g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; the first column is aligned left, the others right.

    Cells are Markdown already: text from outside is to be escaped by the caller.
    """
    lines = [_row(header), _row(["---", *["---:"] * (len(header) - 1)])]
    lines.extend(_row(row) for row in rows)
    return lines


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
