"""Reuse: finished tasks of another run are taken over as verbatim copies of their events.

The source is decided before any output is made, and only read. Everything that is taken over goes
into the new ledger in one transaction.
"""

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ledger import canonical
from ledger.canonical import Binary, SpilledBinary
from ledger.codec import Header, decode_event
from ledger.errors import AclError, NotALedger, RunNotFound
from ledger.events import ReuseFrozen, TaskReused
from ledger.fold import fold
from ledger.state import RunState, TaskState
from ledger.store import Copy
from ledger.view import LedgerView
from runtime.contracts import Task
from runtime.models import ExecutionSpec, RunRequest
from runtime.paths import run_directory, run_root

RUN_INFO = "run_info.json"
_NOT_LINEAGE = frozenset({"type", "lease", "attempt", "redactions"})

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReuseSource:
    """The run that is reused, as it was when it was chosen: its state, and a way to its events."""

    mode: Literal["explicit", "implicit"]
    run_id: str
    path: str
    view: LedgerView
    state: RunState
    run_info_sha256: str | None = None

    def close(self) -> None:
        """Let go of the source."""
        self.view.close()


def freeze_reuse_source(request: RunRequest, results_dir: Path) -> ReuseSource | None:
    """Decide what `request` reuses, before any output is reserved; None if nothing.

    An id names a run under the same run name, benchmark and model, and must exist: RunNotFound.
    Without one the newest run there that has a `run_info.json` is taken, if there is any.
    """
    if not request.runtime.reuse:
        return None
    root = run_root(results_dir, request.output.run_name, request.benchmark.id, request.model.id)
    wanted = request.runtime.reuse_run_id
    if wanted:
        path = run_directory(results_dir, root, wanted)
        if not path.is_dir():
            raise RunNotFound(f"there is no run {wanted!r} in {root}", hint="see `acl ls`")
        return _opened(path, results_dir, "explicit")
    for path in _newest_first(root):
        try:
            source = _opened(path, results_dir, "implicit")
        except AclError as error:
            _log.warning("%s is not reused: %s", path.name, error.message)
            continue
        if _is_of(source.state, request):
            return source
        _log.warning("%s is not reused: its benchmark or model has another id", path.name)
        source.close()
    return None


def frozen_event(source: ReuseSource | None) -> ReuseFrozen:
    """The event that tells what was decided."""
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
    )


def _opened(path: Path, results_dir: Path, mode: Literal["explicit", "implicit"]) -> ReuseSource:
    view = LedgerView.open(path, pristine=True)
    try:
        state = fold(view.events())
        if state.created is None:
            raise NotALedger(f"{path} holds no run")
        writer = view.writer()
    except BaseException:
        view.close()
        raise
    if writer is not None:
        _log.warning("%s is being written by %s: what it holds now is reused", path.name, writer)
    run_info = path / RUN_INFO
    digest = hashlib.sha256(run_info.read_bytes()).hexdigest() if run_info.is_file() else None
    relative = path.relative_to(results_dir).as_posix()
    return ReuseSource(mode, state.run_id, relative, view, state, digest)


def _newest_first(root: Path) -> list[Path]:
    """The runs with a `run_info.json`, by the time that it names, then by when it was written."""
    found = []
    for info in root.glob(f"*/{RUN_INFO}"):
        if info.parent.is_symlink():
            continue
        try:
            document = json.loads(info.read_bytes())
        except ValueError:
            document = None
        started = document.get("started_at") if isinstance(document, dict) else None
        found.append((str(started or ""), info.stat().st_mtime_ns, info.parent))
    return [path for _, _, path in sorted(found, reverse=True)]


def _is_of(state: RunState, request: RunRequest) -> bool:
    asked = [state.request.get(name, {}).get("id") for name in ("benchmark", "model")]
    return asked == [request.benchmark.id, request.model.id]


@dataclass(slots=True)
class Takeover:
    """What is taken over from a source: one stream of events per task, in the order of `tasks`."""

    tasks: list[Task] = field(default_factory=list)
    streams: list["TaskCopies"] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


@dataclass(slots=True)
class TaskCopies:
    """Called, gives `task.reused` and then the copies of one task's events."""

    view: LedgerView
    reused: TaskReused

    def __call__(self) -> Iterator[TaskReused | Copy]:
        """Yield the items; raises LedgerDamaged where the source is."""
        yield self.reused
        for seq in self.reused.sequence:
            head, body = self.view.raw(seq)
            yield Copy(Header.decode(head), body, self.view.blob)

    def check(self) -> bool:
        """Read all that is to be copied; tell whether it is whole."""
        try:
            for seq in self.reused.sequence:
                head, body = self.view.raw(seq)
                event = decode_event(Header.decode(head), body)
                for digest in canonical.reachable(dict(event), self.view.blob):
                    self.view.blob(digest)
        except AclError as error:
            _log.warning("event %d of the source: %s", seq, error.message)
            return False
        return True


def plan_takeover(source: ReuseSource, tasks: Sequence[Task], execution: ExecutionSpec) -> Takeover:
    """Choose the tasks that the source finished without an error and whose input is unchanged.

    They keep their own attempts, also where the source had another k or strategy.
    """
    plan = Takeover()
    chosen: list[tuple[Task, TaskState]] = []
    for task in tasks:
        before = source.state.tasks.get(task.task_id)
        if before is None or before.stage != "done" or before.has_error:
            continue
        if before.checksum != task.checksum:
            plan.changed.append(task.task_id)
            _log.warning("task %s changed since %s: it runs again", task.task_id, source.run_id)
            continue
        chosen.append((task, before))
    sequences = _sequences(source, {task.task_id for task, _ in chosen})
    writer = _Provenance(source)
    for task, before in chosen:
        copies = TaskCopies(source.view, writer.event(before, sequences[task.task_id]))
        # What brings leaves that later events only refer to must not fail.
        if writer.brings_leaves and not copies.check():
            plan.damaged.append(task.task_id)
            continue
        writer.brought()
        plan.tasks.append(task)
        plan.streams.append(copies)
    _tell(source, plan, execution)
    return plan


def _sequences(source: ReuseSource, wanted: set[str]) -> dict[str, list[int]]:
    """The numbers of each wanted task's events, from its start to its end."""
    found: dict[str, list[int]] = {task_id: [] for task_id in wanted}
    ended: set[str] = set()
    for recorded in source.view.events(until=source.state.size):
        task_id = recorded.task
        if task_id is None or task_id not in wanted or task_id in ended:
            continue
        if recorded.type != "task.reused":
            found[task_id].append(recorded.seq)
        if recorded.type == "task.finished":
            ended.add(task_id)
    return found


class _Provenance:
    """Writes `task.reused` events; the leaf hashes go into the first, the others refer to them."""

    def __init__(self, source: ReuseSource) -> None:
        self._source = source
        size = source.state.size
        self._leaves: Any = Binary(source.view.leaves(size))
        self._stored: set[tuple[bytes, ...]] = set()
        self._bringing: set[tuple[bytes, ...]] = set()
        notes = [note for covered, note in source.view.checkpoints() if covered <= size]
        self._checkpoint = notes[-1] if notes else None

    @property
    def brings_leaves(self) -> bool:
        """True if the last event brings leaf hashes that are not stored yet."""
        return bool(self._bringing)

    def brought(self) -> None:
        """Say that the last event is used."""
        self._stored |= self._bringing
        self._bringing = set()

    def event(self, task: TaskState, sequence: list[int]) -> TaskReused:
        """The event of one task; `brought` says afterwards that it is used."""
        self._bringing = set()
        source = self._source
        lineage = None
        if task.origin is not None:
            before = source.view.event(task.origin.seq).event
            assert isinstance(before, TaskReused)
            lineage = self._lineage(before)
        return TaskReused(
            task=task.id,
            source_run_id=source.run_id,
            source_path=source.path,
            source_ledger_id=source.state.ledger_id,
            size=source.state.size,
            root=source.state.root.hex(),
            leaves=self._referring(_spilled(self._leaves), self._leaves),
            sequence=tuple(sequence),
            checkpoint=self._checkpoint,
            chained=task.origin is not None,
            lineage=lineage,
        )

    def _lineage(self, before: TaskReused) -> dict[str, Any]:
        """The fields of the source's own `task.reused`; it may have a lineage itself."""
        names = (name for name in TaskReused.model_fields if name not in _NOT_LINEAGE)
        fields = {name: getattr(before, name) for name in names}
        return {name: self._whole(value) for name, value in fields.items() if value is not None}

    def _whole(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._whole(item) for name, item in value.items()}
        if isinstance(value, SpilledBinary):
            return self._referring(value, None)
        return self._source.view.resolve(value)

    def _referring(self, spilled: Any, whole: Any) -> Any:
        """The reference if its pieces are stored already, else the value that brings them."""
        if not isinstance(spilled, SpilledBinary):
            return spilled
        if spilled.pieces in self._stored:
            return spilled
        self._bringing.add(spilled.pieces)
        return self._source.view.resolve(spilled) if whole is None else whole


def _spilled(value: Any) -> Any:
    """The form in which `value` stands in an event once its pieces were cut out."""
    return canonical.decode(canonical.encode(value, lambda *_: None))


def _tell(source: ReuseSource, plan: Takeover, execution: ExecutionSpec) -> None:
    """Say what is reused, and what a reader of the numbers should know about it."""
    _log.info("%d tasks are reused from %s", len(plan.tasks), source.run_id)
    theirs = (source.state.k, source.state.strategy)
    if plan.tasks and theirs != (execution.k, execution.strategy):
        _log.warning("the reused tasks were run with k=%d and strategy %s", *theirs)
