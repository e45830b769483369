from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ledger.errors import UsageError
from runtime.models import RunRequest
from runtime.suite import Suite, refuse_contradictions
from tests.suites import named, suite


def refused(*requests: dict[str, Any]) -> str | None:
    try:
        refuse_contradictions(suite(*requests), Path("results"))
    except UsageError as error:
        return error.message
    return None


def test_what_a_run_records_is_a_plain_request_with_its_name() -> None:
    (request,) = suite(named("one", "a", k=3)).run_requests()
    assert type(request) is RunRequest
    assert request.metadata.request_name == "one"
    assert "name" not in request.to_task_payload()
    assert request.execution.k == 3


def test_the_limit_of_the_suite_stands_where_a_request_has_none() -> None:
    requests = suite(named("a"), named("b", task_concurrency=2), task_concurrency=7).run_requests()
    assert [one.execution.task_concurrency for one in requests] == [7, 2]


def test_the_defaults_are_no_time_limit_and_thirty_seconds_of_grace() -> None:
    found = suite(named("a"))
    assert (found.task_concurrency, found.timeout_seconds, found.cleanup_grace_seconds) == (
        4,
        0,
        30,
    )


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"requests": []}, ("requests",)),
        ({"surprise": 1}, ("surprise",)),
        ({"task_concurrency": 0}, ("task_concurrency",)),
        ({"timeout_seconds": -1}, ("timeout_seconds",)),
        ({"timeout_seconds": float("nan")}, ("timeout_seconds",)),
        ({"requests": [{"benchmark": {"id": "b"}}]}, ("requests", 0, "name")),
        ({"requests": [{"name": "", "benchmark": {"id": "b"}}]}, ("requests", 0, "name")),
        ({"requests": [named("a"), {**named("b"), "x": 1}]}, ("requests", 1, "x")),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], place: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        Suite.model_validate({"requests": [named("a")], **change})
    assert caught.value.errors()[0]["loc"] == place


def test_a_name_is_given_once() -> None:
    assert refused(named("a"), named("b"), named("a")) == (
        "requests 0 and 2 have the same name 'a'"
    )


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"output": {"run_id": "x"}}, {"output": {"run_id": "x"}}, True),
        ({"output": {"run_id": "x y"}}, {"output": {"run_id": "x_y"}}, True),
        ({"output": {"run_id": "x"}}, {"output": {"run_id": "y"}}, False),
        ({"output": {"run_id": ""}}, {"output": {"run_id": ""}}, False),
        (
            {"output": {"run_id": "x", "run_name": "n//m"}},
            {"output": {"run_id": "x", "run_name": "n/m"}},
            True,
        ),
        (
            {"output": {"run_id": "x", "run_name": "n"}},
            {"output": {"run_id": "x", "run_name": "m"}},
            False,
        ),
        (
            {"output": {"run_id": "x"}, "model": {"id": "m"}},
            {"output": {"run_id": "x"}, "model": {"id": "n"}},
            False,
        ),
    ],
)
def test_one_output_is_for_one_request(
    first: dict[str, Any], second: dict[str, Any], same: bool
) -> None:
    said = refused(named("a", **first), named("b", **second))
    assert (said is not None) == same
    if said is not None:
        assert "'a' and 'b' have the same output results/" in said


def test_a_name_that_no_directory_can_have_is_left_to_its_request() -> None:
    assert refused(named("a", output={"run_id": ".."}), named("b", output={"run_id": ".."})) is None


NEWEST = {"runtime": {"reuse": True}}


@pytest.mark.parametrize(
    ("first", "second", "ambiguous"),
    [
        (NEWEST, {}, True),
        ({}, NEWEST, True),
        (NEWEST, NEWEST, True),
        (NEWEST, {"runtime": {"reuse_run_id": "x"}}, True),
        (NEWEST, {"output": {"run_name": "elsewhere"}}, True),
        ({"runtime": {"reuse_run_id": "x"}}, {"runtime": {"reuse_run_id": "y"}}, False),
        ({"runtime": {"reuse": False}}, {}, False),
        ({**NEWEST, "model": {"id": "m"}}, {"model": {"id": "n"}}, False),
        ({**NEWEST, "model": {"id": "org/m"}}, {"model": {"id": "org_m"}}, True),
        (NEWEST, {"benchmark": {"id": "other"}}, False),
    ],
)
def test_the_newest_run_is_reused_only_where_nobody_else_might_be_meant(
    first: dict[str, Any], second: dict[str, Any], ambiguous: bool
) -> None:
    said = refused(named("a", **first), named("b", **second))
    assert (said is not None) == ambiguous


def test_one_request_may_reuse_the_newest_run() -> None:
    assert refused(named("a", **NEWEST)) is None


def test_the_request_that_asks_and_the_one_that_might_be_meant_are_named() -> None:
    said = refused(named("a"), named("b", **NEWEST))
    assert said is not None
    assert said.startswith("request 'b' reuses the newest run, but request 'a' has the same")
