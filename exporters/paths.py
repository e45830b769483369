"""Which paths an exported file may have below its target."""

import re
from typing import Final

from ledger.errors import ExportRefused

TEMPORARY: Final = ".acl-"
"""How the names of our temporary files and directories begin."""

_PART: Final = re.compile(r"[A-Za-z0-9._=+-]{1,255}")
# What stands in a run directory beside the export, and is never written or removed by one.
_KEPT: Final = re.compile(r"ledger.*|run\.log|progress\..*", re.DOTALL)


def checked_path(path: str) -> str:
    """Return `path` if it can be a file below a target; ExportRefused for any other.

    Parts are ASCII letters, digits and `._=+-`; none is `.`, `..`, or one of our temporary names,
    and the whole is not what a run directory keeps for itself.
    """
    parts = path.split("/")
    if is_kept(path) or not all(map(_is_name, parts)):
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
