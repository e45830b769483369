"""AgentCompass 1.0.1 run directories, finished or killed."""

import re
from typing import Final

from runtime.importers.agentcompass.run import FORMAT, plan_of, read_run
from runtime.importers.plan import ImportPlan
from runtime.importers.run_info import writer_of
from runtime.importers.source import Source

_TASK_FILE: Final = re.compile(r"details/(?:normal|error|fatal|running)/.+--[0-9a-f]{64}/.+")

__all__ = ["AgentCompass"]


class AgentCompass:
    """The importer of format `agentcompass`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if run_info.json says so, or a task directory is named as in no other layout.

        An export of ours is of this format if it is in this layout, whatever program made the run.
        """
        writer = writer_of(source)
        if writer.is_export:
            return writer.layout == FORMAT
        if any(_TASK_FILE.fullmatch(file.path) for file in source.files):
            return True
        # v1 is the layout `details`, which is ours.
        return writer.version is not None and writer.version > 1

    def plan(self, source: Source) -> ImportPlan:
        """Read the whole run once; VersionUnsupported if a newer release wrote it."""
        return plan_of(read_run(source))
