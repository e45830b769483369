"""The end of a run that was worked through: its metrics, as an event that says what they are of."""

from collections.abc import Sequence

from ledger.events import MetricsComputed, ReducerUse
from runtime.contracts import Benchmark
from runtime.metrics import aggregate
from runtime.recorder import Recorder
from runtime.results import MetricResult


def compute(
    recorder: Recorder, benchmark: Benchmark | None = None
) -> tuple[MetricResult, MetricsComputed]:
    """Reduce all that is on disk, let the benchmark add to it, and return the event to record.

    Raises TypeError where the benchmark gives something else than a MetricResult.
    """
    state = recorder.state()
    metrics, uses = aggregate(state)
    if benchmark is not None:
        metrics = benchmark.aggregate_metrics(state, metrics)
        if not isinstance(metrics, MetricResult):
            raise TypeError(f"benchmark {benchmark.id} gave no MetricResult")
    return metrics, _event(metrics, uses, state.size, state.root)


def _event(
    metrics: MetricResult, uses: Sequence[ReducerUse], size: int, root: bytes
) -> MetricsComputed:
    return MetricsComputed(
        schema_version=metrics.schema_version,
        metrics=metrics.metrics,
        counts=metrics.counts.model_dump(),
        details=metrics.details,
        extra=metrics.extra,
        reducers=tuple(uses),
        size=size,
        root=root.hex(),
        source="evaluation",
    )
