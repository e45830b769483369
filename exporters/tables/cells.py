r"""Recorded values as cells: what a column's type can hold, and the nearest where it cannot.

Text that is no Unicode (lone surrogates) is spelled with `\udxxx` escapes; integers beyond 64 bits
in an integer column, and times that are no ISO-8601 with a zone, have no cell, or the nearest one
where a column is never null; a number column holds the nearest float. Whatever is changed so is
told to be, never silently.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ledger import canonical

Cell = bool | int | float | str | datetime | list[str] | None

_LEAST, _MOST = -(2**63), 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Inexact:
    """What a cell holds in the place of a value that its type cannot hold."""

    near: Cell


Fit = Callable[[object], Cell | Inexact]


def moment(nanoseconds: int) -> datetime:
    """The time of a header, to the microsecond."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def spelled_time(time: datetime) -> str:
    """A time as text: ISO-8601, UTC, microseconds."""
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def json_text(value: object) -> str:
    """Canonical JSON, on one line; values beside the point of JSON are `$acl` envelopes."""
    return canonical.encode(value).decode()


def nearest(value: object) -> Cell:
    """The integer of 64 bits that is nearest to one that has more; None for anything else."""
    return max(_LEAST, min(value, _MOST)) if isinstance(value, int) else None


def _integer(value: object) -> Cell | Inexact:
    assert isinstance(value, int), value
    return value if _LEAST <= value <= _MOST else Inexact(None)


def _number(value: object) -> Cell | Inexact:
    assert isinstance(value, int | float), value
    try:
        near = float(value)
    except OverflowError:
        return Inexact(None)
    return near if near == value else Inexact(near)


def _boolean(value: object) -> Cell:
    assert isinstance(value, bool), value
    return value


def _text(value: object) -> Cell | Inexact:
    assert isinstance(value, str), value
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return Inexact(value.encode("utf-8", "backslashreplace").decode())
    return value


def _time(value: object) -> Cell | Inexact:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
            return Inexact(None) if value.tzinfo is None else value.astimezone(UTC)
        except (ValueError, OverflowError):
            return Inexact(None)
    assert isinstance(value, datetime), value
    return value


def _list(value: object) -> Cell | Inexact:
    assert isinstance(value, list | tuple), value
    cells = [_text(item) for item in value]
    if any(isinstance(cell, Inexact) for cell in cells):
        near = (cell.near if isinstance(cell, Inexact) else cell for cell in cells)
        return Inexact([str(cell) for cell in near])
    return list(value)


FIT: Final[dict[str, Fit]] = {
    "int64": _integer,
    "float64": _number,
    "bool": _boolean,
    "string": _text,
    "json": json_text,
    "timestamp": _time,
    "list<string>": _list,
}
"""For each type of a column: the cell of a value; AssertionError for one of another type."""
