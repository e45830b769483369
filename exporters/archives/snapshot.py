"""What an archive of a run holds: computed from its events alone."""

import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from exporters import OutFile
from exporters.archives.metadata import (
    BLOCK,
    NAME,
    ArchiveStatus,
    Metadata,
    Provenance,
    yaml_bytes,
)
from ledger import events as ev
from ledger.canonical import Binary
from ledger.errors import RunNotFound
from ledger.state import RunState
from ledger.view import Blobs

COMMAND: Final = "scripts/command.sh"

_KILLED: Final = 128 + 9
_SIGNALS: Final = {"SIGINT": 128 + 2, "SIGTERM": 128 + 15}
_TIMED_OUT: Final = 124
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._=+-]+")
_LONGEST_NAME: Final = 200
_LONGEST_NOTE: Final = 300


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run as it will be archived; only its number is still open.

    `numbered` makes its metadata for an id; `files` are the others: configuration and scripts.
    """

    run_id: str
    ledger_id: str
    root: str
    numbered: Callable[[str], Metadata]
    files: Callable[[], Iterable[OutFile]]

    def all_files(self, archive_id: str) -> Iterator[OutFile]:
        """Every file of the archive of this id, by its path in the archive."""
        yield OutFile(NAME, yaml_bytes(self.numbered(archive_id).model_dump()))
        yield from self.files()


def snapshot(
    state: RunState,
    blobs: Blobs,
    *,
    job: str,
    config: bytes,
    ledger_path: str | None = None,
) -> Snapshot:
    """What an archive of this state holds: a run that ended, or that nobody will end any more.

    `job` names the job's directory, `config` is the text of its `config.yaml`, and `ledger_path`
    leads from the artifacts directory to the ledger.
    """
    return Snapshot(
        run_id=state.run_id,
        ledger_id=state.ledger_id,
        root=state.root.hex(),
        numbered=lambda archive_id: _metadata(state, archive_id, job, ledger_path),
        files=lambda: _files(state, blobs, config),
    )


def standing(state: RunState) -> tuple[ArchiveStatus, int]:
    """(status, exit code) of the archive of a run that is over.

    A run without an end was killed: nobody who could have told is left.
    """
    if state.finished is None:
        return "interrupted", _KILLED
    match state.finished.status:
        case "completed":
            return "completed", 0
        case "failed":
            return "failed", 1
        case "timed_out":
            return "failed", _TIMED_OUT
        case "cancelled":
            first = state.interrupts[0] if state.interrupts else ""
            return "interrupted", _SIGNALS.get(first, _SIGNALS["SIGINT"])


def _metadata(state: RunState, archive_id: str, job: str, ledger_path: str | None) -> Metadata:
    status, exit_code = standing(state)
    created = state.creation
    return Metadata(
        id=archive_id,
        block=BLOCK,
        started_at=_second(state.started_at),
        completed_at=_second(state.ended_at if state.finished else state.last_at),
        status=status,
        exit_code=exit_code,
        job_dir=f"artifacts/jobs/{job}",
        repos={name: repo.sha for name, repo in sorted(created.repos.items())},
        notes=_notes(state),
        acl=Provenance(
            run_id=state.run_id,
            ledger_id=state.ledger_id,
            size=state.size,
            root=state.root.hex(),
            ledger_path=ledger_path,
            acl_version=created.acl_version,
            command=created.command,
            python=created.python,
            platform=created.platform,
            packages_lock_sha256=_lock(created.packages),
            repos_dirty={name: repo.dirty for name, repo in sorted(created.repos.items())},
        ),
    )


def _second(at: str | None) -> str | None:
    """A time as UTC without a fraction; None for what is no time."""
    try:
        moment = datetime.fromisoformat(at or "")
    except ValueError:
        return None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _notes(state: RunState) -> str:
    notes = []
    if state.imported is not None:
        notes.append(f"imported from {state.imported.format} files")
    if state.finished is None:
        notes.append("its program was killed; this was recorded by a later command")
    elif state.finished.error is not None:
        error = state.finished.error
        notes.append(f"{error.code}: {' '.join(error.message.split())}"[:_LONGEST_NOTE])
    return "; ".join(notes)


def _lock(packages: dict[str, str]) -> str:
    """The SHA-256 of the lines `name==version`, sorted, of the packages that were recorded."""
    lines = sorted(f"{name}=={version}\n" for name, version in packages.items())
    return hashlib.sha256("".join(lines).encode("utf-8", "backslashreplace")).hexdigest()


def _files(state: RunState, blobs: Blobs, config: bytes) -> Iterator[OutFile]:
    yield OutFile("config.yaml", config)
    yield OutFile(COMMAND, _command(state.creation.command))
    taken = {COMMAND}
    for seq in state.sources:
        event = blobs.event(seq).event
        if not isinstance(event, ev.SourceRecorded) or event.content is None:
            continue
        try:
            content = blobs.resolve(event.content)
        except RunNotFound:
            continue  # erased
        yield OutFile(_free(f"scripts/{event.role}/{_path(event.path)}", taken), _bytes(content))


def _command(command: tuple[str, ...]) -> bytes:
    """The command line that began the run, without its secrets, as a shell reads it."""
    text = shlex.join(command) if command else "# The run was begun by a program, not by a command."
    try:
        return f"#!/bin/sh\n{text}\n".encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return f"#!/bin/sh\n{text}\n".encode("utf-8", "backslashreplace")


def _path(path: str) -> str:
    """The path of a source file as it can be written anywhere; it leads nowhere else."""
    parts = [_NOT_IN_A_NAME.sub("_", part)[-_LONGEST_NAME:] for part in path.split("/")]
    return "/".join(_harmless(part) for part in parts if part)


def _harmless(part: str) -> str:
    return f"_{part}" if part.startswith(".") else part


def _free(path: str, taken: set[str]) -> str:
    """`path`, or the next free one where a file system could take two for one."""
    free, number = path, 1
    while free.casefold() in taken:
        number += 1
        stem, dot, suffix = path.rpartition(".")
        free = f"{stem}-{number}{dot}{suffix}" if dot else f"{path}-{number}"
    taken.add(free.casefold())
    return free


def _bytes(content: object) -> bytes:
    if isinstance(content, Binary):
        return content.data
    assert isinstance(content, str), "a source file is text or Binary"
    return content.encode("utf-8", "surrogatepass")
