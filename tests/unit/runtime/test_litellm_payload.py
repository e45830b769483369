"""Read from what LiteLLM 1.110.2 gave to callbacks, as it was captured."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events import Usage
from runtime import litellm_payload as payload
from runtime.call_records import CallEnd, Coordinates
from runtime.litellm_payload import Began, acl_metadata, read_end, read_start

CAPTURED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "litellm_payloads.json").read_text("utf-8")
)
SECRETS = ("sk-stub-very-secret-0123456789abcdef", "hdr-SECRET", "tok-SECRET-in-metadata")
MESSAGES = [
    {"role": "system", "content": "You add numbers."},
    {"role": "user", "content": "40+2?"},
]


def no_count(model: str, messages: list[Any], text: str) -> tuple[int, int] | None:
    return None


def began(name: str) -> Began:
    told = CAPTURED[name]
    return read_start(copy.deepcopy(told["start"] or told["end"]))


def ended(name: str, count: Any = no_count, **changes: Any) -> CallEnd:
    told = copy.deepcopy(CAPTURED[name])
    told["end"]["standard_logging_object"].update(changes)
    return read_end(
        told["end"], began(name), success=told["success"], version="1.110.2", count=count
    )


def test_a_start_tells_the_request_and_nothing_of_its_keys() -> None:
    start = began("sync").start
    assert start.messages == MESSAGES
    assert (start.provider, start.model) == ("openai", "stub-model")
    assert start.params == {"temperature": 0, "max_tokens": 16, "seed": 7}
    assert start.call_id == CAPTURED["sync"]["start"]["litellm_call_id"]


@pytest.mark.parametrize("name", [name for name in CAPTURED if "mock" not in name])
def test_no_secret_is_in_any_record(name: str) -> None:
    held = json.dumps(CAPTURED[name])
    records = repr((began(name), ended(name)))
    for secret in SECRETS:
        assert secret not in records
    assert any(secret in held for secret in SECRETS), "the captured payload holds none"


def test_a_good_end_has_usage_times_and_the_providers_id() -> None:
    end = ended("sync")
    assert end.success
    assert end.usage == Usage(
        input_tokens=11, output_tokens=7, total_tokens=18, cached_tokens=4, reasoning_tokens=2
    )
    assert end.response is not None
    assert end.response["choices"][0]["message"]["content"]
    told = CAPTURED["sync"]["end"]["standard_logging_object"]
    spent = told["endTime"] - told["startTime"]
    assert end.duration_ms == pytest.approx(spent * 1000, abs=0.001)
    assert end.ttft_ms is None
    assert (end.started_at or "") < (end.finished_at or "")
    assert (end.started_at or "").startswith("2026-11-29T13:26:1")
    assert end.provider_request_id == "req_chatcmpl-stub-1"


def test_the_duration_of_a_stream_is_not_the_time_to_its_first_token() -> None:
    end, told = ended("stream_usage"), CAPTURED["stream_usage"]["end"]["standard_logging_object"]
    assert end.ttft_ms == pytest.approx(told["response_time"] * 1000, abs=0.001)
    assert end.duration_ms is not None
    assert end.ttft_ms is not None
    assert end.duration_ms > 2 * end.ttft_ms


def test_usage_of_a_stream_that_the_provider_gave_is_not_marked() -> None:
    usage = ended("stream_usage").usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (11, 7, 18)
    assert not usage.estimated


def test_usage_that_litellm_counted_for_want_of_it_is_marked() -> None:
    usage = ended("stream_no_usage").usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (19, 3, 22)
    assert usage.estimated


@pytest.mark.parametrize(("own", "estimated"), [((9, 5), True), ((9, 4), False), (None, False)])
def test_where_usage_was_asked_for_it_is_marked_if_it_is_litellms_own_count(
    own: tuple[int, int] | None, estimated: bool
) -> None:
    told = {"usage_object": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}}
    usage = ended("stream_usage", lambda *_: own, metadata=told).usage
    assert usage is not None
    assert usage.estimated is estimated


def test_no_tokens_at_all_is_not_a_count() -> None:
    told = {"usage_object": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
    assert ended("sync", metadata=told).usage is None
    assert ended("500").usage is None


@pytest.mark.parametrize("name", ["stream_no_usage", "sync", "500", "stream_dies"])
def test_an_unknown_cost_is_none_and_never_zero(name: str) -> None:
    end = ended(name, response_cost=0.0)
    assert (end.cost_usd, end.cost_source) == (None, "unknown")


def test_a_cost_that_litellm_knows_names_the_prices_it_comes_from() -> None:
    end = ended("priced")
    assert end.cost_usd == pytest.approx(61e-6)
    assert end.cost_source == "price_table:litellm-1.110.2"


def test_where_litellm_has_no_price_our_own_table_is_asked() -> None:
    known = began("sync")
    known = replace(known, start=replace(known.start, model="gpt-4o-2024-08-06"))
    told = copy.deepcopy(CAPTURED["sync"]["end"])
    told["standard_logging_object"]["response_cost"] = 0.0
    end = read_end(told, known, success=True, version="1", count=no_count)
    assert end.cost_source == "price_table"
    assert end.cost_usd is not None
    assert end.cost_usd > 0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, True, "1", None])
def test_an_odd_cost_is_unknown(bad: Any) -> None:
    assert ended("priced", response_cost=bad).cost_usd is None


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("500", "provider_server_error"),
        ("401", "provider_authentication"),
        ("timeout", "provider_timeout"),
        ("mock_timeout", "provider_timeout"),
        ("not_json", "provider_server_error"),
        ("refused", "provider_connection"),
        ("stream_dies", "provider_connection"),
        ("mock_rate_limit", "provider_rate_limited"),
    ],
)
def test_errors_are_classified_as_litellm_normalized_them(name: str, code: str) -> None:
    end = ended(name)
    assert not end.success
    assert end.error is not None
    assert end.error.code == code
    assert end.error.message
    assert end.cost_usd is None


@pytest.mark.parametrize(
    ("normalized", "message", "code"),
    [
        ("400_CONTEXT_WINDOW_EXCEEDED", "", "provider_context_window"),
        ("400_INVALID_REQUEST", "", "provider_bad_request"),
        ("403_MODEL_ACCESS_DENIED", "", "provider_permission"),
        ("404_RESOURCE_NOT_FOUND", "", "provider_not_found"),
        ("429_BUDGET_EXCEEDED", "", "provider_quota_exhausted"),
        ("429_RATE_LIMIT_EXCEEDED", "you exceeded your current quota", "provider_quota_exhausted"),
        ("503_PROVIDER_OVERLOADED", "", "provider_server_error"),
        ("500_INTERNAL_STATE_ERROR", "", "litellm_error"),
        ("UNCLASSIFIED", "", "litellm_error"),
        (None, "", "litellm_error"),
    ],
)
def test_every_class_of_error_has_a_code(normalized: str | None, message: str, code: str) -> None:
    told = {"normalized_error": normalized, "error_message": message}
    error = ended("500", error_information=told, error_str=None).error
    assert error is not None
    assert error.code == code
    assert error.message


@pytest.mark.parametrize(
    ("name", "unknown"),
    [("500", False), ("sync", True), ("429_default", True), ("429_num_retries", True)],
)
def test_a_call_that_may_have_been_sent_more_than_once_is_flagged(name: str, unknown: bool) -> None:
    assert (payload.INNER_RETRIES_UNKNOWN in ended(name).flags) is unknown


def test_num_retries_is_flagged_too_where_the_client_has_none() -> None:
    told = {**CAPTURED["500"]["start"], "num_retries": 2}
    assert payload.INNER_RETRIES_UNKNOWN in read_start(told).flags


def test_a_hit_in_litellms_cache_is_flagged_and_costs_nothing_known() -> None:
    end = ended("sync", cache_hit=True)
    assert payload.CACHE_HIT in end.flags
    assert end.cost_usd is None


def test_coordinates_are_read_from_the_metadata_and_from_nowhere_else() -> None:
    where = Coordinates("run", "t/1", 2)
    told = copy.deepcopy(CAPTURED["500"]["start"])
    assert read_start(told).where is None
    told["litellm_params"]["metadata"] = acl_metadata(where)
    assert read_start(told).where == where
    told["litellm_params"]["litellm_metadata"] = told["litellm_params"].pop("metadata")
    assert read_start(told).where == where


@pytest.mark.parametrize(
    "told",
    [
        None,
        "run",
        {},
        {"run_id": "r", "task_id": "t"},
        {"run_id": "r", "task_id": "t", "attempt": "1"},
        {"run_id": "r", "task_id": "t", "attempt": True},
        {"run_id": 1, "task_id": "t", "attempt": 1},
    ],
)
def test_half_told_coordinates_are_none(told: Any) -> None:
    kwargs = {"litellm_params": {"metadata": {"acl": told}}}
    assert read_start(kwargs).where is None


def test_a_key_that_the_answer_repeats_is_masked_and_that_is_told() -> None:
    told = copy.deepcopy(CAPTURED["500"])
    told["start"]["api_key"] = "no-known-shape-at-all"
    error = {"error_message": "the key no-known-shape-at-all is wrong"}
    told["end"]["standard_logging_object"]["error_information"] = error
    known = read_start(told["start"])
    end = read_end(told["end"], known, success=False, version="1", count=no_count)
    assert end.error is not None
    assert end.error.message == "the key ******** is wrong"
    assert payload.KEY_MASKED in end.flags


def test_a_header_that_the_answer_repeats_is_masked() -> None:
    told = copy.deepcopy(CAPTURED["500"])
    told["start"]["additional_args"] = {"headers": {"X-Custom-Auth": "Scheme of-no-known-shape"}}
    error = {"error_message": "of-no-known-shape may not"}
    told["end"]["standard_logging_object"]["error_information"] = error
    known = read_start(told["start"])
    end = read_end(told["end"], known, success=False, version="1", count=no_count)
    assert end.error is not None
    assert end.error.message == "******** may not"


def test_without_litellms_record_the_end_is_recorded_bare() -> None:
    end = read_end({}, began("sync"), success=False, version="1", count=no_count)
    assert payload.NO_DETAILS in end.flags
    assert (end.usage, end.cost_usd, end.started_at) == (None, None, None)
    assert end.error is not None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_one_odd_field_costs_that_field_and_not_the_record(data: st.DataObject) -> None:
    told = copy.deepcopy(CAPTURED["stream_usage"]["end"])
    standard = told["standard_logging_object"]
    name = data.draw(st.sampled_from(sorted(standard)))
    standard[name] = data.draw(ANYTHING)
    end = read_end(told, began("stream_usage"), success=True, version="1", count=no_count)
    assert end.call_id == began("stream_usage").start.call_id
    start = CAPTURED["stream_usage"]["start"]
    read_start({**start, data.draw(st.sampled_from(sorted(start))): data.draw(ANYTHING)})
