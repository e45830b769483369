"""Reading answers: whole ones, streamed ones, and what is neither."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.events import Usage
from runtime.chat import (
    Completion,
    StreamAssembler,
    ToolCall,
    parse_completion,
    parse_usage,
    stream_data,
)
from runtime.provider_error import ModelCallFailed


def answer(message: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return json.dumps({"id": "c1", "choices": [choice], **more}).encode()


def assembled(*chunks: dict[str, Any] | str) -> Completion:
    stream = StreamAssembler()
    for chunk in chunks:
        stream.add(chunk if isinstance(chunk, str) else json.dumps(chunk))
    return stream.completion()


def delta(finish: str | None = None, index: int = 0, **piece: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": index, "delta": piece, "finish_reason": finish}]}


def test_a_whole_answer_is_kept_as_it_came() -> None:
    data = answer({"content": "42"}, usage={"prompt_tokens": 11}, vendor_field={"x": 1})
    completion = parse_completion(data)
    assert completion.response == json.loads(data)
    assert (completion.text, completion.finish_reason) == ("42", "stop")
    assert completion.usage == Usage(input_tokens=11)


def test_an_answer_in_parts_gives_the_text_of_its_text_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    assert parse_completion(answer({"content": parts})).text == "ab"


def test_tool_calls_keep_the_arguments_as_the_model_wrote_them() -> None:
    calls = [
        {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1 }'}},
        {"id": "t2", "function": {"name": "g", "arguments": {"a": 1}}},
        "no call",
    ]
    completion = parse_completion(answer({"content": None, "tool_calls": calls}))
    assert completion.text == ""
    assert completion.tool_calls == (
        ToolCall("t1", "f", '{"a": 1 }'),
        ToolCall("t2", "g", '{"a": 1}'),
    )


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"<html>", b"[]", b"null", b"3", b'{"choices": []}', b'{"choices": null}', b"{}"),
        *(b'{"choices": [{"index": 0}]}', b'{"choices": [1]}', b"\xff", b"[" * 100_000),
    ],
)
def test_what_is_no_answer_is_an_invalid_response(data: bytes) -> None:
    with pytest.raises(ModelCallFailed) as caught:
        parse_completion(data)
    assert caught.value.code == "provider_invalid_response"


def test_an_error_that_comes_with_status_200_is_an_error() -> None:
    with pytest.raises(ModelCallFailed, match="upstream is down") as caught:
        parse_completion(b'{"error": {"message": "upstream is down", "code": 502}}')
    assert caught.value.code == "provider_server_error"


def test_usage_has_all_counts_that_were_given() -> None:
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    assert parse_usage(usage) == Usage(
        input_tokens=11, output_tokens=7, total_tokens=18, cached_tokens=4, reasoning_tokens=2
    )


@pytest.mark.parametrize(
    "usage", [None, {}, [], "many", {"prompt_tokens": None}, {"prompt_tokens": -1}, {"x": 1}]
)
def test_counts_that_nobody_gave_are_no_usage(usage: Any) -> None:
    assert parse_usage(usage) is None


def test_counts_of_a_wrong_type_are_left_out_and_zero_stays_zero() -> None:
    usage = {"prompt_tokens": 0, "completion_tokens": "7", "total_tokens": 1.5, "cost": True}
    assert parse_usage({**usage, "prompt_tokens_details": [1]}) == Usage(input_tokens=0)
    assert parse_usage({"prompt_tokens": 9, "prompt_cache_hit_tokens": 3}) == Usage(
        input_tokens=9, cached_tokens=3
    )


@pytest.mark.parametrize(
    ("cost", "dollars"), [(0.0012, 0.0012), (0, 0.0), (None, None), ("1", None), (-1, None)]
)
def test_a_cost_is_taken_only_if_the_provider_gave_one(cost: Any, dollars: float | None) -> None:
    assert parse_completion(answer({"content": ""}, usage={"cost": cost})).cost_usd == dollars


def test_a_stream_becomes_the_answer_it_would_have_been() -> None:
    completion = assembled(
        {**delta(role="assistant", content=""), "model": "m", "created": 1},
        delta(reasoning_content="think"),
        delta(content="4"),
        delta(content="2"),
        delta("stop"),
        {"id": "c1", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        "[DONE]",
    )
    assert completion.response == {
        "object": "chat.completion",
        "id": "c1",
        "model": "m",
        "created": 1,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "42", "reasoning_content": "think"},
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    assert completion.usage == Usage(input_tokens=1, output_tokens=2)


def test_streamed_tool_calls_are_put_together_by_index() -> None:
    first = {"index": 0, "id": "t1", "function": {"name": "f", "arguments": ""}}
    second = {"index": 1, "id": "t2", "function": {"name": "g", "arguments": "{}"}}
    completion = assembled(
        delta(tool_calls=[first]),
        delta(tool_calls=[second]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a"'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        delta("tool_calls"),
    )
    assert completion.tool_calls == (ToolCall("t1", "f", '{"a": 1}'), ToolCall("t2", "g", "{}"))
    assert completion.finish_reason == "tool_calls"


def test_streamed_tool_calls_without_an_index_begin_with_an_id() -> None:
    completion = assembled(
        delta(tool_calls=[{"id": "t1", "function": {"name": "f", "arguments": "{"}}]),
        delta(tool_calls=[{"function": {"arguments": "}"}}]),
        delta(tool_calls=[{"id": "t2", "function": {"name": "g", "arguments": {"a": 1}}}]),
    )
    assert completion.tool_calls == (ToolCall("t1", "f", "{}"), ToolCall("t2", "g", '{"a": 1}'))


def test_the_halves_of_a_character_in_two_pieces_become_the_character() -> None:
    assert assembled(delta(content="a\ud83d"), delta(content="\ude00b")).text == "a\U0001f600b"
    assert assembled(delta(content="a\ud83d"), delta(content=" b")).text == "a\ud83d b"


def test_several_choices_stay_apart() -> None:
    completion = assembled(delta(index=1, content="b"), delta(index=0, content="a"))
    texts = [choice["message"]["content"] for choice in completion.response["choices"]]
    assert texts == ["a", "b"]


@pytest.mark.parametrize(
    ("chunks", "ended"),
    [
        ([], False),
        ([delta(content="a")], False),
        ([delta(content="a"), delta("stop")], True),
        ([delta(content="a"), "[DONE]"], True),
        ([" [DONE] "], True),
    ],
)
def test_a_stream_is_over_only_when_it_says_so(chunks: list[Any], ended: bool) -> None:
    stream = StreamAssembler()
    for chunk in chunks:
        stream.add(chunk if isinstance(chunk, str) else json.dumps(chunk))
    assert stream.ended is ended


def test_only_what_the_model_says_counts_as_its_first_token() -> None:
    stream = StreamAssembler()
    assert not stream.add(json.dumps(delta(role="assistant", content="")))
    assert stream.add(json.dumps(delta(content="a")))
    assert not stream.add(json.dumps(delta("stop")))


def test_a_stream_with_odd_chunks_does_no_harm() -> None:
    completion = assembled(
        {"choices": "none"},
        {"choices": [1, {"delta": None}, {"delta": {"content": 5, "tool_calls": 7}}]},
        {"choices": [{"index": "x", "delta": {"content": "a"}}], "usage": None},
    )
    assert completion.text == "a"


def test_an_empty_stream_is_no_answer() -> None:
    with pytest.raises(ModelCallFailed, match="without an answer"):
        assembled("[DONE]")


def data_of(*parts: bytes) -> list[str]:
    async def given_parts() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    async def collected() -> list[str]:
        return [data async for data in stream_data(given_parts())]

    return asyncio.run(collected())


def test_events_are_read_with_comments_and_other_fields_left_out() -> None:
    stream = (
        b": hello\n\nevent: x\ndata: one\nid: 1\n\ndata:two\r\n\r\ndata: a\ndata: b\n\ndata: end"
    )
    assert data_of(stream) == ["one", "two", "a\nb", "end"]


def test_line_separators_inside_a_text_do_not_end_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf"
    assert data_of(f"data: {text}\n\n".encode()) == [text]


def test_an_event_that_is_not_utf8_is_an_invalid_response() -> None:
    with pytest.raises(ModelCallFailed, match="UTF-8"):
        data_of(b"data: \xff\n\n")


@given(st.lists(st.text(alphabet="ab\u2028é ", min_size=1), max_size=6), st.data())
@settings(max_examples=100)
def test_it_does_not_matter_where_the_network_cuts(texts: list[str], data: st.DataObject) -> None:
    stream = "".join(f"data: {text}\r\n\r\n" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *cuts, len(stream)]
    parts = [stream[start:end] for start, end in itertools.pairwise(edges)]
    assert data_of(*parts) == texts
