"""The layout `details`: an exported tree of ours, or a run directory of the program that had it."""

import re
from typing import Final

from runtime.importers.details.run import FORMAT, plan_of, read_run
from runtime.importers.plan import ImportPlan
from runtime.importers.run_info import writer_of
from runtime.importers.source import Source

_RECORD: Final = re.compile(r"details/[^/]+\.json")

__all__ = ["Details"]


class Details:
    """The importer of format `details`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True for an export of ours, or if run_info.json has our schema or none but records.

        Exports of ours in other layouts have importers of their own, or none.
        """
        writer = writer_of(source)
        if writer.is_export:
            return writer.layout in (None, FORMAT)
        if writer.version is not None:
            return writer.version == 1
        return any(_RECORD.fullmatch(file.path) for file in source.files)

    def plan(self, source: Source) -> ImportPlan:
        """Read the whole run once; UsageError for a run that has its ledger."""
        return plan_of(read_run(source))
