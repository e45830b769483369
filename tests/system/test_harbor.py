"""Harbor itself reads our jobs: its models, its scanner, its error policy, its trajectory model.

Harbor needs Python 3.12: `make test-harbor PYTHON312=python3.12` builds an environment for it, and
says by `ACL_HARBOR_PYTHON` where its Python is.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from exporters.jobs.job import JobOptions
from exporters.jobs.place import write_job
from tests import job_runs as say
from tests.golden.runs import RUNS

PYTHON = os.environ.get("ACL_HARBOR_PYTHON")
READER = Path(__file__).resolve().parents[1] / "harbor_reader.py"

pytestmark = [
    pytest.mark.harbor,
    pytest.mark.skipif(PYTHON is None, reason="run `make test-harbor PYTHON312=…`"),
]


def placed(run: Path, artifacts: Path, name: str) -> Path:
    with say.opened(run) as (state, view):
        return write_job(artifacts, state, view, JobOptions(name)).directory


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Harbor makes of a job of every golden run, odd names and all, and of agents' calls."""
    scratch = tmp_path_factory.mktemp("harbor")
    for name, build in {**RUNS, "agents": say.agents}.items():
        build(scratch / "runs" / name)
        placed(scratch / "runs" / name, scratch / "artifacts", name)
    assert PYTHON is not None
    done = subprocess.run(
        [PYTHON, READER, scratch / "artifacts" / "jobs"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    ours = {name: scratch / "artifacts" / "jobs" / name for name in found}
    return {
        name: {**told, "ours": json.loads((ours[name] / "result.json").read_text())}
        for name, told in found.items()
    }


def test_harbor_finds_every_job_and_every_trial(read: dict[str, Any]) -> None:
    assert set(read) == {*RUNS, "agents"}
    assert sorted(read["agents"]["trials"]) == ["fix__1", "fix__2", "late_one__1", "late_one__2"]
    assert len(read["odd"]["trials"]) == 19


def test_harbors_own_statistics_of_the_trials_are_those_that_the_job_tells(
    read: dict[str, Any],
) -> None:
    for name, told in read.items():
        ours, theirs = told["ours"]["stats"], told["stats_of_trials"]
        assert ours["n_completed_trials"] == theirs["n_completed_trials"], name
        assert ours["n_errored_trials"] == theirs["n_errored_trials"], name
        for count in ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd"):
            assert ours[count] == theirs[count], (name, count)
        for key, evaluation in theirs["evals"].items():
            mine = ours["evals"][key]
            for field in ("n_trials", "n_errors", "exception_stats"):
                assert mine[field] == evaluation[field], (name, field)
            rewards = {
                reward: {value: sorted(names) for value, names in values.items()}
                for reward, values in evaluation["reward_stats"].items()
            }
            assert mine["reward_stats"] == rewards, name


def test_harbors_policy_knows_our_errors(read: dict[str, Any]) -> None:
    trials = read["agents"]["trials"]
    assert trials["late_one__1"]["failure_cause"] == "agent_exhausted_budget"
    assert trials["fix__1"]["failure_cause"] is None


def test_harbors_trajectory_model_takes_every_trajectory(read: dict[str, Any]) -> None:
    sources = read["agents"]["trials"]["fix__1"]["sources"]
    assert sources == ["system", "user", "agent", "agent"]
    assert all(trial["steps"] for told in read.values() for trial in told["trials"].values())


def test_harbors_configuration_has_our_attempts_and_agent(read: dict[str, Any]) -> None:
    config = read["agents"]["config"]
    assert (config["job_name"], config["n_attempts"]) == ("agents", 2)
    assert config["agents"][0]["name"] == "agent"
