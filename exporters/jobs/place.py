"""Putting a job below an artifacts directory: whole, by one rename, and nothing else's place.

A job is built as `jobs/.tmp.<job>.<pid>`, whose lock says that its builder is alive, and renamed.
Where a job stands already, it is moved away first and back if the rename fails, so that at no
moment half a job stands there.
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from exporters import OutFile
from exporters.folder import Folder
from exporters.identity import Identity
from exporters.jobs.job import AS_USUAL, LAYOUT, JobOptions, job_files
from exporters.jobs.names import job_name, second_name
from exporters.manifest import Manifest, read_manifest
from exporters.write import clear_abandoned, fill, lock_stage
from ledger.closing import discard
from ledger.errors import ExportRefused
from ledger.state import RunState
from ledger.view import Blobs

JOBS: Final = "jobs"
STAGE: Final = ".tmp."
_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY})
_MOST_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a job stands, and whether it was written just now or stood there already."""

    directory: Path
    is_new: bool
    files: int


def write_job(
    artifacts: Path,
    state: RunState,
    blobs: Blobs,
    options: JobOptions = AS_USUAL,
    *,
    force: bool = False,
    more: Iterable[OutFile] = (),
) -> Placed:
    """Write the job of a run to `jobs/<job>` below `artifacts`, which is made if need be.

    The job of the same events with the same options is left as it is, and one that grew with the
    same run is replaced. Raises ExportRefused, with nothing changed, for anything else that stands
    there, but for a job where `force` is given; and where the disk fails. `more` are further files
    of the job's directory, which its manifest does not list (an analysis has one of its own).
    """
    identity = Identity.of(state)
    target = directory_of(artifacts, state, options)
    found = look(target, identity)
    if found is not None and found.is_same(identity, options):
        return Placed(target, is_new=False, files=len(found.files))
    _refuse(found, target, identity, force=force)
    with _staged(target) as stage:
        entries = fill(stage, job_files(state, blobs, options), identity, LAYOUT, options.told())
        for file in more:
            stage.create(file)
        stage.sync()
        with Folder.open(target.parent) as parent, parent.locked():
            # Somebody may have come between. If it was with the same, an analysis may stand in it.
            found = look(target, identity)
            if found is not None and found.is_same(identity, options):
                return Placed(target, is_new=False, files=len(entries))
            _refuse(found, target, identity, force=force)
            _put(stage, target)
            parent.sync_self()
    return Placed(target, is_new=True, files=len(entries))


def directory_of(artifacts: Path, state: RunState, options: JobOptions) -> Path:
    """Where the job of a run stands; the directory above it is made if need be."""
    target = artifacts.resolve() / JOBS / job_name(state, options.name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot(target, error) from error
    return target


def settled(artifacts: Path, state: RunState, options: JobOptions = AS_USUAL) -> JobOptions:
    """The options with which a run that begins, or has ended, has its job here.

    Where the usual name is another run's, that is its second name.
    """
    if options.name is not None:
        return options
    found = look(directory_of(artifacts, state, options), Identity.of(state))
    if found is None or found.ledger_id in (None, state.ledger_id):
        return options
    return replace(options, name=second_name(state))


def _refuse(found: "Standing | None", target: Path, identity: Identity, *, force: bool) -> None:
    if found is not None and not (found.grows or (force and found.is_job)):
        raise found.refused(target, identity)


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands where a job is to go.

    `grows` is true of a job of the same ledger that its run writes while it goes on; `is_job` of
    whatever looks like a job, anybody's.
    """

    ledger_id: str | None
    manifest: Manifest | None
    grows: bool
    is_job: bool

    @property
    def files(self) -> list[str]:
        """The files that the manifest lists, and the manifest."""
        listed = [] if self.manifest is None else self.manifest.files
        return [*(file.path for file in listed), "MANIFEST.json"]

    def is_same(self, identity: Identity, options: JobOptions) -> bool:
        """Whether it was made of the same events with the same options."""
        if self.manifest is None:
            return False
        acl = self.manifest.acl
        same = (acl.ledger_id, acl.size, acl.root) == (
            identity.ledger_id,
            identity.size,
            identity.root,
        )
        return same and self.manifest.options == options.told()

    def refused(self, target: Path, identity: Identity) -> ExportRefused:
        """Why nothing is written over it."""
        if not self.is_job:
            return ExportRefused(
                f"{target} holds something that is not a job",
                hint="move it away, or give the job another name with --job-name",
            )
        whose = "another run's"
        if self.ledger_id == identity.ledger_id:
            acl = None if self.manifest is None else self.manifest.acl
            same = acl is not None and acl.size == identity.size
            whose = "this run's, with other options" if same else "of another state of this run"
        return ExportRefused(
            f"{target} holds a job, {whose}",
            hint="replace it with --force, or name another with --job-name",
        )


def look(target: Path, identity: Identity) -> Standing | None:
    """What stands there; None for nothing, and for an empty directory."""
    if target.is_symlink():
        return Standing(None, None, grows=False, is_job=False)
    try:
        with Folder.open(target) as folder:
            if next(folder.files(), None) is None:
                return None
            return _standing(folder, identity)
    except FileNotFoundError:
        return None
    except ExportRefused:
        return Standing(None, None, grows=False, is_job=False)


def _standing(folder: Folder, identity: Identity) -> Standing:
    try:
        manifest = read_manifest(folder)
    except ExportRefused:
        manifest = None
    told = _told(folder)
    if manifest is not None and manifest.layout == LAYOUT:
        return Standing(manifest.acl.ledger_id, manifest, grows=False, is_job=True)
    claim = told.get("acl") if told is not None else None
    ledger_id = claim.get("ledger_id") if isinstance(claim, dict) else None
    grows = ledger_id == identity.ledger_id and manifest is None
    return Standing(ledger_id, None, grows=grows, is_job=told is not None)


def _told(folder: Folder) -> dict[str, object] | None:
    """The job's result or, before there is one, its configuration; None where neither is one."""
    for name in ("result.json", "config.json"):
        with suppress(OSError, ValueError, RecursionError, ExportRefused):
            with folder.reading(name) as file:
                document = json.loads(file.read(_MOST_BYTES))
            if isinstance(document, dict):
                return document
    return None


@contextmanager
def _staged(target: Path) -> Iterator[Folder]:
    """A locked staging directory beside the target; gone afterwards."""
    path = target.parent / f"{STAGE}{target.name}.{os.getpid()}"
    try:
        stages = re.compile(re.escape(f"{STAGE}{target.name}") + r"\.[0-9]+(\.old)?")
        clear_abandoned(target.parent, lambda found: stages.fullmatch(found.name))
        stage = _locked(path)
    except OSError as error:
        raise _cannot(path, error) from error
    with stage:
        try:
            yield stage
        finally:
            discard(path)


def _locked(path: Path) -> Folder:
    while True:
        _clear(path)
        with suppress(FileExistsError):
            path.mkdir()
            stage = lock_stage(path)
            if stage is not None:
                return stage


def _clear(path: Path) -> None:
    """Remove what a dead process of the same number left; a living one keeps its lock."""
    with suppress(FileNotFoundError), Folder.open(path) as stale:
        if not stale.try_lock():
            raise ExportRefused(f"another export is being written to {path}")
        shutil.rmtree(path)


def _put(stage: Folder, target: Path) -> None:
    """Rename the stage to the target, and what stood there out of the way."""
    old = stage.path.with_name(f"{stage.path.name}.old")
    try:
        discard(old)
        with _kept_still(target):
            with suppress(FileNotFoundError):
                target.rename(old)
            try:
                stage.path.rename(target)
            except OSError:
                with suppress(OSError):
                    old.rename(target)
                raise
    except OSError as error:
        if error.errno in _TAKEN:
            raise ExportRefused(f"{target} was made by somebody else meanwhile") from None
        raise _cannot(target, error) from error
    discard(old)


@contextmanager
def _kept_still(target: Path) -> Iterator[None]:
    """Keep out whoever writes into the job while it grows."""
    try:
        there = Folder.open(target)
    except FileNotFoundError:
        yield
        return
    with there, there.locked():
        yield


def _cannot(path: Path, error: OSError) -> ExportRefused:
    return ExportRefused(f"{path} cannot be made: {error.strerror or error}")
