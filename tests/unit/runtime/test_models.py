import pytest
from pydantic import ValidationError

from runtime.models import EnvName, RunRequest

LEAST = {"benchmark": {"id": "b"}}


def test_the_least_request_names_a_benchmark() -> None:
    request = RunRequest.model_validate(LEAST)
    execution = request.execution
    assert (request.harness.id, request.environment.id) == ("none", "local")
    assert (execution.task_concurrency, execution.k, execution.strategy) == (4, 1, "all")
    assert (execution.max_retries, execution.retry_pattern_list) == (0, None)
    assert (execution.retry_min_delay_seconds, execution.retry_max_delay_seconds) == (5.0, 60.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"benchmark": {"id": "b"}, "benchmrak": {}},
        {**LEAST, "execution": {"k": 0}},
        {**LEAST, "execution": {"task_concurrency": 0}},
        {**LEAST, "execution": {"max_retries": -1}},
        {**LEAST, "execution": {"strategy": "avg"}},
        {**LEAST, "execution": {"timeout_multiplier": 0}},
        {**LEAST, "execution": {"run_timeout_seconds": float("nan")}},
        {**LEAST, "execution": {"concurrency": 3}},
        {"benchmark": {}},
        {},
    ],
)
def test_what_is_unknown_or_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RunRequest.model_validate(wrong)


def test_an_id_to_reuse_switches_reuse_on() -> None:
    request = RunRequest.model_validate({**LEAST, "runtime": {"reuse_run_id": "r"}})
    assert request.runtime.reuse is True
    assert RunRequest.model_validate(LEAST).runtime.reuse is None


def test_an_api_key_may_be_a_name() -> None:
    request = RunRequest.model_validate({**LEAST, "model": {"id": "m", "api_key": {"env": "KEY"}}})
    assert request.model.api_key == EnvName(env="KEY")
    assert request.to_task_payload()["model"]["api_key"] == {"env": "KEY"}


def test_a_config_path_loses_its_directory() -> None:
    request = RunRequest.model_validate({**LEAST, "metadata": {"config_path": "/home/x/run.yaml"}})
    assert request.metadata.config_path == "run.yaml"


def test_the_payload_is_the_whole_request_and_reads_back() -> None:
    request = RunRequest.model_validate(
        {**LEAST, "execution": {"k": 3, "artifact_limits": {"max_files": 2}}}
    )
    assert RunRequest.model_validate(request.to_task_payload()) == request


def test_persistence_needs_five_parts() -> None:
    params = RunRequest.model_validate(LEAST).to_persistence_params()
    assert list(params) == ["benchmark", "model", "output", "reuse", "metadata"]


def test_a_request_does_not_change() -> None:
    request = RunRequest.model_validate(LEAST)
    with pytest.raises(ValidationError):
        request.execution.k = 2  # type: ignore[misc]


def test_a_payload_keeps_what_json_cannot_say() -> None:
    params = {"x": float("inf"), "y\ud800": 2**70}
    request = RunRequest.model_validate({"benchmark": {"id": "b", "params": params}})
    assert request.to_task_payload()["benchmark"]["params"] == params
    assert request.to_persistence_params()["benchmark"]["params"] == params


@pytest.mark.parametrize("value", [{1: 2}, {"a": {3}}, {"a": b"x"}], ids=repr)
def test_parameters_that_no_ledger_can_hold_are_refused_by_name(value: object) -> None:
    with pytest.raises(ValidationError, match="params"):
        RunRequest.model_validate({"benchmark": {"id": "b", "params": {"deep": value}}})
