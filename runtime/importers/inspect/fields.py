"""Foreign values seen as the type that is wanted, or as nothing."""

from typing import Any

from runtime.importers.numbers import is_number


def section(value: Any, *names: str) -> dict[str, Any]:
    """The object below these keys; an empty one where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def listed(value: Any) -> list[Any]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else []


def count(value: Any) -> int | None:
    """A whole number from 0 on."""
    return value if type(value) is int and value >= 0 else None


def number(value: Any) -> int | float | None:
    """A finite number."""
    return value if is_number(value) else None
