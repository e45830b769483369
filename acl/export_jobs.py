"""`acl export -f jobs`: a run as a job below an artifacts directory."""

from pathlib import Path
from typing import Any

from acl.output import document, line


def export_jobs(
    state: Any, view: Any, artifacts: Path, options: Any, *, force: bool, json: bool
) -> None:
    """Write the job and tell where it stands; the same job again is left as it is."""
    from exporters.jobs.place import write_job

    placed = write_job(artifacts, state, view, options, force=force)
    if json:
        document(
            {
                "path": str(placed.directory),
                "format": "jobs",
                "files": placed.files,
                "run_id": state.run_id,
                "status": state.status,
                "size": state.size,
                "root": state.root.hex(),
                "written": placed.is_new,
            }
        )
        return
    how = "" if placed.is_new else ", as they stood there"
    line(f"{placed.files} files in {placed.directory}{how}, status {state.status}")
    line(f"from {state.size} events, root {state.root.hex()}")
