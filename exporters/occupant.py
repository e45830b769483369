"""What already stands in the directory that an export is to go to, and whether it may."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.folder import Folder
from exporters.identity import Identity
from exporters.manifest import MANIFEST, read_manifest
from exporters.paths import is_kept
from ledger.errors import ExportRefused

# Where an export that was killed before its manifest tells whose it is.
_TOLD_IN: Final = ("params.json", "run_info.json")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Occupant:
    """The files of a target that may be written to: it is empty, our run's, or our run's export.

    `listed` are the files of the export that stands there, `size` the prefix it was made of;
    `present` are all files but the run's own.
    """

    folder: Folder
    identity: Identity
    is_home: bool
    listed: frozenset[str]
    present: frozenset[str]
    size: int = 0

    def obsolete(self, written: frozenset[str]) -> list[str]:
        """Files of earlier exports of this run that the new one does not have.

        Raises ExportRefused where something else stands there. In the run's own directory it is
        left alone, unless it is in the way: a link or a file where a directory must be, say.
        """
        in_the_way = (self.present & _parents(written)) | (_parents(self.present) & written)
        if in_the_way:
            raise _holds(self.folder.path, sorted(in_the_way))
        others = self.present - written - {MANIFEST}
        old = {path for path in others if path in self.listed or self._is_ours(path)}
        unknown = sorted(others - old)
        if unknown and not self.is_home:
            raise _holds(self.folder.path, unknown)
        return sorted(old)

    def _is_ours(self, path: str) -> bool:
        """Whether a file that no manifest lists was written by a live export of this run."""
        return path.endswith(".json") and _claim(self.folder, path) == self.identity.ledger_id


def examine(folder: Folder, identity: Identity, layout: str, home: Path | None) -> Occupant:
    """Look at a target before anything is written to it; `home` is the run's own directory.

    Raises ExportRefused for a directory that holds another run's files, another layout, or
    anything that does not tell whose it is.
    """
    manifest = read_manifest(folder)
    is_home = home is not None and folder.path == home.resolve()
    everything = list(folder.files())
    claims = [manifest.acl.ledger_id] if manifest else _claims(folder, everything)
    if any(claim != identity.ledger_id for claim in claims):
        raise ExportRefused(f"{folder.path} holds another run's files")
    if manifest and manifest.layout != layout:
        raise ExportRefused(f"{folder.path} holds an export in the layout {manifest.layout!r}")
    if everything and not claims and not is_home:
        raise _holds(folder.path, everything)
    return Occupant(
        folder,
        identity,
        is_home,
        frozenset(listed.path for listed in manifest.files) if manifest else frozenset(),
        frozenset(path for path in everything if not is_kept(path)),
        manifest.acl.size if manifest else 0,
    )


def _parents(paths: frozenset[str]) -> frozenset[str]:
    parts = (path.split("/") for path in paths)
    return frozenset("/".join(names[:n]) for names in parts for n in range(1, len(names)))


def _claims(folder: Folder, present: list[str]) -> list[str | None]:
    return [_claim(folder, path) for path in _TOLD_IN if path in present][:1]


def _claim(folder: Folder, path: str) -> str | None:
    """The ledger id that a JSON file ends with; None where it tells none."""
    try:
        with folder.reading(path) as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError, ExportRefused):
        return None
    trailer = document.get("acl") if isinstance(document, dict) else None
    claim = trailer.get("ledger_id") if isinstance(trailer, dict) else None
    return claim if isinstance(claim, str) else None


def _holds(path: Path, names: list[str]) -> ExportRefused:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ExportRefused(f"{path} holds {shown}{more}, which no export of this run wrote")
