import pytest

from runtime.importers.agentcompass.request import our_request, payload, persistence_params
from runtime.models import RunRequest


@pytest.mark.parametrize(("word", "ours"), [("avg", "all"), ("pass", "stop_on_correct")])
def test_strategies_have_names_of_their_own_here(word, ours):
    request = our_request({"execution": {"attempts": {"k": 4, "strategy": word}}}, "r")
    assert (request.execution.strategy, request.execution.k) == (ours, 4)


def test_options_of_the_same_name_are_taken_over():
    source = {
        "benchmark": {"id": "b", "params": {"limit": 3}},
        "harness": {"id": "h", "params": {"x": 1}},
        "environment": {"id": "e", "env_variables": {"A": "b"}, "run_resources": {"cpu": 1}},
        "model": {"id": "m", "api_key": "********", "api_protocol": "openai", "wrap_api_key": True},
        "execution": {
            "task_concurrency": 9,
            "max_retries": 2,
            "retry_pattern_list": ["50."],
            "analysis_params": {"exclude_analyzers": ["A"], "task_concurrency": 1},
            "artifact_limits": {"max_files": 5, "max_mb": 2, "timeout_seconds": 1.0},
        },
        "runtime": {"reuse_run_id": "old", "checkpoint_resume": True},
        "output": {"run_name": "n", "run_id": "old"},
        "metadata": {"config_path": "/somewhere/run.yaml", "recipe_dirs": None},
    }
    request = our_request(source, "r")
    assert request.benchmark.params == {"limit": 3}
    assert request.harness.params == {"x": 1}
    assert request.environment.env_variables == {"A": "b"}
    assert (request.model.api_key, request.model.api_protocol) == (None, "openai")
    assert (request.execution.task_concurrency, request.execution.max_retries) == (9, 2)
    assert request.execution.retry_pattern_list == ["50."]
    assert request.execution.exclude_analyzers == ["A"]
    assert request.execution.artifact_limits.max_bytes == 2 * 1024 * 1024
    assert (request.runtime.reuse, request.runtime.reuse_run_id) == (True, "old")
    assert (request.output.run_name, request.output.run_id) == ("n", "r")
    assert request.metadata.config_path == "run.yaml"


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"benchmark": 1, "execution": [], "model": None},
        {"execution": {"attempts": {"k": 0}, "max_retries": "many", "run_timeout_seconds": -1}},
        {
            "execution": {"artifact_limits": {"max_mb": 1, "max_files": -3}},
            "output": {"run_name": 5},
        },
        {"environment": {"id": "e", "resources": None, "setup": None}},
    ],
)
def test_what_our_request_refuses_is_left_to_the_words_of_the_source(source):
    request = our_request(source, "r")
    assert request.benchmark.id == "unknown"
    assert request.execution.k == 1
    assert request.execution.max_retries == 0


def test_the_payload_is_the_one_that_our_own_runs_have():
    request = our_request({"benchmark": {"id": "b"}, "execution": {"max_retries": 2}}, "r")
    assert payload(request) == request.to_task_payload()
    assert persistence_params(payload(request)) == request.to_persistence_params()
    assert RunRequest.model_validate(payload(request)) == request


def test_odd_values_in_parameters_stay_what_they_are():
    params = {"x": float("nan"), "\ud800": "\udc00", "y": 2**80}
    source = {"benchmark": {"id": "\ud800", "params": params}}
    assert payload(our_request(source, "r"))["benchmark"] == {"id": "\ud800", "params": params}
