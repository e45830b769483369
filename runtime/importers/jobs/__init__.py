"""Harbor's job directories, finished or killed, and jobs that `acl export -f jobs` wrote."""

from runtime.importers.jobs.job import FORMAT, read_job
from runtime.importers.jobs.layout import is_trial, job_roots
from runtime.importers.jobs.run import plan_of
from runtime.importers.plan import ImportPlan
from runtime.importers.source import Source

__all__ = ["Jobs"]


class Jobs:
    """The importer of format `jobs`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if a file says that it is of a job, or of a trial; also for several jobs."""
        return bool(job_roots(source)) or is_trial(source)

    def plan(self, source: Source) -> ImportPlan:
        """Read the whole job once; UsageError for several jobs and for a single trial."""
        return plan_of(read_job(source))
