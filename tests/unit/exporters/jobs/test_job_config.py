"""`config.yaml` and `config.json`."""

from pathlib import Path
from typing import Any

import yaml

from exporters.jobs.job import JobOptions
from tests import job_runs as say


def snapshot(tmp_path: Path, **sections: Any) -> dict[str, Any]:
    path = say.write(tmp_path, *say.opening("t1", "t2", **sections))
    found: dict[str, Any] = yaml.safe_load(say.exported(path)["config.yaml"])
    return found


def test_the_snapshot_has_the_documented_keys_and_null_for_what_is_unknown(tmp_path: Path) -> None:
    found = snapshot(tmp_path)
    assert found["meta_info"]["name"] == "evaluator"
    assert found["meta_info"]["acl"] == {"schema": "acl.export.v1", "run_id": "run-1"}
    given = found["runtime_info"]["input"]
    assert given["llm_api"] == {
        "model": "model-1",
        "api_base_url": "https://user:********@models.example:8443/v1",
        "protocols": "openai-chat",
        "api_key": "********",
        "input_cost_per_token": None,
        "output_cost_per_token": None,
    }
    assert given["task_source"] == {
        "provider": "acl",
        "dataset_name": "bench",
        "version": "3",
        "sample_ids": None,
    }
    assert given["harbor_job"] == {
        "jobs_dir": "artifacts/jobs",
        "n_concurrent": None,
        "n_tasks": 2,
        "max_retries": None,
        "timeout_multiplier": None,
    }
    assert given["agent"] == {
        "name": "agent",
        "version": "0.1.0",
        "max_turns": None,
        "temperature": None,
    }
    assert (given["job_analysis"], given["env_extra"]) == ({"enabled": True}, {})
    assert given["request"] == say.created().request
    assert list(given) == [
        *("llm_api", "task_source", "harbor_job", "agent", "job_analysis", "env_extra", "request")
    ]
    output = found["runtime_info"]["output"]["eval_results_dir"]
    assert output["path"] == "artifacts/jobs"
    assert output["job_layout"] == "artifacts/jobs/<job>/<task>/{agent,verifier}/"
    assert output["results_summary_format"] == "artifacts/jobs/<job>/result.json"


def test_what_the_request_says_is_told_where_readers_look_for_it(tmp_path: Path) -> None:
    given = snapshot(
        tmp_path,
        benchmark={"params": {"task_ids": ["t2", "t1"]}},
        harness={"params": {"max_turns": 7}},
        model={"params": {"temperature": 0.5, "input_cost_per_token": 1e-06}},
        execution={"task_concurrency": 3, "max_retries": 2, "timeout_multiplier": 2.0},
    )["runtime_info"]["input"]
    assert given["task_source"]["sample_ids"] == ["t2", "t1"]
    assert (given["agent"]["max_turns"], given["agent"]["temperature"]) == (7, 0.5)
    assert given["llm_api"]["input_cost_per_token"] == 1e-06
    assert [given["harbor_job"][name] for name in ("n_concurrent", "max_retries")] == [3, 2]


def test_odd_texts_read_back_as_they_were(tmp_path: Path) -> None:
    odd = {"prompt": "\u00fc \u2028 \ud83d : - # 'x'\n\ttab", "empty": [], "none": None}
    found = snapshot(tmp_path, harness={"params": odd})
    assert found["runtime_info"]["input"]["request"]["harness"]["params"] == odd


def test_harbors_configuration_names_the_job_and_its_attempts(tmp_path: Path) -> None:
    path = say.write(tmp_path, *say.opening("t1", execution={"k": 4, "max_retries": 1}))
    found = say.document(say.exported(path, JobOptions("nightly")), "config.json")
    assert list(found)[-1] == "acl"
    del found["acl"]
    assert found == {
        "job_name": "nightly",
        "jobs_dir": "artifacts/jobs",
        "n_attempts": 4,
        "timeout_multiplier": 1.0,
        "n_concurrent_trials": 1,
        "retry": {"max_retries": 1},
        "agents": [{"name": "agent", "model_name": "model-1"}],
        "datasets": [{"path": "bench"}],
    }
