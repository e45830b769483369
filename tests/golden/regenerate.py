"""Write the golden trees anew: `python -m tests.golden.regenerate`. Read every difference then."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from exporters.details import LAYOUT, export_details
from exporters.identity import Identity
from exporters.job_analysis import AnalysisConfig
from exporters.jobs.place import write_job
from exporters.write import write_tree
from ledger.fold import fold
from ledger.view import LedgerView
from tests.analysis_runs import analyzed, mixed, options
from tests.golden.runs import RUNS
from tests.job_runs import agents

TREES = Path(__file__).parent / "details"
JOBS = Path(__file__).parent / "jobs"
JOB_RUNS = {name: RUNS[name] for name in ("empty", "full", "interrupted", "reused")} | {
    "agents": agents
}

ANALYSES = Path(__file__).parent / "analysis"
ANALYSIS_RUNS: dict[str, tuple[Callable[[Path], object], AnalysisConfig]] = {
    "agents": (agents, AnalysisConfig()),
    "attempts": (RUNS["full"], options(analysis={"unit": "attempt"})),
    "mixed": (mixed().write, AnalysisConfig()),
}


def main() -> None:
    for name, build in RUNS.items():
        with tempfile.TemporaryDirectory() as scratch:
            build(Path(scratch))
            with LedgerView.open(Path(scratch)) as view:
                state = fold(view.events())
                shutil.rmtree(TREES / name, ignore_errors=True)
                files = export_details(state, view)
                write_tree(files, TREES / name, identity=Identity.of(state), layout=LAYOUT)
    shutil.rmtree(JOBS, ignore_errors=True)
    for name, build in JOB_RUNS.items():
        with tempfile.TemporaryDirectory() as scratch:
            build(Path(scratch) / "run")
            with LedgerView.open(Path(scratch) / "run") as view:
                placed = write_job(Path(scratch), fold(view.events()), view)
            shutil.copytree(placed.directory, JOBS / name)
    shutil.rmtree(ANALYSES, ignore_errors=True)
    for name, (build, config) in ANALYSIS_RUNS.items():
        with tempfile.TemporaryDirectory() as scratch:
            build(Path(scratch))
            for path, data in analyzed(Path(scratch), config).files.items():
                target = ANALYSES / name / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)


if __name__ == "__main__":
    main()
