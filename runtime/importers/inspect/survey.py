"""One look through all samples: which tasks and epochs there are, and what their scores are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from ledger import canonical
from runtime.importers.inspect.fields import listed, section
from runtime.importers.inspect.log import Log, SampleRef
from runtime.importers.inspect.resolving import Resolver
from runtime.importers.inspect.scores import Place, Scorers, places
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import Remark
from runtime.importers.times import utc

SampleId = int | str

_MAX_EPOCH: Final = 2**32
_MAX_METADATA: Final = 2048
"""Characters of metadata that are told with the plan of a run, which is one event."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One sample that can be told."""

    ref: SampleRef
    id: SampleId
    epoch: int
    values: dict[Place, Any]
    error: bool


@dataclass(slots=True)
class Survey:
    """What all samples together say; the samples themselves stay on disk.

    `seen` is in the order of the log, `ids` maps each sample id to the id of its task, in the
    order of the plan.
    """

    log: Log
    scorers: Scorers
    seen: dict[tuple[SampleId, int], Seen] = field(default_factory=dict)
    metadata: dict[SampleId, dict[str, Any]] = field(default_factory=dict)
    ids: dict[SampleId, str] = field(default_factory=dict)
    unplaced: int = 0
    odd_times: int = 0

    @classmethod
    def of(cls, log: Log) -> "Survey":
        """Read every sample once; what cannot be told goes to the remarks of the log."""
        survey = cls(log, Scorers.of(log.header))
        for ref in log.samples:
            survey._look(ref)
        planned = listed(section(log.header, "eval", "dataset").get("sample_ids"))
        found = [one for one in planned if _is_id(one)]
        survey.ids = task_ids([*found, *(seen.id for seen in survey.seen.values())])
        return survey

    @property
    def epochs(self) -> int:
        """How many epochs were asked for, or at least made."""
        asked = section(self.log.header, "eval", "config").get("epochs")
        made = max((seen.epoch for seen in self.seen.values()), default=1)
        return max(asked if type(asked) is int and 1 <= asked < _MAX_EPOCH else 1, made)

    def tasks(self) -> Iterator[tuple[SampleId, list[Seen]]]:
        """Every sample id with its samples by epoch, in the order of the plan."""
        by_id: dict[SampleId, list[Seen]] = {one: [] for one in self.ids}
        for seen in self.seen.values():
            by_id[seen.id].append(seen)
        for one, samples in by_id.items():
            yield one, sorted(samples, key=lambda seen: seen.epoch)

    def _look(self, ref: SampleRef) -> None:
        try:
            sample = ref.load().value
            found = self._read(ref, sample)
        except NotARecord as fault:
            self.unplaced += 1
            self.log.remarks.append(Remark(ref.name, str(fault), damage=not fault.cut))
            return
        twin = self.seen.setdefault((found.id, found.epoch), found)
        if twin is not found:
            self._tell_twin(found, twin, sample)
            return
        self.scorers.look(sample)
        metadata = section(sample.get("metadata"))
        if metadata and len(repr(metadata)) <= _MAX_METADATA:
            self.metadata.setdefault(found.id, metadata)
        self.odd_times += sum(
            sample.get(name) is not None and utc(sample[name]) is None
            for name in ("started_at", "completed_at")
        )

    def _read(self, ref: SampleRef, sample: dict[str, Any]) -> Seen:
        number, epoch = sample.get("id"), sample.get("epoch", 1)
        if not _is_id(number):
            raise NotARecord(f"its id is {number!r}")
        if type(epoch) is not int or not 1 <= epoch < _MAX_EPOCH:
            raise NotARecord(f"its epoch is {epoch!r}")
        missing = _missing(sample)
        if missing:
            names = ", ".join(sorted(missing)[:3])
            reason = f"it refers to {len(missing)} texts that it does not hold: {names}"
            self.log.remarks.append(Remark(ref.name, reason, placed=True, damage=True))
        values = dict(places(self.scorers.scores(sample)))
        return Seen(ref, number, epoch, values, sample.get("error") is not None)

    def _tell_twin(self, found: Seen, twin: Seen, sample: dict[str, Any]) -> None:
        # As canonical text, since NaN is not equal to itself.
        same = canonical.encode(sample) == canonical.encode(twin.ref.load().value)
        what = f"sample {found.id!r} in epoch {found.epoch} stands before, as {twin.ref.name}"
        why = "with the same content" if same else "with other content, which counts"
        self.unplaced += not same
        self.log.remarks.append(
            Remark(found.ref.name, f"{what}, {why}", placed=same, damage=not same)
        )


def task_ids(found: Iterable[SampleId]) -> dict[SampleId, str]:
    """A task id for each sample id, all different: the ids 1 and "1" are two samples."""
    ids = list(dict.fromkeys(found))
    taken = {one for one in ids if isinstance(one, str)}
    named: dict[SampleId, str] = {}
    for one in ids:
        name = str(one)
        while isinstance(one, int) and name in taken:
            name = f"{name} (number)"
        taken.add(name)
        named[one] = name
    return named


def _is_id(value: Any) -> TypeGuard[SampleId]:
    return type(value) in (int, str)


def _missing(sample: dict[str, Any]) -> set[str]:
    """What the sample refers to and does not hold."""
    resolver = Resolver.of(sample)
    parts = {name: value for name, value in sample.items() if name not in ("attachments", "store")}
    resolver.resolve(parts)
    for event in listed(sample.get("events")):
        if isinstance(event, dict) and event.get("event") == "model":
            resolver.input(event)
    return resolver.missing
