"""Which paths an exported file may have below its target."""

import re
from typing import Final

from ledger.errors import ExportRefused

TEMPORARY: Final = ".acl-"
"""How the names of our temporary files and directories begin."""

_PART: Final = re.compile(r"[A-Za-z0-9._=+-]{1,255}")
# What stands in a run directory beside the export, and is never written or removed by one.
# What an agent left may be called anything that is the name of a file.
_ARTIFACTS: Final = re.compile(
    r"details/[^/]+/[^/]+/attempt-[1-9][0-9]{0,8}/(?:retries/[0-9a-f]{32}/)?artifacts/"
)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LONGEST: Final = 255
_KEPT: Final = re.compile(r"ledger.*|run\.log|progress\..*", re.DOTALL)


def checked_path(path: str) -> str:
    """Return `path` if it can be a file below a target; ExportRefused for any other.

    Parts are ASCII letters, digits and `._=+-`; none is `.`, `..`, or one of our temporary names,
    and the whole is not what a run directory keeps for itself. Below the `artifacts/` of an attempt
    parts are any text of up to 255 bytes without control characters.
    """
    place = _ARTIFACTS.match(path)
    plain, free = (path, []) if place is None else (place[0][:-1], path[place.end() :].split("/"))
    named = all(map(_is_name, plain.split("/"))) and all(map(_is_free_name, free))
    if is_kept(path) or not named:
        raise ExportRefused(
            f"{path!r} cannot be the name of an exported file",
            hint="this is a fault of the exporter, or of who wrote the manifest",
        )
    return path


def is_kept(path: str) -> bool:
    """Whether a path belongs to the run itself: its ledger, its log and its progress."""
    return "/" not in path and _KEPT.fullmatch(path) is not None


def _is_name(part: str) -> bool:
    fits = _PART.fullmatch(part) is not None
    return fits and part not in {".", ".."} and not part.startswith(TEMPORARY)


def _is_free_name(part: str) -> bool:
    return (
        _CONTROL.search(part) is None
        and 0 < len(part.encode()) <= _LONGEST
        and part not in {".", ".."}
        and not part.startswith(TEMPORARY)
    )
