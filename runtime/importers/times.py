"""Times of foreign runs: ISO-8601 in UTC, or none."""

from datetime import UTC, datetime
from typing import Any, Final

EPOCH: Final = "times are numbers, read as seconds since 1970 (from 10^11 on milliseconds)"
NO_ZONE: Final = "times have no zone, so that nothing is known of them in UTC"
NO_TIME: Final = "times are none"

_MILLISECONDS_FROM: Final = 1e11


def utc(value: Any) -> str | None:
    """An ISO-8601 time with a zone as UTC with Z; None for anything else."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if time is None or time.tzinfo is None:
        return None
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_time(value: Any) -> tuple[str | None, str | None]:
    """A time in UTC with Z, or None, and what is odd about the value: one of the words above."""
    if type(value) in (int, float):
        return _of_epoch(value)
    found = utc(value)
    if found is not None:
        return found, None
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None, NO_TIME
    return None, NO_ZONE


def _of_epoch(value: float) -> tuple[str | None, str]:
    try:
        seconds = value / 1000 if abs(value) >= _MILLISECONDS_FROM else value
        time = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):  # NaN, the infinities, and what no year has
        return None, NO_TIME
    return time.isoformat().replace("+00:00", "Z"), EPOCH
