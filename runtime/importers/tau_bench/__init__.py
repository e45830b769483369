"""Results of tau-bench and tau2-bench: one file, a reward for each task and trial."""

from runtime.importers.plan import ImportPlan
from runtime.importers.source import Source
from runtime.importers.tau_bench.results import FORMAT, looks_like_results
from runtime.importers.tau_bench.run import plan_of, result_files

__all__ = ["TauBench"]


class TauBench:
    """The importer of format `tau_bench`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if a JSON file begins as results do, and no JSON file is of another kind."""
        found = result_files(source)
        return bool(found) and all(looks_like_results(source.read(file)) for file in found)

    def plan(self, source: Source) -> ImportPlan:
        """Read the file once; UsageError if there are several or it holds no trial."""
        return plan_of(source)
