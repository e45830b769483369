import json
import math

import pytest

from runtime.importers.inspect.values import is_truth, read_value
from tests.importer_runs import events, state_of, stored_bytes
from tests.inspect_logs import DATA, header, reasons, sample, take_in, write_json


def one(tmp_path, told, head=None):
    path = write_json(tmp_path / "a.json", head or header(), [told])
    report = take_in(path, tmp_path / "results")
    return report, {event.type: event for event in events(report)}


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "correct", "score"),
    [
        ("C", True, 1.0),
        ("I", False, 0.0),
        ("P", False, 0.5),
        ("N", False, 0.0),
        ("yes", True, 1.0),
        ("False", False, 0.0),
        (True, True, 1.0),
        (False, False, 0.0),
        (1, True, 1),
        (0.0, False, 0.0),
        (0.25, None, 0.25),
        (-3, None, -3),
        ("2.5", None, 2.5),
        (math.nan, None, None),
        (math.inf, None, None),
        (None, None, None),
        ("banana", None, None),
        ([1, 0], None, None),
        ({"a": 1}, None, None),
    ],
)
def test_a_value_is_the_verdict_that_inspect_reads_it_as(value, correct, score):
    reading = read_value(value, truth=is_truth(value))
    assert (reading.correct, reading.score) == (correct, score)
    assert type(reading.score) is type(score)


def test_a_value_that_is_not_finite_is_kept_as_it_is(tmp_path):
    _, told = one(tmp_path, sample(value=math.nan))
    assert math.isnan(told["evaluation.finished"].extra["scores"]["match"]["value"])
    _, told = one(tmp_path / "b", sample(value={"a": -0.0, "b": math.inf}))
    kept = told["evaluation.finished"].extra["scores"]["match"]["value"]
    assert (repr(kept["a"]), kept["b"]) == ("-0.0", math.inf)


def test_ones_and_zeros_are_verdicts_only_where_there_are_no_other_numbers(tmp_path):
    path = write_json(tmp_path / "a.json", header(), [sample(1, value=1), sample(2, value=0.5)])
    state = state_of(take_in(path, tmp_path / "results"))
    assert [state.tasks[n].attempts[1].correct for n in ("1", "2")] == [None, None]
    assert [state.tasks[n].attempts[1].score for n in ("1", "2")] == [1, 0.5]


def test_the_first_scorer_of_the_results_is_the_verdict_and_others_are_metrics(tmp_path):
    scores = {
        "style": {"value": 0.25},
        "match": {"value": "C", "explanation": "as it should be"},
        "parts": {"value": {"a": "I", "b": True, "c": math.nan}},
        "score": {"value": [1, 2]},
    }
    _, told = one(tmp_path, sample(scores=scores), header(1.0))
    verdict = told["evaluation.finished"]
    assert (verdict.correct, verdict.reason) == (True, "as it should be")
    assert verdict.metrics == {
        "style": 0.25,
        "parts/a": 0.0,
        "parts/b": True,
        "score/0": 1,
        "score/1": 2,
    }
    assert verdict.evaluator.id == "import:inspect:match"
    assert verdict.evaluator.version == "inspect_ai 0.3.100"


def test_a_headline_names_the_scorer_that_is_the_verdict(tmp_path):
    head = header(1.0)
    entry = {"name": "b", "scorer": "parts", "metrics": {"mean": {"name": "mean", "value": 0.5}}}
    head["results"]["scores"].append(entry)
    head["results"]["headline"] = {"scorer": "parts", "score": "b", "metric": "mean"}
    scores = {"match": {"value": "C"}, "parts": {"value": {"a": 1, "b": 0.5}}}
    report, told = one(tmp_path, sample(scores=scores), head)
    assert told["evaluation.finished"].score == 0.5
    assert told["evaluation.finished"].metrics == {"match": 1.0, "parts/a": 1}
    computed = events(report, "metrics.computed")[0]
    assert computed.metrics["score.avg@1"] == 0.5
    assert computed.metrics["match.avg@1"] == 1.0


def test_a_log_without_results_takes_the_first_scorer_that_it_set_out_with(tmp_path):
    head = header(None, "started")
    head["eval"]["scorers"] = [{"name": "pack/parts", "metrics": {"b": [{"name": "mean"}]}}]
    scores = {"style": {"value": 0.25}, "parts": {"value": {"a": "C", "b": "I"}}}
    _, told = one(tmp_path, sample(scores=scores), head)
    verdict = told["evaluation.finished"]
    assert (verdict.correct, verdict.score) == (False, 0.0)
    assert verdict.metrics == {"style": 0.25, "parts/a": 1.0}


def test_an_event_of_an_odd_kind_is_kept(tmp_path):
    _, told = one(tmp_path, sample(events=[{"event": ["model"]}, 5, {"n": 1}]))
    assert told["result.recorded"].extra["events"] == [{"event": ["model"]}, {"n": 1}]


def test_a_sample_without_scores_has_no_verdict(tmp_path):
    report, told = one(tmp_path, sample(scores=None))
    assert "evaluation.finished" not in told
    assert told["attempt.finished"].status == "completed"
    assert state_of(report).counts().evaluated == 0


# -- ends -------------------------------------------------------------------------------------


def test_an_error_is_the_error_of_the_attempt_and_its_score_counts_all_the_same(tmp_path):
    error = {"message": "RuntimeError('x')", "traceback": "Traceback", "traceback_ansi": "\x1b[1m"}
    _, told = one(tmp_path, sample(error=error))
    ended = told["attempt.finished"]
    assert (ended.status, ended.correct) == ("run_error", True)
    assert (ended.error.code, ended.error.message) == ("sample_error", "RuntimeError('x')")
    assert ended.error.traceback == "Traceback"


def test_a_scorer_that_failed_is_no_fault_of_the_agent(tmp_path):
    report = take_in(DATA / "scorerfail.eval", tmp_path / "results")
    attempt = state_of(report).tasks["2"].attempts[1]
    assert (attempt.status, attempt.correct, attempt.score) == ("eval_error", None, None)
    ended = [e for e in events(report, "evaluation.finished") if e.task == "2"]
    assert ended[0].evaluation_error.code == "scorer_error"
    assert ended[0].evaluation_error.message == "RuntimeError('judge broke')"


def test_a_failed_log_is_a_failed_run_and_a_sample_it_took_with_it_is_cancelled(tmp_path):
    report = take_in(DATA / "failed.eval", tmp_path / "results")
    state = state_of(report)
    assert (state.finished.status, state.finished.exit_code) == ("failed", 1)
    assert state.finished.error.message == "RuntimeError('boom 3')"
    statuses = {task: found.attempts[1].status for task, found in state.tasks.items()}
    assert statuses == {"1": "completed", "2": "completed", "3": "run_error", "4": "cancelled"}


@pytest.mark.parametrize(
    ("status", "ended", "code"),
    [("success", "completed", 0), ("cancelled", "cancelled", 130), ("error", "failed", 1)],
)
def test_the_status_of_the_log_is_that_of_the_run(tmp_path, status, ended, code):
    report, _ = one(tmp_path, sample(), header(1.0, status))
    finished = state_of(report).finished
    assert (finished.status, finished.exit_code) == (ended, code)


def test_a_log_that_was_only_started_is_an_interrupted_run(tmp_path):
    head = header(None, "started")
    head["eval"]["dataset"]["sample_ids"] = [1, 2]
    report, told = one(tmp_path, sample(), head)
    state = state_of(report)
    assert state.finished is None
    assert list(state.tasks) == ["1", "2"]
    assert "metrics.computed" not in told


def test_a_task_that_an_ended_log_has_no_sample_of_is_given_up(tmp_path):
    head = header(1.0, "cancelled")
    head["eval"]["dataset"]["sample_ids"] = [1, 2]
    report, told = one(tmp_path, sample(), head)
    assert told["task.cancelled"].task == "2"
    assert events(report, "metrics.computed")


LIMITS = ("context", "time", "working", "message", "token", "turn", "cost", "operator", "custom")


def test_a_limit_is_an_issue_of_an_attempt_that_was_scored_all_the_same(tmp_path):
    samples = [
        sample(kind, limit={"type": kind, "limit": 10, "reason": "enough"}) for kind in LIMITS
    ]
    report = take_in(write_json(tmp_path / "a.json", header(), samples), tmp_path / "results")
    for ended in events(report, "attempt.finished"):
        assert (ended.status, ended.correct, ended.error) == ("completed", True, None)
        (issue,) = ended.issues
        assert issue.code == f"limit_{ended.task}"
        assert issue.message == f"the sample was stopped by its {ended.task} limit (10): enough"


def test_an_invalidated_sample_says_so(tmp_path):
    invalid = {"author": "reviewer", "reason": "leaked", "timestamp": "2025-01-01T00:00:00Z"}
    _, told = one(tmp_path, sample(invalidation=invalid))
    (issue,) = told["attempt.finished"].issues
    assert (issue.code, issue.message) == ("invalidated", "invalidated by reviewer: leaked")


def test_tries_that_errored_are_retries_of_the_attempt_with_their_calls(tmp_path):
    report = take_in(DATA / "retries.eval", tmp_path / "results")
    retried = events(report, "attempt.retried")
    assert [(one.task, one.retry, one.max_retries) for one in retried] == [("1", 1, 3), ("1", 2, 3)]
    assert [one.error.message for one in retried] == [
        "ValueError('flaky 1')",
        "ValueError('flaky 2')",
    ]
    calls = [one for one in events(report, "call.finished") if one.task == "1"]
    assert len(calls) == 3
    assert state_of(report).tasks["1"].attempts[1].status == "completed"


# -- what is referred to ----------------------------------------------------------------------


def test_attachments_are_put_back_where_they_are_referred_to(tmp_path):
    told = sample(
        messages=[{"role": "user", "content": "attachment://aa"}],
        events=[{"event": "info", "data": {"old": "tc://bb"}}],
        attachments={"aa": "long " * 30, "bb": "other"},
    )
    report, found = one(tmp_path, told)
    result = found["result.recorded"]
    assert result.trajectory == {"messages": [{"role": "user", "content": "long " * 30}]}
    assert result.extra["events"] == [{"event": "info", "data": {"old": "other"}}]
    assert reasons(report) == []


def test_a_text_that_the_sample_does_not_hold_is_told_and_left(tmp_path):
    told = sample(messages=[{"role": "user", "content": "attachment://gone"}])
    report, found = one(tmp_path, told)
    assert found["result.recorded"].trajectory["messages"][0]["content"] == "attachment://gone"
    assert reasons(report) == [
        "a.json, sample 1: it refers to 1 texts that it does not hold: attachment://gone"
    ]


POOL = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]


@pytest.mark.parametrize(
    "pools", [{"message_pool": POOL}, {"events_data": {"messages": POOL, "calls": []}}]
)
def test_messages_of_a_pool_are_put_back_into_the_calls(tmp_path, pools):
    event = {
        "event": "model",
        "model": "maker/model",
        "input": [],
        "input_refs": [[0, 1], [1, 2]],
        "output": {"choices": [], "usage": {"input_tokens": 3, "total_cost": 0.5}},
    }
    report, found = one(tmp_path, sample(events=[event], **pools))
    assert found["call.started"].messages == POOL
    assert found["call.finished"].usage.input_tokens == 3
    assert (found["call.finished"].cost_usd, found["call.finished"].cost_source) == (0.5, "source")
    assert reasons(report) == []


def test_a_range_beyond_the_pool_is_told(tmp_path):
    event = {"event": "model", "model": "m", "input_refs": [[0, 5]], "output": {}}
    report, _ = one(tmp_path, sample(events=[event], message_pool=POOL))
    assert any("message [0, 5]" in reason for reason in reasons(report))


def test_images_are_kept_with_the_messages(tmp_path):
    report = take_in(DATA / "images.json", tmp_path / "results")
    (result,) = events(report, "result.recorded")
    (call,) = events(report, "call.started")
    image = result.trajectory["messages"][0]["content"][1]["image"]
    assert image.startswith("data:image/png;base64,iVBOR")
    assert call.messages[0]["content"][1]["image"] == image


# -- calls and tools ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tools.eval", "tools-chunked.eval"])
def test_model_events_are_calls_and_tool_events_the_tools_between_them(tmp_path, name):
    report = take_in(DATA / name, tmp_path / "results")
    started, finished = events(report, "call.started"), events(report, "call.finished")
    assert [one.call_index for one in started] == [0, 1, 2, 3, 4]
    assert [len(one.messages) for one in started] == [1, 3, 5, 7, 9]
    assert {one.model for one in started} == {"mockllm/model"}
    assert {one.provider for one in started} == {"mockllm"}
    assert all(one.success and one.duration_ms is not None for one in finished)
    assert all(one.started_at.endswith("Z") for one in finished)
    tools = events(report, "tool.finished")
    assert [one.name for one in tools] == ["addition"] * 4
    assert [one.is_error for one in tools] == [False, False, False, True]
    assert tools[0].arguments == {"x": 1, "y": 0}
    assert tools[0].output.startswith("result 1 pad")
    assert tools[3].output["error"]["type"] == "parsing"


def test_usage_is_told_per_call_and_in_all(tmp_path):
    report = take_in(DATA / "toklimit.eval", tmp_path / "results")
    (usage,) = {one.usage for one in events(report, "call.finished")}
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (10, 5, 15)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (3, 1)
    result = events(report, "result.recorded")[0]
    assert result.metrics["input_tokens_cache_write"] == 2
    assert result.telemetry["model_usage"]["mockllm/model"]["input_tokens_cache_read"] == 3


def test_a_pending_call_is_lost_and_a_cached_one_says_so(tmp_path):
    base = {"event": "model", "model": "m", "input": [], "output": {"choices": []}}
    told = [{**base, "cache": "read"}, {**base, "error": "overloaded"}, {**base, "pending": True}]
    report, found = one(tmp_path, sample(events=told))
    first, second = events(report, "call.finished")
    assert first.flags == ("cache_hit",) or list(first.flags) == ["cache_hit"]
    assert (second.success, second.error.message) == (False, "overloaded")
    assert found["call.lost"].call_id == "call-2"


def test_other_events_are_kept_and_what_repeats_is_left_to_the_original(tmp_path):
    kinds = ["sandbox", "state", "store", "sample_init", "info", "subtask", "logger", "approval"]
    inner = {"event": "model", "model": "m", "input": [], "output": {}}
    told = [{"event": kind, "events": [inner]} for kind in kinds]
    report, found = one(tmp_path, sample(events=told, timelines=[{"name": "t"}]))
    kept = [event["event"] for event in found["result.recorded"].extra["events"]]
    assert kept == ["sandbox", "info", "subtask", "logger", "approval"]
    assert found["result.recorded"].extra["timelines"] == [{"name": "t"}]
    assert len(events(report, "call.started")) == 1


def test_fields_of_a_sample_have_their_places(tmp_path):
    told = sample(
        choices=["a", "b"],
        target=["A", "B"],
        metadata={"topic": "x"},
        uuid="u",
        total_time=2.5,
        novelty={"n": 1},
        output={"choices": [{"message": {"content": "said"}}]},
        scores={"match": {"value": "C"}},
    )
    _, found = one(tmp_path, told)
    result = found["result.recorded"]
    assert result.ground_truth == ["A", "B"]
    assert result.final_answer == "said"
    assert result.meta["choices"] == ["a", "b"]
    assert result.metrics == {"total_time": 2.5}
    assert result.extra["novelty"] == {"n": 1}
    assert found["tasks.selected"].tasks[0].metadata == {"topic": "x"}


def test_logs_from_before_scores_had_names_are_read(tmp_path):
    head = header()
    head["version"] = 1
    head["results"] = {
        "scorer": {"name": "match", "params": {}},
        "metrics": {"accuracy": {"name": "accuracy", "value": 1}},
    }
    told = sample(transcript={"events": [], "content": {"aa": "text"}}, score={"value": "C"})
    for name in ("scores", "events", "attachments"):
        del told[name]
    told["messages"] = [{"role": "user", "content": "tc://aa"}]
    report, found = one(tmp_path, told, head)
    assert found["evaluation.finished"].correct is True
    assert found["result.recorded"].trajectory["messages"][0]["content"] == "text"
    assert found["metrics.computed"].metrics["score.avg@1"] == 1
    assert reasons(report) == []


def test_half_surrogates_and_nul_are_kept(tmp_path):
    text = "a\ud835b\x00c"
    told = sample(text, messages=[{"role": "user", "content": text}])
    report, found = one(tmp_path, told)
    assert found["task.started"].task == text
    assert found["result.recorded"].trajectory["messages"][0]["content"] == text
    assert reasons(report) == []


def test_a_secret_in_a_sample_does_not_get_in(tmp_path):
    secret = "sk-ant-api03-" + "Zz9Yy8Xx7" * 5
    report, _ = one(tmp_path, sample(store={"key": secret}))
    assert not any(secret.encode() in data for data in stored_bytes(report.path))


def test_times_are_utc_and_those_without_a_zone_are_named(tmp_path):
    head = header(1.0)
    head["stats"] = {"started_at": "2025-05-12T20:28:13-04:00", "completed_at": "2025-05-12"}
    report, found = one(tmp_path, sample(started_at=1700000000), head)
    assert found["run.imported"].started_at == "2025-05-13T00:28:13Z"
    assert found["run.imported"].finished_at is None
    assert reasons(report) == [
        "a.json: 2 of its times have no zone, or are none: they are in the original only"
    ]


def test_the_request_holds_the_log_s_own_words(tmp_path):
    head = header(1.0)
    head["eval"] |= {"model_generate_config": {"temperature": 0.5}, "solver": "agent"}
    _, found = one(tmp_path, sample(), head)
    request = found["run.created"].request
    assert request["benchmark"]["id"] == "puzzle"
    assert (request["model"]["id"], request["model"]["params"]) == (
        "maker/model",
        {"temperature": 0.5},
    )
    assert request["harness"]["id"] == "agent"
    head = header(1.0, plan={"steps": [{"solver": "system_message"}, {"solver": "generate"}]})
    _, found = one(tmp_path / "b", sample(), head)
    assert found["run.created"].request["harness"]["id"] == "system_message + generate"
    assert request["source"]["header"]["eval"]["packages"] == {"inspect_ai": "0.3.100"}
    assert json.dumps(request["source"]["log"])
