"""Errors, which the layout tells as one text, with all that is known of them in another place."""

import re
from typing import Any, Final

from pydantic import ValidationError

from ledger import events as ev

UNKNOWN: Final = "unknown"
_CODED: Final = re.compile(r"([A-Za-z0-9_.\-]{1,80})(?:: (.+))?", re.DOTALL)


def error_of(text: Any, info: Any) -> ev.ErrorInfo | None:
    """The error that `text` tells, with the fields of `info` where they tell the same.

    Other programs give a text alone: `code: message`, a code, or any words.
    """
    known = known_error(text, info)
    if known is not None or not text:
        return known
    words = text if isinstance(text, str) else repr(text)
    coded = _CODED.fullmatch(words)
    if coded is None:
        return ev.ErrorInfo(code=UNKNOWN, message=words)
    return ev.ErrorInfo(code=coded[1], message=coded[2] or "")


def known_error(text: Any, info: Any) -> ev.ErrorInfo | None:
    """The error of these fields; None if they are none, or not those of `text`."""
    try:
        error = ev.ErrorInfo.model_validate(info)
    except ValidationError:
        return None
    return error if error_text(error) == text else None


def error_text(error: ev.ErrorInfo) -> str:
    """An error as exported files tell it in one text."""
    return f"{error.code}: {error.message}" if error.message else error.code
