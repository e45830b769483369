"""`config.yaml` and `config.json`: what the job was asked to do, for its own readers and Harbor's.

Everything comes from the recorded request, which holds no secret.
"""

import json
from typing import Final

import yaml

from exporters import OutFile
from exporters.identity import TRAILER_SCHEMA, Identity
from exporters.jobs.trial import (
    benchmark_id,
    harness_id,
    harness_version,
    model_id,
    part_of_request,
    text_of,
)
from exporters.jsontext import json_bytes
from ledger.state import RunState

YAML: Final = "config.yaml"
JSON: Final = "config.json"
MASK: Final = "********"
JOBS_DIR: Final = "artifacts/jobs"

_Section = dict[str, object]
_TURNS: Final = ("max_turns", "max_iterations", "max_steps")


def config_files(state: RunState, job: str) -> list[OutFile]:
    """Both files of the job of this name; first the one that tells whose the job is."""
    return [config_json(state, job), config_yaml(state)]


def config_yaml(state: RunState) -> OutFile:
    """The snapshot of the configuration that the run was started with."""
    document = {
        "meta_info": {
            "name": "evaluator",
            "description": "An evaluation recorded in a ledger of AgentCompass Ledger.",
            "acl": {"schema": TRAILER_SCHEMA, "run_id": state.run_id},
        },
        "runtime_info": {
            "input": _input(state),
            "output": {
                "eval_results_dir": {
                    "description": "The jobs, with their trials, trajectories and verdicts.",
                    "path": JOBS_DIR,
                    "job_layout": f"{JOBS_DIR}/<job>/<task>/{{agent,verifier}}/",
                    "trajectory_format": f"{JOBS_DIR}/<job>/<task>/agent/litellm-trajectory.jsonl",
                    "results_summary_format": f"{JOBS_DIR}/<job>/result.json",
                }
            },
        },
    }
    # By way of JSON: nothing is left that YAML has no word for, or that it would write as an alias.
    plain = json.loads(json_bytes(document))
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return OutFile(YAML, text.encode("utf-8"))


def config_json(state: RunState, job: str) -> OutFile:
    """Harbor's JobConfig (harbor 0.25.0)."""
    execution = part_of_request(state, "execution")
    document: _Section = {
        "job_name": job,
        "jobs_dir": JOBS_DIR,
        "n_attempts": state.k,
        "timeout_multiplier": execution.get("timeout_multiplier") or 1.0,
        "n_concurrent_trials": execution.get("task_concurrency") or 1,
        "retry": {"max_retries": execution.get("max_retries") or 0},
        "agents": [{"name": harness_id(state), "model_name": model_id(state)}],
        "datasets": [{"path": benchmark_id(state)}],
        "acl": Identity.of(state).trailer(),
    }
    return OutFile(JSON, json_bytes(document, unicode=True))


def _input(state: RunState) -> _Section:
    model = part_of_request(state, "model")
    asked = _params(model)
    execution = part_of_request(state, "execution")
    return {
        "llm_api": {
            "model": model_id(state),
            "api_base_url": text_of(model, "base_url"),
            "protocols": text_of(model, "api_protocol"),
            "api_key": MASK,
            "input_cost_per_token": asked.get("input_cost_per_token"),
            "output_cost_per_token": asked.get("output_cost_per_token"),
        },
        "task_source": {
            "provider": "acl",
            "dataset_name": benchmark_id(state),
            "version": state.benchmark_version,
            "sample_ids": _params(part_of_request(state, "benchmark")).get("task_ids"),
        },
        "harbor_job": {
            "jobs_dir": JOBS_DIR,
            "n_concurrent": execution.get("task_concurrency"),
            "n_tasks": len(state.tasks) if state.benchmark is not None else None,
            "max_retries": execution.get("max_retries"),
            "timeout_multiplier": execution.get("timeout_multiplier"),
        },
        "agent": _agent(state, asked),
        "job_analysis": {"enabled": True},
        "env_extra": {},
        "request": state.request,
    }


def _agent(state: RunState, model_params: _Section) -> _Section:
    params = _params(part_of_request(state, "harness"))
    turns = (params.get(name) for name in _TURNS)
    return {
        "name": harness_id(state),
        "version": harness_version(state),
        "max_turns": next((found for found in turns if found is not None), None),
        "temperature": model_params.get("temperature", params.get("temperature")),
    }


def _params(section: _Section) -> _Section:
    found = section.get("params")
    return found if isinstance(found, dict) else {}
