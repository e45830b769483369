"""`agent/litellm-trajectory.jsonl`."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.jobs.job import JobOptions, job_files
from ledger import events as ev
from tests import job_runs as say


def lines(tmp_path: Path, *during: ev.AnyEvent, mode: str = "full", **sections: Any) -> list[Any]:
    retries = sum(isinstance(event, ev.AttemptRetried) for event in during)
    events = say.whole("t", say.attempt("t", 1, *during, retries=retries))
    path = say.write(tmp_path / "run", *say.opening("t", **sections), *events)
    options = JobOptions(trajectory="delta" if mode == "delta" else "full")
    return say.lines(say.exported(path, options), "t")


def test_a_line_has_the_documented_keys_in_their_order(tmp_path: Path) -> None:
    params = {"temperature": 0.25, "tools": [{"type": "function"}], "seed": 1, "stream": True}
    times = {
        "started_at": "2025-06-15T15:00:00.250000Z",
        "finished_at": "2025-06-15T15:00:02.000000Z",
        "duration_ms": 1750.4,
        "ttft_ms": 99.6,
        "provider_request_id": "req-1",
    }
    (line,) = lines(tmp_path, *say.call("t", 1, 0, None, params, **times))
    assert list(line) == [
        *("session_id", "success", "request_time", "timestamp", "duration_ms"),
        *("request_body", "response_body", "usage", "acl"),
    ]
    assert line["session_id"] == "run-1/t/1"
    assert line["success"] is True
    # 2025-06-15T15:00:00.250Z
    assert line["request_time"] == 1_749_999_600_250
    assert line["timestamp"] == "2025-06-15T15:00:02.000000Z"
    assert line["duration_ms"] == 1750
    assert line["request_body"] == {
        "messages": [{"role": "user", "content": "question 0"}],
        "tools": [{"type": "function"}],
        "model": "model-1",
        "temperature": 0.25,
        "seed": 1,
        "stream": True,
    }
    assert list(line["request_body"]) == [
        *("messages", "tools", "model", "temperature", "seed", "stream")
    ]
    assert line["response_body"] == say.reply("answer 0")
    assert list(line["response_body"]) == ["id", "object", "created", "model", "choices", "usage"]
    assert line["usage"] == {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_tokens": 110,
        "prompt_tokens_details": {"cached_tokens": 40},
        "completion_tokens_details": {"reasoning_tokens": None},
        "cost": 0.25,
        "source": "reported",
    }
    address = line["acl"].pop("body")
    assert len(bytes.fromhex(address)) == 32
    assert line["acl"] == {
        "call_id": "t/1/0",
        "call_index": 0,
        "provider": "openai",
        "api_base_host": "models.example",
        "provider_request_id": "req-1",
        "stream": True,
        "ttft_ms": 100,
        "cost_source": "provider",
        "price_table_version": None,
        "started_seq": 5,
        "finished_seq": 6,
    }


def test_an_attempt_without_a_call_has_an_empty_file(tmp_path: Path) -> None:
    events = say.whole("t", say.attempt("t"))
    files = say.exported(say.write(tmp_path, *say.opening("t"), *events))
    assert files["t/agent/litellm-trajectory.jsonl"] == b""


def test_each_line_is_one_compact_object(tmp_path: Path) -> None:
    during = say.call("t", 1, 0, [say.said("user", "two\nlines\u2028 \u00fc \ud800")])
    events = say.whole("t", say.attempt("t", 1, *during))
    data = say.exported(say.write(tmp_path, *say.opening("t"), *events))
    text = data["t/agent/litellm-trajectory.jsonl"]
    assert text.count(b"\n") == 1
    assert b'": ' not in text
    assert "\u2028 \u00fc".encode() in text
    assert json.loads(text)["request_body"]["messages"][0]["content"].endswith("\ud800")


def test_calls_stand_by_their_index_whoever_ended_first(tmp_path: Path) -> None:
    starts = [say.call_start("t", 1, index) for index in (1, 0, 2)]
    ends = [say.call_end("t", 1, index) for index in (2, 1, 0)]
    found = lines(tmp_path, *starts, *ends)
    assert [line["acl"]["call_index"] for line in found] == [0, 1, 2]
    assert [line["response_body"]["choices"][0]["message"]["content"] for line in found] == [
        "answer 0",
        "answer 1",
        "answer 2",
    ]


def test_a_failed_call_is_a_line_that_says_why(tmp_path: Path) -> None:
    during = say.failed_call("t", 1, 0, "provider_rate_limited", "HTTP 429: slow down")
    (line,) = lines(tmp_path, *during)
    assert (line["success"], line["response_body"]) == (False, None)
    assert line["failure"] == {
        "error_type": "ApiRateLimitError",
        "status_code": 429,
        "message": "HTTP 429: slow down",
        "normalized": "provider_rate_limited",
        "retryable": True,
    }
    assert list(line)[-2:] == ["failure", "acl"]
    assert line["usage"]["prompt_tokens"] is None
    assert (line["usage"]["cost"], line["usage"]["source"]) == (None, None)


def test_what_came_of_a_stream_that_broke_is_no_response(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="provider_connection", message="the stream ended midway")
    during = say.call("t", 1, 0, success=False, error=error, response=say.reply("half an ans"))
    (line,) = lines(tmp_path, *during)
    assert line["response_body"] is None
    assert line["failure"]["status_code"] is None


def test_a_lost_call_is_a_line_without_an_end(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, *say.lost_call("t", 1, 0))
    assert line["success"] is False
    assert line["failure"]["normalized"] == "call_lost"
    assert line["failure"]["error_type"] == "CallLostError"
    assert (line["timestamp"], line["duration_ms"], line["response_body"]) == (None, None, None)
    assert line["request_body"]["messages"] == [{"role": "user", "content": "question 0"}]
    assert (line["acl"]["lost"], line["acl"]["finished_seq"]) == (True, None)


def test_a_call_that_was_lost_and_ended_late_is_told_by_its_end(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, *say.lost_call("t", 1, 0), say.call_end("t", 1, 0))
    assert line["success"] is True
    assert "lost" not in line["acl"]


def test_calls_of_discarded_tries_are_lines_that_say_which(tmp_path: Path) -> None:
    during = [*say.call("t", 1, 0), say.retried("t", 1, 1), *say.call("t", 1, 1)]
    found = lines(tmp_path, *during)
    assert [line["acl"].get("retry") for line in found] == [None, 1]


def test_only_allowlisted_parameters_are_told(tmp_path: Path) -> None:
    params = {
        "max_tokens": 9,
        "extra_headers": {"x": "1"},
        "metadata": {"who": "me"},
        "user": "somebody",
        "api_base": "http://elsewhere",
    }
    (line,) = lines(tmp_path, *say.call("t", 1, 0, None, params))
    assert list(line["request_body"]) == ["messages", "model", "max_tokens"]


def test_unknown_fields_of_an_answer_are_left_out_and_known_ones_kept(tmp_path: Path) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    answer = say.reply(None, tool_calls=calls, reasoning_content="hm", audio="x", refusal=None)
    answer |= {"system_fingerprint": "fp", "service_tier": "s"}
    (line,) = lines(tmp_path, *say.call("t", 1, 0, response=answer))
    body = line["response_body"]
    assert list(body) == [
        *("id", "object", "created", "model", "system_fingerprint", "choices", "usage")
    ]
    (choice,) = body["choices"]
    assert list(choice) == ["index", "finish_reason", "message"]
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "tool_calls": calls,
        "reasoning_content": "hm",
    }


def test_an_estimate_says_so_and_a_price_names_its_table(tmp_path: Path) -> None:
    usage = ev.Usage(input_tokens=1, output_tokens=2, estimated=True)
    (line,) = lines(tmp_path, *say.call("t", 1, 0, usage=usage, cost_source="price_table"))
    assert (line["usage"]["source"], line["usage"]["total_tokens"]) == ("estimated", 3)
    assert line["acl"]["price_table_version"] == "ab" * 32


def test_without_times_of_the_client_those_of_recording_are_told(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, *say.call("t", 1, 0))
    # seq 5 starts the call and seq 6 ends it, at one second an event
    assert line["request_time"] == 1_750_000_005_000
    assert (line["timestamp"], line["duration_ms"]) == ("2025-06-15T15:06:46.000000Z", 1000)


def whole(found: list[Any]) -> list[list[Any]]:
    """The requests of a delta trajectory, put together again as the layout says."""
    by_index: dict[int, list[Any]] = {}
    for line in found:
        body = line["request_body"]
        prefix = body.get("messages_prefix")
        before = by_index[prefix["call_index"]][: prefix["count"]] if prefix else []
        by_index[line["acl"]["call_index"]] = before + body["messages"]
    return list(by_index.values())


conversations = st.lists(
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=5).map(
        lambda texts: [say.said("user", text) for text in texts]
    ),
    min_size=1,
    max_size=5,
)


@given(conversations)
@settings(max_examples=15, deadline=None)
def test_a_delta_trajectory_gives_the_full_requests_back(
    tmp_path_factory: pytest.TempPathFactory, sent: list[list[Any]]
) -> None:
    during = [event for n, said in enumerate(sent) for event in say.call("t", 1, n, said)]
    path = tmp_path_factory.mktemp("delta")
    found = lines(path, *during, mode="delta")
    assert whole(found) == sent


def test_a_delta_trajectory_holds_each_message_of_a_conversation_once(tmp_path: Path) -> None:
    messages = [say.said("user", f"message {n}") for n in range(4)]
    during = [event for n in range(4) for event in say.call("t", 1, n, messages[: n + 1])]
    found = lines(tmp_path, *during, mode="delta")
    assert [line["request_body"]["messages"] for line in found] == [[one] for one in messages]
    assert found[3]["request_body"]["messages_prefix"] == {"call_index": 2, "count": 3}


def test_three_hundred_calls_of_200_kb_each_are_written_in_bounded_memory(tmp_path: Path) -> None:
    count, size = 300, 200_000
    with say.create(tmp_path / "run") as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        ledger.append(ev.AttemptStarted(task="t", attempt=1))
        for index in range(count):
            prompt = [say.said("user", f"{index} " + "0123456789abcdef" * (size // 16))]
            ledger.append(*say.call("t", 1, index, prompt))
        ledger.append(*say.attempt("t")[1:])
    written = 0
    with say.opened(tmp_path / "run") as (state, view):
        tracemalloc.start()
        try:
            for file in job_files(state, view):
                data = [file.data] if isinstance(file.data, bytes) else file.data
                written += sum(len(piece) for piece in data)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert written > 2 * count * size  # the lines, and the steps of trajectory.json
    assert peak < 16 * 1024 * 1024


def test_a_call_whose_record_is_gone_in_part_is_told_by_the_rest(tmp_path: Path) -> None:
    from exporters.jobs.job import TrialFiles, job_trials
    from ledger.fold import fold
    from tests.golden.erasing import Erased

    during = [*say.call("t", 1, 0), *say.call("t", 1, 1)]
    path = say.write(tmp_path, *say.opening("t"), *say.whole("t", say.attempt("t", 1, *during)))
    with say.opened(path) as (state, view):
        attempt = state.tasks["t"].attempts[1]
        gone = Erased(view, attempt.calls[0], attempt.call_ends[1])
        (trial,) = job_trials(fold(gone.events()))
        (file, *_) = TrialFiles.of(trial, gone).make("full")
        first, second = [json.loads(line) for line in b"".join(file.data).splitlines()]
    assert (first["success"], first["request_body"]) == (True, None)
    assert first["response_body"]["choices"][0]["message"]["content"] == "answer 0"
    assert (second["success"], second["response_body"]) == (False, None)
    assert second["failure"]["normalized"] == "call_end_unknown"
    assert second["request_body"]["messages"] == [{"role": "user", "content": "question 1"}]
