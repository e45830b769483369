"""`acl export -f jobs`: a run as a job below an artifacts directory."""

from pathlib import Path
from typing import Any

from acl.output import alarm, document, line


def export_jobs(
    state: Any, view: Any, artifacts: Path, options: Any, *, force: bool, json: bool
) -> None:
    """Write the job, its analysis and the archive, and tell where they stand.

    The same job again is left as it is. Runs that were killed while they wrote here are finished.
    """
    from acl.artifacts import finish_artifacts, notice

    finished = finish_artifacts(state, view, artifacts, options, force=force, tell=alarm)
    notice(artifacts, alarm)
    placed, archived = finished.placed, finished.archived
    if json:
        document(
            {
                "path": str(finished.job),
                "format": "jobs",
                "files": placed.files,
                "run_id": state.run_id,
                "status": state.status,
                "size": state.size,
                "root": state.root.hex(),
                "written": placed.is_new,
                **finished.document(),
            }
        )
        return
    how = "" if placed.is_new else ", as they stood there"
    line(f"{placed.files} files in {finished.job}{how}, status {state.status}")
    line(f"from {state.size} events, root {state.root.hex()}")
    if archived is not None:
        line(f"archived as {archived.id} in {finished.archive}")
