"""Replay: metrics again from the events alone, compared with those that were recorded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ledger.errors import RunNotFound, UsageError
from ledger.events import MetricsComputed, ReducerUse
from ledger.state import RunState
from ledger.view import Recorded
from runtime.folded import Folded
from runtime.metrics.aggregation import aggregate
from runtime.metrics.comparison import Comparison, Difference, compare_import, compare_run
from runtime.metrics.observations import counts_are_erased
from runtime.metrics.policies import COUNT_AS_ZERO, policy_named
from runtime.metrics.uses import default_uses, find_reducer, names, parse_use
from runtime.results import MetricCounts, MetricResult

if TYPE_CHECKING:
    from runtime.contracts import Benchmark


class Events(Protocol):
    """What replay reads of a ledger; `LedgerView` has it."""

    @property
    def size(self) -> int:
        """How many events there are."""

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Recorded]:
        """The events in order."""

    def root(self, size: int | None = None) -> bytes:
        """The root of the tree over the first `size` events."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a replay found.

    `equal` is None where there was nothing to compare: no `metrics.computed` in the prefix, as in
    a run that was interrupted, or nothing left of it since verdicts were erased. `metrics` holds
    the values of the recorded reducers, then those that were `added`. `not_compared` names each
    recorded value that could not be recomputed, with the reason. `size` and `root` are of the
    prefix that was replayed.
    """

    equal: bool | None
    recorded: MetricResult | None
    metrics: MetricResult
    differences: tuple[Difference, ...]
    not_compared: Mapping[str, str]
    added: tuple[str, ...]
    reducers: tuple[ReducerUse, ...]
    source: str | None
    size: int
    root: str

    def document(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "equal": self.equal,
            "source": self.source,
            "metrics": self.metrics.model_dump(mode="python"),
            "recorded": None if self.recorded is None else self.recorded.model_dump(mode="python"),
            "differences": [asdict(difference) for difference in self.differences],
            "not_compared": dict(self.not_compared),
            "added": list(self.added),
            "size": self.size,
            "root": self.root,
        }


def replay(
    view: Events,
    *,
    at: int | None = None,
    reducers: Sequence[str | ReducerUse] = (),
    policies: Sequence[str] = (),
    benchmark: "Benchmark | None" = None,
) -> Replay:
    """Recompute the metrics of a run as of event `at` (the last by default) and compare.

    The reducers, versions and policies are exactly those of the last `metrics.computed` of the
    prefix; without one, the default set. `reducers` are added to them, and both under each of
    `policies`. An imported run is replayed under its source's rules, and our default set is
    added. `benchmark` is the run's own, for what it added itself; without it that is named as
    not compared. Nothing is written.

    Raises RunNotFound for an event that is not there or a ledger without a run, UsageError for an
    unknown reducer or policy to add.
    """
    if at is not None and not 0 <= at < view.size:
        raise RunNotFound(f"there is no event {at}: the ledger has {view.size} events")
    folded = Folded()
    for recorded in view.events(until=None if at is None else at + 1):
        folded.take(recorded)
    return replay_folded(
        folded, view.root, reducers=reducers, policies=policies, benchmark=benchmark
    )


def replay_folded(
    folded: Folded,
    root_at: Callable[[int], bytes],
    *,
    reducers: Sequence[str | ReducerUse] = (),
    policies: Sequence[str] = (),
    benchmark: "Benchmark | None" = None,
) -> Replay:
    """Do the same with what was folded already.

    `root_at` gives the root over so many first events, or raises RunNotFound where there are fewer.
    """
    state = folded.state
    if state.created is None:
        raise RunNotFound("this ledger holds no run")
    work = _Replaying(state, state.metrics[-1][2] if state.metrics else None, benchmark)
    uses = work.recorded_uses()
    base = work.measure(uses)
    added = work.added(uses, reducers, policies)
    comparison = work.compare(lambda size: folded.roots.get(size) or root_at(size), base)
    return Replay(
        equal=None if not comparison.compared else not comparison.differences,
        recorded=work.recorded(),
        metrics=work.measure((*uses, *added)) if added else base,
        differences=tuple(comparison.differences),
        not_compared=dict(sorted(comparison.not_compared.items())),
        added=tuple(names((*uses, *added), policy=work.policy)[len(uses) :]),
        reducers=(*uses, *added),
        source=None if work.event is None else work.event.source,
        size=state.size,
        root=state.root.hex(),
    )


def measure(state: RunState, benchmark: "Benchmark | None" = None) -> MetricResult:
    """The metrics of `state` by the rules of its last `metrics.computed`, else the default ones.

    Reducers that are not installed here are left out.
    """
    work = _Replaying(state, state.metrics[-1][2] if state.metrics else None, benchmark)
    return work.measure(work.recorded_uses())


@dataclass(slots=True)
class _Replaying:
    """One replay at work: the folded state, and the recorded result if there is one."""

    state: RunState
    event: MetricsComputed | None
    benchmark: "Benchmark | None"
    comparison: Comparison = field(default_factory=Comparison)

    @property
    def imported(self) -> bool:
        return self.event is not None and self.event.source == "import"

    @property
    def policy(self) -> str:
        """The error policy that the names of the result leave out."""
        if self.event is None:
            return COUNT_AS_ZERO
        first = self.event.reducers[0].policy if self.event.reducers else COUNT_AS_ZERO
        return str(self.event.extra.get("policy", first))

    def recorded_uses(self) -> tuple[ReducerUse, ...]:
        """The uses to replay; those that are not installed here are named as not compared."""
        if self.event is None:
            return self._default_uses()
        found = []
        for use in self.event.reducers:
            try:
                find_reducer(use.name, use.version)
                policy_named(use.policy)
            except UsageError as error:
                self.comparison.not_compared[_recorded_name(self.event, use)] = error.message
            else:
                found.append(use)
        return tuple(dict.fromkeys(found))

    def measure(self, uses: Sequence[ReducerUse]) -> MetricResult:
        """The metrics of these uses, and what the benchmark adds to them."""
        metrics, _ = aggregate(self.state, reducers=uses, policy=self.policy)
        if self.benchmark is None or self.imported:
            return metrics
        try:
            return self.benchmark.aggregate_metrics(self.state, metrics)
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            reason = f"aggregate_metrics raised {type(error).__name__}: {error}"
            self.comparison.not_compared[f"benchmark {self.benchmark.id}"] = reason
            self.benchmark = None
            return metrics

    def added(
        self,
        uses: Sequence[ReducerUse],
        reducers: Sequence[str | ReducerUse],
        policies: Sequence[str],
    ) -> tuple[ReducerUse, ...]:
        """The uses that were asked for and are not among the recorded ones."""
        policy, k = self.policy, self.state.k
        added = [
            parse_use(use, policy=policy, k=k) if isinstance(use, str) else use for use in reducers
        ]
        if self.imported:
            added += self._default_uses()
        for other in policies:
            policy_named(other)
            added += [
                use.model_copy(update={"policy": other})
                for use in (*uses, *added)
                if other in find_reducer(use.name, use.version).policies
            ]
        return tuple(use for use in dict.fromkeys(added) if use not in uses)

    def compare(self, root_at: Callable[[int], bytes], replayed: MetricResult) -> Comparison:
        """Compare the recorded result, and the prefix that it names, with what was replayed."""
        event = self.event
        if event is None:
            return self.comparison
        root = _root(root_at, event.size)
        if root != event.root:
            self.comparison.look("root", event.root, root)
        if self.imported:
            compare_import(event, replayed, self.comparison)
        else:
            compare_run(
                event,
                replayed,
                self.comparison,
                counts_erased=counts_are_erased(self.state),
                with_benchmark=self.benchmark is not None,
            )
        return self.comparison

    def recorded(self) -> MetricResult | None:
        """The recorded result as it stands: it is shown, so nothing in it is put right."""
        if self.event is None:
            return None
        return MetricResult.model_construct(
            schema_version=self.event.schema_version,
            metrics=dict(self.event.metrics),
            counts=MetricCounts.model_construct(None, **self.event.counts),
            details=dict(self.event.details),
            extra=dict(self.event.extra),
        )

    def _default_uses(self) -> tuple[ReducerUse, ...]:
        return default_uses(self.state, policy=COUNT_AS_ZERO, k=self.state.k)


def _root(root_at: Callable[[int], bytes], size: int) -> str | None:
    try:
        return root_at(size).hex()
    except RunNotFound:
        return None


def _recorded_name(event: MetricsComputed, use: ReducerUse) -> str:
    """The name under which a reducer that is not installed left its value."""
    wanted = {**use.model_dump(exclude={"name"}), "reducer": use.name}
    for name, detail in event.details.items():
        if isinstance(detail, dict) and wanted.items() <= detail.items():
            return name
    return f"{use.metric}.{use.name}" if use.k is None else f"{use.metric}.{use.name}@{use.k}"
