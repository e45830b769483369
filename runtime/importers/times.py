"""Times of foreign runs: ISO-8601 in UTC, or none."""

from datetime import UTC, datetime
from typing import Any


def utc(value: Any) -> str | None:
    """An ISO-8601 time with a zone as UTC with Z; None for anything else."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if time is None or time.tzinfo is None:
        return None
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
