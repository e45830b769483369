"""Results of any program as JSON lines of a documented form: docs/importers.md, "generic"."""

from runtime.importers.generic.files import is_generic
from runtime.importers.generic.header import FORMAT
from runtime.importers.generic.run import plan_of
from runtime.importers.generic.scan import scan
from runtime.importers.plan import ImportPlan
from runtime.importers.source import Source

__all__ = ["Generic"]


class Generic:
    """The importer of format `generic`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if there is a file of JSON lines, and each begins as the form does."""
        return is_generic(source)

    def plan(self, source: Source) -> ImportPlan:
        """Read all lines once; VersionUnsupported for a newer form, UsageError if none is one."""
        return plan_of(scan(source))
