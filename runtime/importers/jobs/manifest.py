"""`MANIFEST.json` of a job that we exported: which files it had when it was whole."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from runtime.importers.jobs.layout import ANALYSIS
from runtime.importers.plan import Remark
from runtime.importers.source import Source

NAME: Final = "MANIFEST.json"


def compare(manifest: Mapping[str, Any], source: Source, root: str) -> Iterator[Remark]:
    """Name every file of the job that is not as listed, is missing, or is not listed."""
    rows = manifest.get("files")
    listed = {
        row["path"]: (row.get("sha256"), row.get("size"))
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and isinstance(row.get("path"), str)
    }
    present = {file.path[len(root) :]: file for file in source.files if file.path.startswith(root)}
    for path, told in sorted(listed.items()):
        file = present.get(path)
        if file is None:
            yield Remark(f"{root}{path}", f"{NAME} lists it and it is missing", damage=True)
        elif told != (file.sha256.hex(), file.size):
            why = f"its bytes are not those that {NAME} lists"
            yield Remark(file.path, why, placed=True, damage=True)
    for path in sorted(present.keys() - listed.keys() - {NAME}):
        if not path.startswith(f"{ANALYSIS}/"):
            yield Remark(f"{root}{path}", f"{NAME} does not list it", placed=True, damage=True)
