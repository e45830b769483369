"""`agent/trajectory.json`."""

from pathlib import Path
from typing import Any

from ledger import events as ev
from tests import job_runs as say

TOOL = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}


def trajectory(tmp_path: Path, *during: ev.AnyEvent, **fields: Any) -> dict[str, Any]:
    retries = sum(isinstance(event, ev.AttemptRetried) for event in during)
    made = say.attempt("t", 1, *during, retries=retries, **fields)
    path = say.write(tmp_path / "run", *say.opening("t"), *say.whole("t", made))
    return say.document(say.exported(path), "t/agent/trajectory.json")


def told(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(step["source"], step["message"]) for step in found["steps"]]


def test_a_conversation_is_told_once_whatever_each_request_repeats(tmp_path: Path) -> None:
    system, user = say.said("system", "be brief"), say.said("user", "list")
    wants = say.said("assistant", None, tool_calls=[TOOL])
    saw = say.said("tool", "a.txt", tool_call_id="c1")
    during = [
        *say.call("t", 1, 0, [system, user], response=say.reply(None, tool_calls=[TOOL])),
        *say.call("t", 1, 1, [system, user, wants, saw], response=say.reply("one file")),
    ]
    found = trajectory(tmp_path, *during)
    assert told(found) == [
        ("system", "be brief"),
        ("user", "list"),
        ("agent", ""),
        ("agent", "one file"),
    ]
    assert [step["step_id"] for step in found["steps"]] == [1, 2, 3, 4]
    step = found["steps"][2]
    assert step["tool_calls"] == [
        {"tool_call_id": "c1", "function_name": "ls", "arguments": {"path": "."}}
    ]
    assert step["observation"] == {"results": [{"source_call_id": "c1", "content": "a.txt"}]}
    assert step["metrics"] == {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "cached_tokens": 40,
        "cost_usd": 0.25,
    }
    assert (step["llm_call_count"], step["extra"]) == (1, {"call_index": 0})


def test_the_document_says_whose_it_is_without_a_key_of_ours_at_its_top(tmp_path: Path) -> None:
    params = {"tools": [{"type": "function", "function": {"name": "ls"}}]}
    found = trajectory(tmp_path, *say.call("t", 1, 0, None, params))
    assert list(found) == [
        *("schema_version", "session_id", "agent", "steps", "final_metrics", "extra")
    ]
    assert found["schema_version"] == "ATIF-v1.8"
    assert found["session_id"] == "run-1/t/1"
    assert found["agent"] == {
        "name": "agent",
        "version": "0.1.0",
        "model_name": "model-1",
        "tool_definitions": params["tools"],
    }
    assert found["final_metrics"] == {
        "total_prompt_tokens": 100,
        "total_completion_tokens": 10,
        "total_cached_tokens": 40,
        "total_cost_usd": 0.25,
        "extra": {"llm_calls": 1, "llm_calls_failed": 0, "llm_calls_lost": 0},
    }
    assert found["extra"]["acl"]["task_id"] == "t"


def test_a_result_that_no_step_asked_for_names_no_call(tmp_path: Path) -> None:
    first = [say.said("user", "go")]
    again = [*first, say.said("assistant", "answer 0"), say.said("tool", "x", tool_call_id="c9")]
    found = trajectory(tmp_path, *say.call("t", 1, 0, first), *say.call("t", 1, 1, again))
    assert found["steps"][1]["observation"] == {"results": [{"content": "x"}]}


def test_a_conversation_that_begins_anew_is_told_from_where_it_differs(tmp_path: Path) -> None:
    system = say.said("system", "s")
    during = [
        *say.call("t", 1, 0, [system, say.said("user", "one")]),
        *say.call("t", 1, 1, [system, say.said("user", "two")]),
    ]
    assert told(trajectory(tmp_path, *during)) == [
        ("system", "s"),
        ("user", "one"),
        ("agent", "answer 0"),
        ("user", "two"),
        ("agent", "answer 1"),
    ]


def test_an_answer_that_the_agent_changed_is_a_step_of_its_own(tmp_path: Path) -> None:
    user = say.said("user", "go")
    during = [
        *say.call("t", 1, 0, [user]),
        *say.call("t", 1, 1, [user, say.said("assistant", "shortened")]),
    ]
    assert told(trajectory(tmp_path, *during))[1:3] == [
        ("agent", "answer 0"),
        ("agent", "shortened"),
    ]


def test_calls_without_an_answer_are_steps_that_say_so(tmp_path: Path) -> None:
    user = [say.said("user", "go")]
    during = [
        *say.failed_call("t", 1, 0, "provider_timeout", "too slow", messages=user),
        *say.lost_call("t", 1, 1),
    ]
    found = trajectory(tmp_path, *during)
    assert told(found) == [
        ("user", "go"),
        ("system", "The model call failed: ApiResponseStalledError: too slow"),
        ("user", "question 1"),
        ("system", "The model call was lost: its end was never seen"),
    ]
    assert found["final_metrics"]["extra"] == {
        "llm_calls": 2,
        "llm_calls_failed": 1,
        "llm_calls_lost": 1,
    }
    assert found["final_metrics"]["total_cost_usd"] is None


def test_arguments_that_are_no_object_are_kept_as_text(tmp_path: Path) -> None:
    odd = [
        {"id": "a", "function": {"name": "f", "arguments": "{broken"}},
        {"function": {"name": "g", "arguments": {"x": 1}}},
        {"id": "c", "function": {"name": "h", "arguments": ""}},
    ]
    found = trajectory(tmp_path, *say.call("t", 1, 0, response=say.reply("", tool_calls=odd)))
    assert found["steps"][1]["tool_calls"] == [
        {
            "tool_call_id": "a",
            "function_name": "f",
            "arguments": {},
            "extra": {"arguments_text": "{broken"},
        },
        {"tool_call_id": "call-1", "function_name": "g", "arguments": {"x": 1}},
        {"tool_call_id": "c", "function_name": "h", "arguments": {}},
    ]


def test_content_in_parts_is_its_text_with_the_others_named(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "see "}, {"type": "image_url", "image_url": {"url": "x"}}]
    found = trajectory(tmp_path, *say.call("t", 1, 0, [say.said("user", parts)]))
    assert told(found)[0] == ("user", "see [image_url]")


def test_thoughts_are_told_apart(tmp_path: Path) -> None:
    answer = say.reply("yes", reasoning_content="let me see")
    found = trajectory(tmp_path, *say.call("t", 1, 0, response=answer))
    assert found["steps"][1]["reasoning_content"] == "let me see"


def test_without_calls_the_agents_own_trajectory_is_told(tmp_path: Path) -> None:
    messages = [say.said("user", "go"), say.said("assistant", "done", reasoning_content="hm")]
    result = ev.ResultRecorded(
        task="t", attempt=1, status="completed", final_answer="42", trajectory=messages
    )
    first, _, *rest = say.attempt("t")
    events = [*say.opening("t"), *say.whole("t", [first, result, *rest])]
    found = say.document(say.exported(say.write(tmp_path, *events)), "t/agent/trajectory.json")
    assert told(found) == [("user", "go"), ("agent", "done")]


def test_or_else_its_answer(tmp_path: Path) -> None:
    found = trajectory(tmp_path, answer={"value": 42})
    assert told(found) == [("agent", '{\n  "value": 42\n}')]
    assert found["steps"][0]["llm_call_count"] == 0


def test_there_is_always_a_step(tmp_path: Path) -> None:
    found = trajectory(tmp_path, answer=None)
    ((source, message),) = told(found)
    assert source == "system"
    assert "was recorded" in message


def test_a_lone_surrogate_does_not_make_the_file_unreadable(tmp_path: Path) -> None:
    found = trajectory(tmp_path, *say.call("t", 1, 0, response=say.reply("cut \ud83d")))
    assert told(found)[1] == ("agent", "cut \ufffd")


IMPORT = ev.RunImported(format="atif", identity="0" * 64, records_in=1, records_out=1)
UNASKED = {"started_at": None, "finished_at": None, "response": say.reply("done")}


def imported(tmp_path: Path, told_by_agent: Any, *calls: ev.AnyEvent) -> dict[str, Any]:
    """The trajectory of an import that knows the answers of these calls and not their requests."""
    result = ev.ResultRecorded(
        task="t", attempt=1, status="completed", final_answer="42", trajectory=told_by_agent
    )
    first, _, *rest = say.attempt("t")
    bare = [
        call.model_copy(update={"messages": None}) if isinstance(call, ev.CallStarted) else call
        for call in calls
    ]
    created, *opening = say.opening("t")
    made = say.whole("t", [first, *bare, result, *rest])
    path = say.write(tmp_path, created, IMPORT, *opening, *made)
    return say.document(say.exported(path), "t/agent/trajectory.json")


def test_a_step_of_an_import_has_no_time_of_which_nothing_was_told(tmp_path: Path) -> None:
    told_at = {**UNASKED, "finished_at": "2025-01-02T03:04:05Z"}
    calls = [*say.call("t", 1, 0, **UNASKED), *say.call("t", 1, 1, **told_at)]
    steps = imported(tmp_path, None, *calls)["steps"]
    assert [step["timestamp"] for step in steps] == [None, "2025-01-02T03:04:05Z"]


def test_where_no_request_is_known_the_atif_trajectory_of_the_agent_is_told(tmp_path: Path) -> None:
    wants = {"tool_call_id": "c1", "function_name": "ls", "arguments": {"path": "."}}
    saw = {"results": [{"source_call_id": "c1", "content": "a.txt"}, {"content": "b", "x": 1}]}
    metrics = {"prompt_tokens": 9, "completion_tokens": 1, "cost_usd": 0.5, "logprobs": [-1.0]}
    asks = {"step_id": 7, "source": "user", "message": "list", "timestamp": "yesterday"}
    acts = {"step_id": 8, "source": "agent", "message": "so", "model_name": "m", "ours": True}
    acts |= {"tool_calls": [wants], "observation": saw, "metrics": metrics, "llm_call_count": 1}
    found = imported(
        tmp_path,
        {"schema_version": "ATIF-v1.7", "steps": [asks, acts]},
        *say.call("t", 1, 0, **UNASKED),
    )
    assert found["steps"] == [
        {"step_id": 1, "source": "user", "message": "list"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "so",
            "model_name": "m",
            "tool_calls": [wants],
            "metrics": {"prompt_tokens": 9, "completion_tokens": 1, "cost_usd": 0.5},
            "llm_call_count": 1,
            "observation": {
                "results": [{"source_call_id": "c1", "content": "a.txt"}, {"content": "b"}]
            },
        },
    ]


def test_what_no_reader_of_atif_takes_is_left_out_of_a_told_step(tmp_path: Path) -> None:
    odd = {
        "source": ["agent"],
        "message": [{"type": "text", "text": "see "}, {"type": "image"}],
        "reasoning_content": "hm",
        "tool_calls": [{"function_name": "ls"}],
        "observation": {"results": [{"source_call_id": "nobody", "content": None}, 3]},
    }
    silent = {"source": "agent", "message": None, "llm_call_count": 0, "metrics": {}}
    silent |= {"reasoning_content": "hm", "tool_calls": None, "observation": []}
    found = imported(tmp_path, {"schema_version": "ATIF-v1.2", "steps": [odd, "x", silent]})
    assert found["steps"] == [
        {
            "step_id": 1,
            "source": "user",
            "message": "see [image]",
            "observation": {"results": [{"content": ""}]},
        },
        {"step_id": 2, "source": "agent", "message": "", "llm_call_count": 0},
    ]
