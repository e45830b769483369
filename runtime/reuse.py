"""Which run a request reuses: decided before any output is made, and told with every reason.

What is then taken over is `runtime.reuse_takeover`'s to say.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ledger.errors import AclError, RunNotFound, UsageError
from ledger.events import ReuseFrozen
from ledger.state import RunState
from runtime.models import RunRequest
from runtime.paths import run_directory, run_root
from runtime.redact import Redactor
from runtime.reuse_makers import Makers, find_makers
from runtime.reuse_settings import (
    differing_makers,
    of_attempts,
    of_configuration,
    settings_of,
    spoken,
)
from runtime.reuse_source import RUN_INFO, ReuseSource, open_source

__all__ = ["RUN_INFO", "FrozenReuse", "ReuseSource", "freeze_reuse_source"]

_SEPARATORS: Final = re.compile(r"[/\\]")
_LEAVING: Final = frozenset({".", ".."})
# Work in progress of imports and exports stands in directories of such names.
_HIDDEN: Final = "."
_NEVER: Final = datetime.min.replace(tzinfo=UTC)

_log = logging.getLogger(__name__)


Tell = Callable[[str], object]


@dataclass(slots=True)
class FrozenReuse:
    """What was decided: the source, None if nothing is reused, and what there is to say of it.

    `tell` is told at once, in one line without secrets; without it the log is.
    """

    source: ReuseSource | None = None
    remarks: list[str] = field(default_factory=list)
    redactor: Redactor = field(default_factory=lambda: Redactor({}))
    tell: Tell | None = None

    def event(self) -> ReuseFrozen:
        """The event that tells what was decided."""
        source = self.source
        if source is None:
            return ReuseFrozen(mode="none")
        return ReuseFrozen(
            mode=source.mode,
            run_id=source.run_id,
            path=source.path,
            ledger_id=source.state.ledger_id,
            size=source.state.size,
            root=source.state.root.hex(),
            run_info_sha256=source.run_info_sha256,
            running=True if source.running else None,
            differences=source.differences or None,
        )

    def remark(self, text: str) -> None:
        """Say something now, and keep it for the log of the run, which does not exist yet."""
        said, _ = self.redactor.redact_text(text)
        if self.tell is None:
            _log.warning("%s", said)
        else:
            self.tell(said)
        self.remarks.append(said)

    def say(self, text: str) -> None:
        """Say something now that there is a log of the run."""
        _log.warning("%s", text)
        if self.tell is not None:
            self.tell(self.redactor.redact_text(text)[0])

    def repeat(self) -> None:
        """Say again what was said, for the log of the run."""
        for text in self.remarks:
            _log.warning("%s", text)

    def close(self) -> None:
        """Let go of the source; may be called again."""
        if self.source is not None:
            self.source.close()


def freeze_reuse_source(
    request: RunRequest,
    results_dir: Path,
    *,
    redactor: Redactor | None = None,
    benchmark_version: str | None = None,
    tell: Tell | None = None,
) -> FrozenReuse:
    """Decide what `request` reuses, before any output is reserved.

    An id names a run under the same run name, benchmark and model, and must exist: RunNotFound.
    Without one the newest run there that has a `run_info.json` is taken, if there is any. What it
    was asked for otherwise is told; where the request wants none of that, UsageError, and also
    where it says how to reuse, but not that it does.
    """
    frozen = FrozenReuse(redactor=redactor or Redactor({}), tell=tell)
    if not request.runtime.reuse:
        _refuse_conditions(request)
        return frozen
    lookup = _Lookup(request, results_dir, frozen)
    source = lookup.named() if request.runtime.reuse_run_id else lookup.newest()
    if source is None:
        frozen.remark(f"there is no run to reuse in {lookup.place}: all tasks run")
        return frozen
    frozen.source = source
    try:
        _compare(frozen, source, request, benchmark_version)
    except BaseException:
        source.close()
        raise
    return frozen


def _refuse_conditions(request: RunRequest) -> None:
    """Raise UsageError for conditions of a reuse that was not asked for."""
    for name in ("reuse_changed", "reuse_require_equal"):
        if getattr(request.runtime, name):
            flag = "--" + name.replace("_", "-")
            raise UsageError(
                f"{flag} says how to reuse a run, and none is to be reused",
                hint=f"give --reuse or --reuse-run-id, or leave out {flag}",
            )


def _compare(
    frozen: FrozenReuse, source: ReuseSource, request: RunRequest, version: str | None
) -> None:
    """Find what was run otherwise, and say it; refuse where that is asked."""
    settings = settings_of(source.state, request, version, frozen.redactor)
    makers = find_makers(source.state, source.view)
    source.differences = differing_makers(settings, makers)
    source.reconfigured = bool(of_configuration(settings.differences()))
    _tell(frozen, source)
    if request.runtime.reuse_require_equal:
        _require_equal(source, makers)


def _tell(frozen: FrozenReuse, source: ReuseSource) -> None:
    """Say what a reader of the numbers should know of the source."""
    if source.running:
        frozen.remark(
            f"run {source.run_id!r} is being written by {source.running}: the"
            f" {source.state.size} events that it holds now are reused"
        )
    if source.exported_from or source.state.imported:
        frozen.remark(f"run {source.run_id!r} is reused from exported files in {source.path}")
    for line in spoken(of_configuration(source.differences)):
        frozen.remark(f"run {source.run_id!r} was run otherwise: {line}")
    # How many attempts its tasks hold is told when they are taken over.
    for line in spoken(of_attempts(source.differences)):
        frozen.remark(f"run {source.run_id!r} was asked for otherwise: {line}")


def _require_equal(source: ReuseSource, makers: Makers) -> None:
    """Raise UsageError where a task of the source ran with other settings, or who knows which."""
    hint = "reuse another run, or leave out --reuse-require-equal"
    unequal = of_configuration(source.differences)
    if unequal:
        names = ", ".join(
            one.path if one.run_id is None else f"{one.path} (tasks of run {one.run_id!r})"
            for one in unequal
        )
        raise UsageError(f"run {source.run_id!r} was run with other settings: {names}", hint=hint)
    if makers.unknown:
        names = ", ".join(map(repr, makers.unknown))
        raise UsageError(
            f"run {source.run_id!r} has tasks from {names}, and nobody can tell with which"
            " settings these ran",
            hint=hint,
        )


@dataclass(frozen=True, slots=True)
class _Lookup:
    """One search below the root of a request."""

    request: RunRequest
    results_dir: Path
    frozen: FrozenReuse

    @property
    def root(self) -> Path:
        """Where the runs of this run name, benchmark and model are."""
        request = self.request
        return run_root(
            self.results_dir, request.output.run_name, request.benchmark.id, request.model.id
        )

    @property
    def place(self) -> str:
        """The root as messages name it."""
        return self.root.relative_to(self.results_dir).as_posix()

    def named(self) -> ReuseSource:
        """The run that the request names."""
        run_id = self.request.runtime.reuse_run_id
        _refuse_no_run_id(run_id)
        path = run_directory(self.results_dir, self.root, run_id)
        if not path.is_dir():
            raise RunNotFound(f"there is no run {run_id!r} in {self.place}", hint="see `acl ls`")
        source = open_source(path, self.results_dir, "explicit", self.frozen.redactor)
        other = _other_id(source.state, self.request)
        if other is not None:
            source.close()
            raise RunNotFound(
                f"run {run_id!r} in {self.place} is of {other}",
                hint="name a run of the same benchmark and model",
            )
        return source

    def newest(self) -> ReuseSource | None:
        """The newest run that can be reused."""
        for path in _newest_first(self.root):
            try:
                source = open_source(path, self.results_dir, "implicit", self.frozen.redactor)
            except (AclError, OSError) as error:
                self._pass_over(path, str(error))
                continue
            other = _other_id(source.state, self.request)
            if other is None and _began(source.state):
                return source
            source.close()
            self._pass_over(
                path, f"it is of {other}" if other else "it ended before any task began"
            )
        return None

    def _pass_over(self, path: Path, why: str) -> None:
        self.frozen.remark(f"run {path.name!r} is not reused: {why}")


def _refuse_no_run_id(run_id: str) -> None:
    """Raise UsageError for what names no run, or a place outside."""
    parts = _SEPARATORS.split(run_id)
    if not parts[0] or _LEAVING.intersection(parts):
        raise UsageError(
            f"{run_id!r} leads out of the runs of this benchmark and model",
            hint="give the id of a run, as `acl ls` shows it",
        )
    if run_id.startswith(_HIDDEN):
        raise UsageError(f"{run_id!r} is no run: such names are of work that is not done yet")


def _newest_first(root: Path) -> list[Path]:
    """The runs with a `run_info.json`, by the time that it names, then by when it was written."""
    found = []
    for path in _directories(root):
        info = path / RUN_INFO
        try:
            if info.is_symlink() or not info.is_file():
                continue
            found.append((_started(info), info.stat().st_mtime_ns, path))
        except OSError as error:
            _log.warning("%s is not looked at: %s", path.name, error.strerror)
    return [path for _, _, path in sorted(found, reverse=True)]


def _directories(root: Path) -> Iterator[Path]:
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if not entry.name.startswith(_HIDDEN) and entry.is_dir(follow_symlinks=False):
                    yield root / entry.name
    except (FileNotFoundError, NotADirectoryError):
        return


def _started(info: Path) -> datetime:
    """When a run began, as its `run_info.json` says; without a zone it is taken for UTC."""
    try:
        document = json.loads(info.read_bytes())
        started = datetime.fromisoformat(document["started_at"])
    except (ValueError, KeyError, TypeError):
        return _NEVER
    return started if started.tzinfo else started.replace(tzinfo=UTC)


def _other_id(state: RunState, request: RunRequest) -> str | None:
    """Which benchmark or model a run is of, where names that differ have one directory."""
    for name, wanted in (("benchmark", request.benchmark.id), ("model", request.model.id)):
        section = state.request.get(name)
        given = section.get("id") if isinstance(section, dict) else None
        if given != wanted:
            return f"another {name}, {given!r}"
    return None


def _began(state: RunState) -> bool:
    """Whether any task was begun or taken over: an earlier end leaves nothing but a new date."""
    return any(task.first is not None for task in state.tasks.values())
