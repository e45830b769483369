"""LiteLLM itself, in a process of its own: each scenario of `litellm_scenarios` is an attempt.

The table of what LiteLLM reports in which case is section 4.1 of the page on recording model calls.
"""

import fcntl
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from exporters.jobs.job import export_jobs
from ledger import LedgerView, canonical, fold
from ledger import events as ev
from ledger.errors import UsageError
from ledger.view import Recorded
from tests.ledger_checks import check_ledger
from tests.litellm_names import HEADER, HISTORY, KEY, METADATA, SIXTEEN, THREADS

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Call:
    """The events of one call; `end` is None for one that was lost and never ended."""

    start: ev.CallStarted
    end: ev.CallFinished | None
    lost: bool


@dataclass(frozen=True)
class Ran:
    """What the scenarios left: the run's directory, its events, and what the script printed."""

    path: Path
    events: list[Recorded]
    facts: dict[str, Any]

    def calls(self, task: str) -> list[Call]:
        return calls_of(self.events, task)

    def ends(self, task: str) -> list[ev.CallFinished]:
        found = [call.end for call in self.calls(task)]
        assert None not in found, "a call has no end"
        assert not any(call.lost for call in self.calls(task)), "a call was lost"
        return [end for end in found if end is not None]

    def end(self, task: str) -> ev.CallFinished:
        (end,) = self.ends(task)
        return end

    def codes(self, task: str) -> list[str | None]:
        return [None if end.error is None else end.error.code for end in self.ends(task)]


def calls_of(events: list[Recorded], task: str) -> list[Call]:
    starts, ends, lost = {}, {}, set()
    for recorded in events:
        if recorded.task != task:
            continue
        match recorded.event:
            case ev.CallStarted() as start:
                starts[start.call_id] = start
            case ev.CallFinished() as end:
                assert end.call_id not in ends, "one call ended twice"
                ends[end.call_id] = end
            case ev.CallLost(call_id=call_id):
                lost.add(call_id)
            case _:
                pass
    assert ends.keys() <= starts.keys()
    return [Call(start, ends.get(one), one in lost) for one, start in starts.items()]


def events_of(path: Path) -> list[Recorded]:
    """All events of a run, large values included."""
    check_ledger(path)
    found = []
    with LedgerView.open(path) as view:
        for recorded in view.events():
            assert recorded.event is not None
            fields = [(name, value) for name, value in recorded.event if name != "flags"]
            values = {name: view.resolve(value) for name, value in fields}
            event = recorded.event.model_copy(update=values)
            found.append(Recorded(recorded.header, event, recorded.leaf))
    return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The scenarios, run once, also where several workers share the tests."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    told = shared / "litellm.json"
    with (shared / "litellm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            told.write_text(scenarios(shared / "litellm"), "utf-8")
    facts = json.loads(told.read_text("utf-8"))
    path = Path(facts["path"])
    return Ran(path, events_of(path), facts)


def scenarios(results: Path) -> str:
    """Run them; return the line of JSON that they print."""
    results.mkdir()
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "litellm_scenarios.py"), str(results)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()[-1]


def test_no_scenario_ran_into_an_error_of_its_own(ran: Ran) -> None:
    assert ran.facts["errors"] == {}
    assert ran.facts["failures"] == 0
    assert "no_error" not in ran.facts


def test_every_end_has_litellms_details(ran: Ran) -> None:
    ends = [r.event for r in ran.events if isinstance(r.event, ev.CallFinished)]
    assert len(ends) > 150
    for end in ends:
        assert "no_details" not in end.flags
        assert end.duration_ms is not None
        assert (end.started_at or "") <= (end.finished_at or "")


# -- answers ------------------------------------------------------------------------------------


def test_an_answer_is_recorded_with_what_was_asked(ran: Ran) -> None:
    (call,) = ran.calls("sync")
    assert call.start.messages == [{"role": "user", "content": "hello there you"}]
    assert call.start.params == {"temperature": 0, "seed": 7}
    assert (call.start.provider, call.start.model) == ("openai", "stub-model")
    end = ran.end("sync")
    assert end.success
    assert end.response["choices"][0]["message"]["content"] == "echo: hello there you"
    assert end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens) == (3, 4)
    assert end.provider_request_id == "req-1"
    assert end.flags == ()


def test_the_coordinates_of_a_call_are_not_sent_to_the_provider(ran: Ran) -> None:
    assert set(ran.facts["sync_body"]) == {"model", "messages", "temperature", "seed"}


def test_the_start_is_on_disk_when_the_request_is_sent(ran: Ran) -> None:
    assert ran.facts["held_when_sent"] == ["call.started"]


def test_a_stream_is_one_call_with_the_answer_put_together(ran: Ran) -> None:
    end = ran.end("stream_usage")
    assert end.response["choices"][0]["message"]["content"] == "echo: hello there you"
    assert end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens) == (3, 4)
    assert not end.usage.estimated
    assert end.ttft_ms is not None
    assert end.duration_ms is not None
    assert end.ttft_ms <= end.duration_ms


@pytest.mark.parametrize("task", ["stream_without_usage", "stream_usage_asked_in_vain"])
def test_tokens_that_litellm_counted_itself_are_marked(ran: Ran, task: str) -> None:
    for end in ran.ends(task):
        assert end.usage is not None
        assert end.usage.estimated
        assert end.cost_usd is None


@pytest.mark.parametrize(
    "task", ["stream_abandoned", "stream_abandoned_by_a_coroutine", "cancelled"]
)
def test_a_call_that_never_ends_is_lost(ran: Ran, task: str) -> None:
    (call,) = ran.calls(task)
    assert call.lost
    assert call.end is None


@pytest.mark.parametrize("task", ["stream_dies", "stream_dies_in_a_coroutine"])
def test_a_stream_that_dies_midway_is_a_failure_without_a_cost(ran: Ran, task: str) -> None:
    end = ran.end(task)
    assert not end.success
    assert ran.codes(task) == ["provider_connection"]
    assert end.cost_usd is None
    assert end.usage is None or end.usage.estimated


def test_tools_are_in_the_request_and_their_calls_in_the_answer(ran: Ran) -> None:
    (call,) = ran.calls("tools")
    assert call.start.params["tools"][0]["function"]["name"] == "add"
    message = ran.end("tools").response["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["arguments"] == '{"a": 40, "b": 2}'


def test_mocks_are_calls_like_others(ran: Ran) -> None:
    assert ran.codes("mocks") == [
        *(None, None, None),
        *("provider_rate_limited", "provider_context_window"),
    ]
    assert [end.success for end in ran.ends("mocks")] == [True, True, True, False, False]


def test_an_end_without_a_hook_before_it_gets_its_start_with_it(ran: Ran) -> None:
    assert ran.end("mock_timeout").flags == ("start_unseen",)
    assert ran.codes("mock_timeout") == ["provider_timeout"]


# -- failures -----------------------------------------------------------------------------------


def test_failures_have_the_codes_of_our_own_client(ran: Ran) -> None:
    assert ran.codes("failures") == [
        *("provider_server_error", "provider_authentication", "provider_permission"),
        *("provider_not_found", "provider_rate_limited", "provider_quota_exhausted"),
        *("provider_context_window", "provider_bad_request", "provider_server_error"),
    ]
    assert ran.codes("failures_in_a_coroutine") == [
        *("provider_server_error", "provider_authentication", "provider_server_error"),
    ]
    assert ran.codes("timeout") == ["provider_timeout"]
    assert ran.codes("refused_port") == ["provider_connection"]


def test_a_failure_has_neither_answer_nor_usage_nor_cost(ran: Ran) -> None:
    for end in ran.ends("failures"):
        assert (end.success, end.response, end.usage, end.cost_usd) == (False, None, None, None)
        assert end.duration_ms is not None


def test_requests_that_are_repeated_inside_are_one_call_that_says_so(ran: Ran) -> None:
    assert ran.facts["requests_of_one_call"] == 2
    for task in ("retries_of_the_client", "retries_of_litellm"):
        assert ran.end(task).flags == ("inner_retries_unknown",)


def test_each_try_and_fallback_of_a_router_is_a_call_of_its_own(ran: Ran) -> None:
    told = [(call.start.model, call.end and call.end.success) for call in ran.calls("router")]
    assert told == [("one", False), ("one", True), ("one", False), ("two", True)]


# -- costs --------------------------------------------------------------------------------------


def test_an_unknown_price_is_no_cost_and_a_known_one_names_its_source(ran: Ran) -> None:
    assert (ran.end("sync").cost_usd, ran.end("sync").cost_source) == (None, "unknown")
    own, registered, known, awaited, streamed, free = ran.ends("priced")
    for end in (own, awaited, streamed):
        assert end.cost_usd == pytest.approx(3 * 1e-6 + 4 * 2e-6)
    assert registered.cost_usd == pytest.approx(3 * 3e-6 + 4 * 4e-6)
    assert known.cost_usd == pytest.approx(3 * 2.5e-6 + 4 * 10e-6)
    for end in (own, registered, known, awaited, streamed):
        assert str(end.cost_source).startswith("price_table:litellm-")
    assert free.cost_usd is None


# -- loops and threads --------------------------------------------------------------------------


def test_no_end_is_lost_when_its_loop_closes(ran: Ran) -> None:
    calls = ran.calls("one_loop_after_another")
    assert len(ran.ends("one_loop_after_another")) == 20
    assert sorted(call.start.params["seed"] for call in calls) == sorted([*range(5)] * 4)


@pytest.mark.parametrize(("tasks", "each"), [(SIXTEEN, 3), (THREADS, 3)])
def test_calls_of_attempts_at_once_are_not_mixed_up(ran: Ran, tasks: list[str], each: int) -> None:
    for task in tasks:
        assert len(ran.ends(task)) == each
        for call in ran.calls(task):
            assert call.start.messages == [{"role": "user", "content": task}]
            assert call.end is not None
            said = call.end.response["choices"][0]["message"]["content"]
            assert said == f"echo: {task}"
        assert sorted(call.start.call_index for call in ran.calls(task)) == [*range(each)]


def test_a_plain_with_in_a_coroutine_loses_nothing_either(ran: Ran) -> None:
    (call,) = ran.calls("a_plain_with_in_a_coroutine")
    assert call.end is not None


# -- attribution --------------------------------------------------------------------------------


def strays(ran: Ran) -> list[dict[str, Any]]:
    notes = [r.event for r in ran.events if isinstance(r.event, ev.ExtensionRecorded)]
    return [note.payload for note in notes if note.name == "acl.unattributed-call"]


def test_a_call_without_coordinates_is_told_and_given_to_no_attempt(ran: Ran) -> None:
    assert len(ran.ends("stray")) == 1
    reasons = sorted(note["reason"] for note in strays(ran))
    # Two here and one in the child process name no attempt; one names an attempt that is over.
    assert reasons == [*3 * ["it names no attempt"], "its attempt is not open here"]
    assert ran.facts["unattributed"] == 3
    assert sum("is given to no attempt" in line for line in ran.facts["logged"]) == 3


def test_an_end_after_the_attempt_is_kept_there_and_a_start_is_not(ran: Ran) -> None:
    (call,) = ran.calls("late")
    assert call.lost
    assert call.end is not None
    assert call.end.success
    assert len(ran.ends("after_late")) == 1


def test_an_agent_in_a_process_of_its_own_is_recorded_over_the_socket(ran: Ran) -> None:
    assert ran.facts["child_status"] == -6, ran.facts["child_stderr"]
    *ended, killed = ran.calls("child")
    assert [call.end is not None and call.end.success for call in ended] == 4 * [True]
    assert killed.lost
    assert killed.end is None
    assert sorted(call.start.call_index for call in ran.calls("child")) == [0, 1, 2, 3, 4]


def test_a_harness_gives_its_agent_the_calls_of_its_context(ran: Ran) -> None:
    events = events_of(Path(ran.facts["harness"]))
    for task in ("a", "b"):
        calls = calls_of(events, task)
        assert len(calls) == 2
        for call in calls:
            assert call.end is not None
            assert not call.lost
            assert call.start.messages == [{"role": "user", "content": task}]
        finished = [r.event for r in events if r.task == task and r.type == "attempt.finished"]
        assert {event.attempt for event in finished} == {1, 2}


def test_the_example_records_the_calls_of_its_agent(ran: Ran) -> None:
    events = events_of(Path(ran.facts["example"]))
    finished = [r.event for r in events if isinstance(r.event, ev.AttemptFinished)]
    assert [(event.status, event.correct) for event in finished] == 2 * [("completed", True)]
    for event in finished:
        calls = calls_of(events, event.task)
        assert [call.end is not None and call.end.success for call in calls] == [True, True]
        assert [len(call.start.messages) for call in calls] == [1, 3]


# -- what is recorded ---------------------------------------------------------------------------


def test_no_secret_is_in_any_byte_of_the_run(ran: Ran) -> None:
    assert ran.facts["sent_secrets"] == [True, True]
    assert not ran.facts["metadata_was_sent"]
    plain = repr([r.event for r in ran.events])
    for secret in (KEY, HEADER, METADATA, "X-Custom-Auth"):
        assert secret not in plain
    assert "api_key" not in repr([r.event for r in ran.events if r.type.startswith("call.")])
    for file in ran.path.parent.rglob("*"):
        if file.is_file():
            held = file.read_bytes()
            for secret in (KEY, HEADER, METADATA):
                assert secret.encode() not in held, file
    said = [end.response for end in ran.ends("secrets") if end.success]
    assert len(said) == 3
    for response in said:
        content = response["choices"][0]["message"]["content"]
        assert content == "you sent ******** and ********"
    assert all("key_masked" in end.flags for end in ran.ends("secrets"))


def test_a_conversation_that_grows_costs_its_new_messages_per_call(ran: Ran) -> None:
    calls = ran.calls("history")
    assert len(calls) == HISTORY
    assert [len(call.start.messages) for call in calls] == [2 * n for n in range(1, HISTORY + 1)]
    for call in calls[1:]:
        assert call.start.messages[:2] == calls[0].start.messages
        assert call.start.messages[2]["role"] == "assistant"
    # What stands uncompressed in the pieces that one start refers to and none before did.
    news, seen = [], set[bytes]()
    with LedgerView.open(ran.path) as view:
        for recorded in view.events():
            if recorded.task != "history" or not isinstance(recorded.event, ev.CallStarted):
                continue
            fresh = set(canonical.reachable(recorded.event.messages, view.blob)) - seen
            seen |= fresh
            news.append(sum(len(view.blob(digest)) for digest in fresh))
    assert max(news[2:]) < 1.5 * min(news[2:])
    assert max(news[2:]) < 25_000


def test_values_that_json_cannot_hold_are_named_and_fail_nothing(ran: Ran) -> None:
    (call,) = ran.calls("odd_values")
    assert call.start.messages[0]["content"] == "half a pair: \ud835"
    assert call.start.messages[0]["blob"] == {"$left_out": "builtins.bytes"}
    assert ran.end("odd_values").flags == ("values_left_out",)


# -- the module ---------------------------------------------------------------------------------


def test_without_litellm_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    monkeypatch.delitem(sys.modules, "runtime.litellm_bridge", raising=False)
    with pytest.raises(UsageError) as refusal:
        __import__("runtime.litellm_bridge")
    assert "pip install 'agentcompass-ledger[litellm]'" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_nothing_but_the_bridge_imports_litellm() -> None:
    for package in ("acl", "exporters", "ledger", "runtime"):
        for file in (ROOT / package).rglob("*.py"):
            lines = file.read_text("utf-8").splitlines()
            imports = [line for line in lines if line.lstrip().startswith(("import ", "from "))]
            named = [line for line in imports if line.split()[1].split(".")[0] == "litellm"]
            bridged = [line for line in imports if "litellm_bridge" in line]
            assert named + bridged == [], file


# -- exported -----------------------------------------------------------------------------------

SAMPLE = ROOT.parent / "shared" / "samples" / "litellm" / "litellm-trajectory.jsonl"
# Number of a line of the sample, and where the scenarios had the same case: task, number of call.
SAME_CASE = {
    1: ("priced", 0),
    2: ("stream_usage", 0),
    3: ("stream_without_usage", 0),
    5: ("failures", 0),
    6: ("failures", 1),
    7: ("timeout", 0),
}


@pytest.fixture(scope="module")
def exported(ran: Ran) -> dict[str, list[dict[str, Any]]]:
    """The lines of `litellm-trajectory.jsonl` by task."""
    lines = {}
    with LedgerView.open(ran.path) as view:
        for file in export_jobs(fold(view.events()), view):
            if file.path.endswith("litellm-trajectory.jsonl"):
                data = file.data if isinstance(file.data, bytes) else b"".join(file.data)
                name = file.path.split("/")[2].split("__")[0]
                lines[name] = [json.loads(line) for line in data.splitlines()]
    return lines


def test_the_exported_trajectory_tells_each_call_once(
    ran: Ran, exported: dict[str, list[dict[str, Any]]]
) -> None:
    for task in ("failures", "stream_dies", "one_loop_after_another", "child", "history"):
        ids = [line["acl"]["call_id"] for line in exported[task]]
        assert sorted(ids) == sorted(call.start.call_id for call in ran.calls(task))


@pytest.mark.skipif(not SAMPLE.exists(), reason="the sample is not beside this checkout")
@pytest.mark.parametrize("number", SAME_CASE)
def test_the_exported_trajectory_says_what_the_sample_says_of_the_same_case(
    exported: dict[str, list[dict[str, Any]]], number: int
) -> None:
    told = [json.loads(line) for line in SAMPLE.read_text("utf-8").splitlines()]
    (sample,) = [line for line in told if line["seq"] == number]
    task, at = SAME_CASE[number]
    line = exported[task][at]
    assert line["success"] is sample["success"]
    assert line["acl"]["stream"] is sample["stream"]
    assert (line["acl"]["ttft_ms"] is None) is (sample["ttft_ms"] is None)
    assert (line["usage"]["cost"] is None) is (sample["cost_usd"] is None or number in (2, 3))
    assert (line["response_body"] is None) is (sample["response"] is None)
    assert ("failure" in line) is (sample["error"] is not None)
    if sample["success"]:
        assert line["usage"]["source"] == sample["usage"]["source"]
