"""What Harbor itself reads from a directory of jobs; run by a Python that has Harbor installed.

    python tests/harbor_reader.py JOBS_DIR

Prints one JSON document: by job, its result and configuration, and of each trial what Harbor's
models and its trajectory model make of the files. A file that a model refuses is an error.
"""

import json
import sys
from pathlib import Path
from typing import Any

from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trajectories.trajectory import Trajectory
from harbor.models.trial.result import TrialResult
from harbor.viewer.scanner import JobScanner


def read_job(directory: Path, scanner: JobScanner) -> dict[str, Any]:
    # The scanner only warns of what it cannot read: the models are asked as well.
    result = JobResult.model_validate_json((directory / "result.json").read_text())
    config = JobConfig.model_validate_json((directory / "config.json").read_text())
    assert scanner.get_job_result(directory.name) == result
    assert scanner.get_job_config(directory.name) == config
    names = scanner.list_trials(directory.name)
    trials = {name: read_trial(directory, name, scanner) for name in names}
    own = [TrialResult.model_validate_json(text(directory, name, "result.json")) for name in names]
    return {
        "result": result.model_dump(mode="json"),
        "config": config.model_dump(mode="json"),
        "trials": trials,
        "stats_of_trials": JobStats.from_trial_results(
            own, n_total_trials=result.n_total_trials
        ).model_dump(mode="json"),
    }


def read_trial(job: Path, name: str, scanner: JobScanner) -> dict[str, Any]:
    result = TrialResult.model_validate_json(text(job, name, "result.json"))
    assert scanner.get_trial_result(job.name, name) == result
    trajectory = Trajectory.model_validate_json(text(job, name, "agent/trajectory.json"))
    cause = result.failure_cause
    return {
        "result": result.model_dump(mode="json"),
        "failure_cause": None if cause is None else cause.value,
        "steps": len(trajectory.steps),
        "sources": [step.source for step in trajectory.steps],
    }


def text(job: Path, name: str, path: str) -> str:
    return (job / name / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    scanner = JobScanner(Path(sys.argv[1]))
    found = {name: read_job(scanner.jobs_dir / name, scanner) for name in scanner.list_jobs()}
    print(json.dumps(found))
