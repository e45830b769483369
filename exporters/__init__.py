"""Projections of a run into files: pure functions from a state to files, and one writer.

An exporter is named by an entry point of the group `acl.exporters`; the built-in layouts come by
the same road as anybody's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata

from ledger.errors import UsageError
from ledger.state import RunState
from ledger.view import Blobs

GROUP = "acl.exporters"


@dataclass(frozen=True, slots=True)
class OutFile:
    """A file of an export: its path below the target, parts joined by `/`, and its bytes.

    `data` may be given in pieces; whoever takes the file reads them once, before the next file.
    """

    path: str
    data: bytes | Iterable[bytes]


Exporter = Callable[[RunState, Blobs], Iterable[OutFile]]
"""A layout: the same prefix of a ledger gives the same files, byte for byte."""


def exporter_names() -> list[str]:
    """The layouts that are installed, sorted."""
    return sorted({point.name for point in metadata.entry_points(group=GROUP)})


def find_exporter(layout: str) -> Exporter:
    """The exporter of this name; UsageError names the known ones if there is none."""
    points = {point.name: point for point in metadata.entry_points(group=GROUP)}
    if layout not in points:
        known = ", ".join(sorted(points)) or "none is installed"
        raise UsageError(f"there is no layout {layout!r}", hint=f"known: {known}")
    try:
        found: Exporter = points[layout].load()
    except Exception as error:  # a plug-in may raise anything
        raise UsageError(
            f"the layout {layout!r} cannot be loaded: {type(error).__name__}: {error}",
            hint="repair or uninstall the package that provides it",
        ) from error
    return found


__all__ = ["GROUP", "Exporter", "OutFile", "exporter_names", "find_exporter"]
