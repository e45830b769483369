"""The one door for foreign runs: every importer's events enter a ledger here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger import events as ev
from ledger.errors import UsageError
from ledger.state import RunState
from ledger.version import __version__
from runtime.importers import places
from runtime.importers.originals import MIN_DIGESTED, Gate, original, original_events
from runtime.importers.plan import (
    ImportPlan,
    Item,
    Original,
    OwnMetrics,
    Remark,
    SourceEnd,
    SourceMetrics,
)
from runtime.importers.registry import Points, choose
from runtime.importers.source import Source
from runtime.metrics.aggregation import aggregate
from runtime.metrics.policies import COUNT_AS_ZERO
from runtime.metrics.uses import default_uses, parse_use
from runtime.plugins import installed
from runtime.recorder import Recorder
from runtime.redact import POLICY_VERSION
from runtime.registry import Registration
from runtime.surroundings import program

Create = Callable[[Path], Recorder]
"""Makes a new ledger in an empty directory, and the recorder that writes to it."""

Entering = Callable[[Path, bytes], Registration]
"""Gives the entries of the run that will be in a directory, with a ledger of an id."""

Progress = Callable[[int, int], object]
"""Is told how many tasks of how many are written."""

_BATCH_EVENTS: Final = 200
_BATCH_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of an import: every record of the source is placed, or named.

    `records_in` are the files of the source, or the lines where the format is one of lines,
    `records_out` those that stand in events or are kept whole as the logs they are; every file is
    kept as an original besides. `already` says that
    the run was there before.
    """

    run_id: str
    path: Path
    format: str
    records_in: int
    records_out: int
    unplaced: tuple[Remark, ...] = ()
    already: bool = False

    @property
    def damaged(self) -> bool:
        """True if the source holds what neither its program nor a crash of it can have written."""
        return any(remark.damage for remark in self.unplaced)


def import_path(  # noqa: PLR0913 - each is an option of `acl import`, or stands for one
    path: Path,
    *,
    results_dir: Path,
    create: Create,
    format: str | None = None,  # noqa: A002 - the word of the command line
    dry_run: bool = False,
    keep_originals: bool = False,
    command: Sequence[str] = (),
    entering: Entering | None = None,
    points: Points = installed,
    progress: Progress | None = None,
) -> ImportReport:
    """Turn the foreign run at `path` into a sealed ledger under `results_dir`, or leave nothing.

    The same files, under whatever directory name, are imported once: later calls report the run
    that is there. With `dry_run` nothing is written. With `keep_originals` the original files
    are stored as they are, secrets included. `entering` gives the entries of the new run in the
    registry; without it the ledger is for the caller alone.

    Raises UsageError for what no importer takes, and whatever the recorder raises; a half import is
    never left where runs are looked for.
    """
    if not results_dir.is_dir() and results_dir.exists():
        raise UsageError(f"{results_dir} is not a directory")
    source = Source.open(path)
    importer = choose(source, format, points)
    identity = source.identity
    known = places.find_import(results_dir, identity)
    if known is not None:
        return _known(known)
    plan = importer.plan(source)
    target = places.destination(results_dir, plan, identity)
    if not dry_run:
        with places.stage(results_dir, identity) as staged:
            recorder = create(staged)
            ledger_id = recorder.ledger.ledger_id
            registration = None if entering is None else entering(target, ledger_id)
            try:
                _Writing(recorder, source, plan, keep_originals, progress).write(
                    target.name, identity, command
                )
            finally:
                recorder.close()
            if registration is not None:
                registration.wait(staged)
            places.publish(staged, results_dir, target)
        if registration is not None:
            registration.enter_whole()
    return ImportReport(
        run_id=target.name,
        path=target,
        format=plan.format,
        records_in=plan.records_in,
        records_out=plan.records_out,
        unplaced=plan.remarks,
    )


def _known(known: places.Known) -> ImportReport:
    imported = known.imported
    return ImportReport(
        run_id=known.path.name,
        path=known.path,
        format=imported.format,
        records_in=imported.records_in,
        records_out=imported.records_out,
        unplaced=tuple(Remark(one.source, one.reason) for one in imported.unplaced),
        already=True,
    )


@dataclass(frozen=True, slots=True)
class _Writing:
    """One import on its way into one ledger."""

    recorder: Recorder
    source: Source
    plan: ImportPlan
    keep_originals: bool
    progress: Progress | None = None

    def write(self, run_id: str, identity: str, command: Sequence[str]) -> None:
        self.recorder.record_sync(*self._head(run_id, identity, command))
        for batch in self._batches():
            if batch:
                self.recorder.record_sync(*batch)
            # Before the next is made: one alone can be large.
            batch.clear()
        self.recorder.seal()

    def _head(self, run_id: str, identity: str, command: Sequence[str]) -> list[ev.AnyEvent]:
        plan = self.plan
        known: Any = program()
        created = ev.RunCreated(
            run_id=run_id,
            request=plan.request,
            persistence_params=plan.persistence_params,
            acl_version=__version__,
            command=tuple(command),
            redaction_policy=POLICY_VERSION,
            **known,
        )
        imported = ev.RunImported(
            format=plan.format,
            format_version=plan.format_version,
            identity=identity,
            source_run_id=plan.run_id or None,
            source_status=plan.source_status,
            started_at=plan.started_at,
            finished_at=plan.finished_at,
            records_in=plan.records_in,
            records_out=plan.records_out,
            unplaced=tuple(
                ev.Unplaced(source=remark.source, reason=remark.reason) for remark in plan.remarks
            ),
            keeps_originals=self.keep_originals,
        )
        frozen = [plan.frozen] if plan.frozen is not None else []
        return [created, imported, *frozen, ev.RunStarted(), plan.selected]

    def _batches(self) -> Iterator[list[ev.AnyEvent]]:
        """The items as events, in batches of bounded size: one large file makes one of its own."""
        batch: list[ev.AnyEvent] = []
        weight = 0
        for item in self._told():
            if isinstance(item, SourceMetrics | OwnMetrics | SourceEnd):
                # These tell of the prefix before them, so that must be stored.
                yield batch
                batch, weight = [self._of_prefix(item)], 0
                continue
            for event in self._events(item):
                batch.append(event)
                weight += event.bytes if isinstance(event, ev.OriginalRecorded) else 0
                del event
                if len(batch) >= _BATCH_EVENTS or weight >= _BATCH_BYTES:
                    yield batch
                    batch, weight = [], 0
        yield batch

    def _told(self) -> Iterator[Item]:
        """The items of the plan, with the progress that they are."""
        total = len(self.plan.selected.tasks)
        done = 0
        for item in self.plan.items():
            yield item
            if self.progress is not None and isinstance(item, ev.TaskStarted):
                done += 1
                self.progress(done, max(total, done))

    def _events(self, item: Item) -> Iterator[ev.AnyEvent]:
        if not isinstance(item, Original):
            assert not isinstance(item, SourceMetrics | OwnMetrics | SourceEnd)
            yield item
        elif self.keep_originals and item.content is None:
            yield from self._kept(item, None)
        elif not self.keep_originals and not item.repeated:
            yield from self._kept(item, self.recorder.redactor)

    def _kept(self, item: Original, gate: Gate | None) -> Iterator[ev.AnyEvent]:
        file = item.file
        if item.content is not None:
            yield original(
                file.path, item.content, file.sha256, gate, task=item.task, attempt=item.attempt
            )
        elif item.in_parts and gate is not None:
            digest = file.sha256.hex() if file.size >= MIN_DIGESTED else None
            yield ev.OriginalRecorded(path=file.path, bytes=file.size, sha256=digest)
        else:
            yield from original_events(
                self.source, file, gate, task=item.task, attempt=item.attempt
            )

    def _of_prefix(self, item: SourceMetrics | OwnMetrics | SourceEnd) -> ev.AnyEvent:
        state = self.recorder.state()
        if isinstance(item, OwnMetrics):
            item = _measured(state, item)
        if isinstance(item, SourceEnd):
            return ev.RunFinished(
                status=item.status,
                error=item.error,
                exit_code=item.exit_code,
                counts=_counts(state),
            )
        return ev.MetricsComputed(
            metrics=item.metrics,
            counts=item.counts or _counts(state),
            details=item.details,
            extra=item.extra,
            reducers=item.reducers,
            size=state.size,
            root=state.root.hex(),
            source=item.source,
        )


def _measured(state: RunState, wanted: OwnMetrics) -> SourceMetrics:
    """The metrics of a state by our own rules, which a replay can apply again."""
    policy, k = COUNT_AS_ZERO, state.k
    uses = [*default_uses(state, policy=policy, k=k)]
    uses += [parse_use(text, policy=policy, k=k) for text in wanted.uses]
    result, used = aggregate(state, reducers=tuple(dict.fromkeys(uses)), policy=policy)
    return SourceMetrics(
        metrics=dict(result.metrics),
        counts=result.counts.model_dump(),
        details=dict(result.details),
        extra=dict(result.extra),
        reducers=used,
        source="evaluation",
    )


def _counts(state: RunState) -> dict[str, int]:
    counts = state.counts()
    return {
        "total": counts.total,
        "evaluated": counts.evaluated,
        "error": counts.error,
        "missing": counts.missing,
        "skipped": counts.skipped,
    }
