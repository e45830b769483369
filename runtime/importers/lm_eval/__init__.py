"""Results of lm-evaluation-harness: aggregates, and what became of each document."""

from runtime.importers.lm_eval.files import FORMAT, looks_like_lm_eval
from runtime.importers.lm_eval.run import plan_of
from runtime.importers.plan import ImportPlan
from runtime.importers.source import Source

__all__ = ["LmEval"]


class LmEval:
    """The importer of format `lm_eval`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if there is a file of aggregates or one of samples."""
        return looks_like_lm_eval(source)

    def plan(self, source: Source) -> ImportPlan:
        """Read all once; UsageError for several evaluations, or without any sample."""
        return plan_of(source)
