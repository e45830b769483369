"""Where the files of a run are, by the names under which outcomes tell of them."""

from pathlib import Path
from typing import Final

from ledger.opening import LEDGER_NAME
from runtime.progress import PROGRESS_JSON, PROGRESS_JSONL
from runtime.reuse import RUN_INFO

LOG_NAME: Final = "run.log"

_FILES: Final = {
    "ledger": LEDGER_NAME,
    "run_info": RUN_INFO,
    "params": "params.json",
    "summary": "summary.md",
    "summary_counts": ".summary_counts.json",
    "details_dir": "details",
    "progress_jsonl": PROGRESS_JSONL,
    "progress_json": PROGRESS_JSON,
    "log_file": LOG_NAME,
    "analysis_summary_md": "analysis_summary.md",
    "analysis_summary_json": "analysis_summary.json",
}


def existing_paths(directory: Path) -> dict[str, str]:
    """Map `output_dir`, and the name of each file of the run that exists, to its path."""
    found = {name: directory / file for name, file in _FILES.items()}
    paths = {name: str(path) for name, path in found.items() if path.exists()}
    return {"output_dir": str(directory), **paths}
