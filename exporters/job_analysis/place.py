"""Putting an analysis into its directory: whole, by one rename, in the place of an earlier one."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from exporters import OutFile
from exporters.folder import Folder
from exporters.identity import Identity
from exporters.job_analysis.manifest import MANIFEST, AnalysisManifest, read_analysis_manifest
from exporters.paths import TEMPORARY
from exporters.write import clear_abandoned, inside
from ledger.errors import ExportRefused

# What stands in a staging directory; no export has such names.
_MADE = "made-analysis"
_OLD = "old-analysis"
_PARTS = (_MADE, _OLD)


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands where an analysis is to go: nothing, an analysis, or (None, True) anything."""

    manifest: AnalysisManifest | None
    is_occupied: bool

    def is_of(self, identity: Identity) -> bool:
        """Whether it is an analysis of exactly these events, whatever its configuration."""
        return self._source() == (identity.ledger_id, identity.size, identity.root)

    def is_of_ledger(self, ledger_id: str) -> bool:
        """Whether it is an analysis of this ledger, in any state."""
        return self.manifest is not None and self.manifest.source.ledger_id == ledger_id

    def _source(self) -> tuple[str, int, str] | None:
        source = None if self.manifest is None else self.manifest.source
        return None if source is None else (source.ledger_id, source.size, source.root)


def standing_analysis(target: Path) -> Standing:
    """Look at a directory before anything is put into its place.

    An analysis is one only as long as nothing else stands beside its files.
    """
    try:
        with Folder.open(target) as folder:
            if not any(target.iterdir()):
                return Standing(None, is_occupied=False)
            with suppress(OSError, ExportRefused), folder.reading(MANIFEST) as file:
                manifest = read_analysis_manifest(file.read())
                if set(folder.files()) <= {*manifest.files, MANIFEST}:
                    return Standing(manifest, is_occupied=True)
    except FileNotFoundError:
        return Standing(None, is_occupied=os.path.lexists(target))
    except (OSError, ExportRefused):
        pass
    return Standing(None, is_occupied=True)


def place_analysis(
    target: Path, files: Iterable[OutFile], identity: Identity, *, force: bool = False
) -> int:
    """Write an analysis to `target` and return how many files it has.

    An earlier analysis of the same ledger is replaced, and with `force` that of any other. Raises
    ExportRefused, with nothing changed, for whatever else stands there, and where the disk fails.
    """
    target = target.absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        parent = target.parent.resolve()
        clear_abandoned(parent, _is_stage)
        with inside(parent) as stage:
            stage.try_lock()
            count = 0
            for file in files:
                stage.create(OutFile(f"{_MADE}/{file.path}", file.data))
                count += 1
            stage.sync()
            with Folder.open(parent) as folder, folder.locked():
                _refuse(parent / target.name, identity, force=force)
                _swap(stage.path, parent / target.name)
                folder.sync_self()
    except OSError as error:
        raise ExportRefused(f"{target} cannot be made: {error.strerror or error}") from error
    return count


def _is_stage(path: Path) -> bool:
    return path.name.startswith(TEMPORARY) and any((path / name).is_dir() for name in _PARTS)


def _refuse(target: Path, identity: Identity, *, force: bool) -> None:
    found = standing_analysis(target)
    if not found.is_occupied or found.is_of_ledger(identity.ledger_id):
        return
    if found.manifest is None:
        raise ExportRefused(f"{target} holds something that is not an analysis")
    if not force:
        raise ExportRefused(
            f"{target} holds the analysis of another run",
            hint="replace it with --force, or name another directory",
        )


def _swap(stage: Path, target: Path) -> None:
    """Rename the stage's directory to the target, and what stood there into the stage."""
    with suppress(FileNotFoundError):
        target.rename(stage / _OLD)
    try:
        (stage / _MADE).rename(target)
    except OSError:
        with suppress(OSError):
            (stage / _OLD).rename(target)
        raise
