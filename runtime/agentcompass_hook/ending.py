"""The report and the end of a run in our words, as an importer reads them."""

from runtime.importers.agentcompass.metrics import source_metrics
from runtime.importers.agentcompass.run import ended_as
from runtime.importers.jsontext import read_record
from runtime.importers.plan import SourceEnd, SourceMetrics


def as_metrics(report: bytes) -> SourceMetrics | None:
    """The metrics of `metrics.json`; None if it holds none."""
    return source_metrics(read_record(report).value)


def how_it_ended(status: str, error: str) -> SourceEnd:
    """The end that the run tells of itself."""
    return ended_as({"status": status, "error": error})
