"""ATIF trajectories, one file or several: what an agent did, and no verdict on it."""

from runtime.importers.atif.document import looks_like_atif
from runtime.importers.atif.run import FORMAT, plan_of, read_outline
from runtime.importers.plan import ImportPlan
from runtime.importers.source import Source

__all__ = ["Atif"]


class Atif:
    """The importer of format `atif`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True if there is a JSON file, and each of them begins as a trajectory does."""
        found = [file for file in source.files if file.path.endswith(".json")]
        return bool(found) and all(looks_like_atif(source.read(file)) for file in found)

    def plan(self, source: Source) -> ImportPlan:
        """Read all files once; VersionUnsupported if one is of a newer version of the format."""
        return plan_of(read_outline(source))
