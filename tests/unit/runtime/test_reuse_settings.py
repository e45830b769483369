from typing import Any

import pytest

from ledger import events as ev
from ledger.state import RunState
from runtime.models import RunRequest
from runtime.redact import Redactor
from runtime.reuse_settings import differing_settings, of_configuration, spoken
from tests import events_of as say

NO_SECRETS = Redactor({})
ASKED: dict[str, Any] = {
    "benchmark": {"id": "bench", "params": {"seed": 1, "limit": 5}},
    "harness": {"id": "agent", "params": {"temperature": 0.2}},
    "environment": {"id": "local"},
    "model": {"id": "m", "base_url": "http://here/v1"},
}


def request(**changed: Any) -> RunRequest:
    return RunRequest.model_validate(ASKED | changed)


def source(version: str | None = "1", **changed: Any) -> RunState:
    """The state of a run that was asked for so, secrets masked as a recorder does."""
    payload = request(**changed).to_task_payload()
    stored, _ = NO_SECRETS.redact({"request": payload})
    created = say.created().model_copy(update={"request": stored["request"]})
    return RunState(created=created, benchmark="bench", benchmark_version=version)


def found(
    state: RunState, wanted: RunRequest | None = None, version: str | None = "1"
) -> dict[str, tuple[Any, Any]]:
    differences = differing_settings(state, wanted or request(), version, NO_SECRETS)
    return {one.path: (one.before, one.now) for one in differences}


def test_the_same_settings_do_not_differ() -> None:
    assert found(source()) == {}


@pytest.mark.parametrize(
    ("changed", "path", "before", "now"),
    [
        ({"harness": {"id": "other"}}, "harness.id", "other", "agent"),
        (
            {"harness": {"id": "agent", "params": {"temperature": 0.9}}},
            "harness.params.temperature",
            0.9,
            0.2,
        ),
        ({"environment": {"id": "docker"}}, "environment.id", "docker", "local"),
        (
            {"environment": {"id": "local", "resources": {"cpus": 2}}},
            "environment.resources.cpus",
            2,
            None,
        ),
        (
            {"model": {"id": "m", "base_url": "http://there/v1"}},
            "model.base_url",
            "http://there/v1",
            "http://here/v1",
        ),
        (
            {"model": {"id": "m", "base_url": "http://here/v1", "params": {"top_p": 1}}},
            "model.params.top_p",
            1,
            None,
        ),
        ({"benchmark": {"id": "bench", "params": {"seed": 2}}}, "benchmark.params.seed", 2, 1),
    ],
)
def test_every_setting_that_differs_is_named_by_its_path(
    changed: dict[str, Any], path: str, before: Any, now: Any
) -> None:
    assert found(source(**changed))[path] == (before, now)


def test_another_version_of_the_benchmark_is_told() -> None:
    assert found(source("1"), version="2") == {"benchmark.version": ("1", "2")}
    assert found(source(None), version="2") == {"benchmark.version": (None, "2")}


def test_a_source_that_never_selected_tasks_has_no_version_to_differ() -> None:
    state = source()
    state.benchmark = state.benchmark_version = None
    assert found(state, version="2") == {}


def test_which_tasks_were_selected_is_no_difference() -> None:
    params = {"seed": 1, "limit": 99, "task_ids": ["x"], "category": "c"}
    assert found(source(benchmark={"id": "bench", "params": params})) == {}


def test_k_and_strategy_are_told_but_make_no_other_configuration() -> None:
    state = source(execution={"k": 3, "strategy": "stop_on_correct"})
    differences = differing_settings(state, request(), "1", NO_SECRETS)
    assert [(one.path, one.before, one.now) for one in differences] == [
        ("execution.k", 3, 1),
        ("execution.strategy", "stop_on_correct", "all"),
    ]
    assert of_configuration(differences) == []


def test_how_many_run_at_once_is_no_difference() -> None:
    assert found(source(execution={"task_concurrency": 9})) == {}


def test_what_an_older_request_leaves_out_counts_as_its_default() -> None:
    state = source()
    state.request["environment"].pop("resources")
    state.request["model"].pop("api_protocol")
    assert found(state) == {}


def test_a_foreign_request_is_compared_as_it_stands() -> None:
    state = source()
    state.request["harness"] = {"id": "agent", "params": {"temperature": 0.2}, "flavour": "odd"}
    state.request["environment"] = "no section"
    assert found(state) == {"harness.flavour": ("odd", None)}


def test_secrets_are_masked_on_both_sides_and_never_told() -> None:
    model = {"id": "m", "base_url": "http://u:hunter22@here/v1", "api_key": "sk-abcdefgh12345678"}
    wanted = request(model=model, environment={"id": "local", "env_variables": {"A": "secret-a"}})
    state = source(environment={"id": "local", "env_variables": {"A": "secret-b"}})
    told = found(state, wanted)
    assert told == {"model.base_url": ("http://here/v1", "http://********@here/v1")}


def test_values_are_told_as_json_and_long_ones_are_cut() -> None:
    differences = [
        ev.Differing(path="a", before="x\x1b[2J", now=None),
        ev.Differing(path="b", before="y" * 500, now=[1, {"c": True}]),
    ]
    first, second = spoken(differences)
    assert first == r'a was "x\u001b[2J", is null'
    assert second.startswith('b was "yyyy')
    assert len(second) < 200
    assert second.endswith('is [1,{"c":true}]')


def test_of_many_differences_the_first_are_told() -> None:
    differences = [ev.Differing(path=str(n), before=n) for n in range(50)]
    lines = list(spoken(differences))
    assert len(lines) == 21
    assert lines[-1] == "and 30 more"
