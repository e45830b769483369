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


def existing_paths(directory: Path, shown: Path) -> dict[str, str]:
    """Map `output_dir`, and the name of each file in `directory` that exists, to its path.

    `shown` is how paths call the directory.
    """
    paths = {
        name: str(shown / file) for name, file in _FILES.items() if (directory / file).exists()
    }
    return {"output_dir": str(shown), **paths}
