"""Lines of a log of model calls, in the words of several loggers."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.importers.jobs.calls import read_calls

ASKED = [{"role": "user", "content": "?"}]
ANSWER = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "!"}}]}


def line(**fields):
    return {
        "success": True,
        "request_body": {"messages": ASKED, "model": "m", "temperature": 0.5},
        "response_body": ANSWER,
        **fields,
    }


def read(*lines):
    return read_calls(json.dumps(one).encode() + b"\n" for one in lines)


def read_text(data):
    return read_calls(io.BytesIO(data))


def one(value):
    found = read(value)
    assert not found.faults
    (call,) = found.calls
    return call


def test_request_and_answer():
    call = one(line())
    assert (call.messages, call.model, call.params) == (ASKED, "m", {"temperature": 0.5})
    assert (call.response, call.error, call.ended) == (ANSWER, None, True)


@pytest.mark.parametrize(
    ("fields", "started", "finished"),
    [
        # R2's logger stamps when it writes.
        ({"request_time": 1767323045000}, None, "2026-01-02T03:04:05Z"),
        ({"timestamp": "2026-01-02T05:04:05+02:00"}, None, "2026-01-02T03:04:05Z"),
        ({"timestamp": "2026-01-02T03:04:05"}, None, None),
        (
            {"started_at": 1767323044.5, "finished_at": 1767323045},
            "2026-01-02T03:04:04.500000Z",
            "2026-01-02T03:04:05Z",
        ),
        # Ours is when it began.
        (
            {
                "request_time": 1767323044500,
                "timestamp": "2026-01-02T03:04:05Z",
                "acl": {"call_index": 0},
            },
            "2026-01-02T03:04:04.500000Z",
            "2026-01-02T03:04:05Z",
        ),
        ({"request_time": float("inf"), "timestamp": True}, None, None),
    ],
)
def test_times_are_told_in_utc(fields, started, finished):
    call = one(line(**fields))
    assert (call.started_at, call.finished_at) == (started, finished)


def test_tokens_and_cost():
    told = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
        "cost": 0.25,
        "source": "estimated",
    }
    call = one(line(usage=told))
    usage = call.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (11, 7, 18)
    assert (usage.cached_tokens, usage.reasoning_tokens, usage.estimated) == (4, 2, True)
    assert call.cost_usd == 0.25


def test_tokens_may_stand_in_the_answer_alone():
    call = one(line(response_body={**ANSWER, "usage": {"prompt_tokens": 3}}))
    assert (call.usage.input_tokens, call.usage.output_tokens, call.cost_usd) == (3, None, None)


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": None}, {"prompt_tokens": -1}, {"prompt_tokens": True}, "12"],
)
def test_unknown_tokens_are_none_and_never_zero(usage):
    assert one(line(usage=usage)).usage is None


def test_a_failed_call():
    failure = {"error_type": "RateLimitError", "message": "slow down", "status_code": 429}
    call = one(line(success=False, response_body=None, failure=failure))
    assert (call.error.code, call.error.message) == ("provider_rate_limited", "slow down")
    assert call.response is None


def test_a_failure_that_nothing_explains():
    assert one(line(success=False)).error.code == "unknown"


def test_a_lost_call_has_no_end():
    call = one(line(success=False, failure={"normalized": "call_lost", "message": "lost"}))
    assert not call.ended


def test_flat_lines_are_calls_too():
    flat = {
        "type": "llm_call_finished",
        "call_id": "c",
        "provider": "openai",
        "model": "m",
        "messages": ASKED,
        "params": {"stream": True},
        "response": ANSWER,
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "cached_tokens": 4},
        "cost_usd": 0.5,
        "duration_ms": 234,
        "ttft_ms": 12,
        "success": True,
        "error": None,
    }
    call = one(flat)
    assert (call.call_id, call.provider, call.model) == ("c", "openai", "m")
    assert (call.messages, call.params, call.response) == (ASKED, {"stream": True}, ANSWER)
    assert (call.usage.cached_tokens, call.cost_usd) == (4, 0.5)
    assert (call.duration_ms, call.ttft_ms) == (234, 12)


def test_what_is_new_in_a_conversation_is_put_behind_what_it_goes_on_from():
    more = {"role": "user", "content": "more"}
    second = line(acl={"call_index": 1})
    second["request_body"] = {
        "messages": [more],
        "model": "m",
        "messages_prefix": {"call_index": 0, "count": 1},
    }
    found = read(line(acl={"call_index": 0}), second)
    assert found.calls[1].messages == [*ASKED, more]
    assert "messages_prefix" not in found.calls[1].params


@pytest.mark.parametrize(
    "prefix", [{"call_index": 7, "count": 1}, {"call_index": 0, "count": 9}, {}, None, 1, []]
)
def test_a_conversation_whose_beginning_is_not_there_is_no_call(prefix):
    second = line(acl={"call_index": 1})
    second["request_body"] = {"messages": [], "messages_prefix": prefix}
    found = read(line(acl={"call_index": 0}), second)
    if prefix is None:
        assert not found.faults
    else:
        assert found.faults == [("line 2: it goes on from a call that is not there", True)]


def test_ids_stay_unless_two_calls_have_the_same():
    found = read(line(acl={"call_id": "a"}), line(acl={"call_id": "a"}), line())
    assert [call.call_id for call in found.calls] == ["a", None, None]


def test_a_last_line_that_was_cut_short_is_torn_and_any_other_is_damage():
    whole = json.dumps(line())
    found = read_text(f"{whole}\n{whole[:40]}".encode())
    assert len(found.calls) == 1
    ((reason, damage),) = found.faults
    assert reason.startswith("line 2: the last line is torn: cut off")
    assert damage is False
    found = read_text(f"{whole[:40]}\n{whole}\n".encode())
    assert (len(found.calls), found.faults[0][1]) == (1, True)


@pytest.mark.parametrize("last", ["[]", "null", "1", '"text"', "{}", '{"a": 1}'])
def test_a_last_line_of_another_shape_is_damage(last):
    found = read_text(f"{json.dumps(line())}\n{last}".encode())
    assert len(found.calls) == 1
    assert [damage for _, damage in found.faults] == [True]


def test_blank_lines_are_none():
    assert read_text(b"\n\n  \n").calls == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
_KEYS = st.sampled_from(
    [
        *("success", "request_body", "response_body", "usage", "failure", "acl", "messages"),
        *("request_time", "timestamp", "started_at", "finished_at", "duration_ms", "error"),
        *("call_id", "cost_usd", "params", "model", "provider", "type"),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_KEYS, _JSON))
def test_no_line_stops_the_reading(value):
    found = read_text(json.dumps(value).encode() + b"\n" + json.dumps(line()).encode())
    assert len(found.calls) + len(found.faults) >= 1
    assert found.calls[-1].messages == ASKED
