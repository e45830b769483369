"""Reports of the SWE-bench harness: one for each instance, one for the run, or only one kind."""

from runtime.importers.plan import ImportPlan
from runtime.importers.source import Source
from runtime.importers.swebench.layout import FORMAT, looks_like_swebench
from runtime.importers.swebench.run import plan_of

__all__ = ["SweBench"]


class SweBench:
    """The importer of format `swebench`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if there is a report of an instance or of a run."""
        return looks_like_swebench(source)

    def plan(self, source: Source) -> ImportPlan:
        """Read all reports once; UsageError if they are of several runs, or tell of no instance."""
        return plan_of(source)
