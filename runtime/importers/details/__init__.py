"""The layout `details`: an exported tree of ours, or a run directory of the program that had it."""

import re
from typing import Final

from runtime.importers.details.run import FORMAT, plan_of, read_run
from runtime.importers.plan import ImportPlan
from runtime.importers.source import Source

_RECORD: Final = re.compile(r"details/[^/]+\.json")
_SCHEMA: Final = re.compile(rb'"agentcompass\.run_info\.v([0-9]+)"')

__all__ = ["Details"]


class Details:
    """The importer of format `details`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if run_info.json has our schema, or has none and there are records."""
        info = next((file for file in source.files if file.path == "run_info.json"), None)
        schema = _SCHEMA.search(source.read(info)) if info is not None else None
        if schema is not None:
            return int(schema[1]) == 1
        return any(_RECORD.fullmatch(file.path) for file in source.files)

    def plan(self, source: Source) -> ImportPlan:
        """Read the whole run once; UsageError for a run that has its ledger."""
        return plan_of(read_run(source))
