"""A trial's `result.json`."""

import hashlib
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from exporters.jobs.failures import exception_type
from ledger import events as ev
from ledger.view import LedgerView
from tests import job_runs as say

HARBOR = json.loads(
    (Path(__file__).resolve().parents[3] / "data" / "harbor_binary_k5.json").read_text()
)


def trial(tmp_path: Path, *events: ev.AnyEvent, **sections: Any) -> dict[str, Any]:
    task = next(event.task for event in events if event.task is not None)
    path = say.write(tmp_path / "run", *say.opening(task, **sections), *events)
    files = say.exported(path)
    (name,) = [p for p in files if p.count("/") == 1 and p.endswith("/result.json")]
    return say.document(files, name)


def test_a_trial_has_the_documented_fields_in_their_order(tmp_path: Path) -> None:
    during = say.call("t/1", 1, 0)
    found = trial(tmp_path, *say.whole("t/1", say.attempt("t/1", 1, *during, score=0.25)))
    assert list(found) == [
        *("id", "task_name", "trial_name", "trial_uri", "task_id", "source", "task_checksum"),
        *("config", "agent_info", "agent_result", "verifier_result", "exception_info"),
        *("started_at", "finished_at"),
        *("environment_setup", "agent_setup", "agent_execution", "verifier", "acl"),
    ]
    assert found["id"] == str(uuid.uuid5(uuid.NAMESPACE_URL, "acl:run-1/t/1/1"))
    assert [found[name] for name in ("task_name", "trial_name", "trial_uri", "source")] == [
        "t/1",
        "t_1",
        "acl:run/run-1/t_1/1",
        "bench@3",
    ]
    assert found["task_id"] == {"path": "bench/t_1"}
    assert found["config"] == {
        "task": {"path": "bench/t_1"},
        "trial_name": "t_1",
        "timeout_multiplier": 1.0,
        "agent": {"name": "agent", "model_name": "model-1"},
    }
    assert found["agent_info"] == {
        "name": "agent",
        "version": "0.1.0",
        "model_info": {"name": "model-1", "provider": "openai"},
    }
    assert found["agent_result"] == {
        "n_input_tokens": 100,
        "n_cache_tokens": 40,
        "n_output_tokens": 10,
        "cost_usd": 0.25,
        "metadata": {"n_llm_calls": 1, "n_turns": 1, "n_tool_calls": 0},
    }
    assert found["verifier_result"] == {"rewards": {"reward": 0.25}}
    assert found["exception_info"] is None
    assert (found["started_at"], found["finished_at"]) == (
        "2025-06-15T15:06:44.000000Z",
        "2025-06-15T15:06:49.000000Z",
    )
    assert list(found["acl"]) == [
        *("schema", "run_id", "ledger_id", "size", "root", "status", "attempt", "correct"),
        *("score", "retries", "reused_from", "events", "result", "resolved"),
    ]
    assert found["acl"]["events"] == [4, 9]


def test_the_address_of_the_result_is_the_attempts_identity(tmp_path: Path) -> None:
    path = say.write(tmp_path, *say.opening("t"), *say.whole("t", say.attempt("t")))
    found = say.document(say.exported(path), "t/result.json")["acl"]["result"]
    with LedgerView.open(path) as view:
        (address,) = [r.address.hex() for r in view.events() if r.type == "result.recorded"]
    assert found == address


def test_the_checksum_is_of_the_task_as_the_plan_tells_it(tmp_path: Path) -> None:
    reference = ev.TaskRef(task_id="t", category="math", checksum="ee" * 32, metadata={"n": 1})
    events = [*say.opening(reference), *say.whole("t", say.attempt("t"))]
    found = say.document(say.exported(say.write(tmp_path, *events)), "t/result.json")
    text = f'{{"category":"math","checksum":"{"ee" * 32}","metadata":{{"n":1}},"task_id":"t"}}'
    assert found["task_checksum"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def types(ours: Any, theirs: Any, at: str = "$") -> None:
    """Each of our values has the JSON type that the real file has there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours.keys() & theirs.keys():
            types(ours[name], theirs[name], f"{at}.{name}")
    elif ours is not None and theirs is not None:
        assert isinstance(ours, type(theirs)), at


@pytest.mark.parametrize("case", ["graded", "failed"])
def test_every_field_of_ours_is_in_a_real_trial_of_harbor_and_of_its_type(
    tmp_path: Path, case: str
) -> None:
    made = say.attempt("t") if case == "graded" else say.broken("t")
    found = trial(tmp_path, *say.whole("t", made))
    theirs = HARBOR[case]
    assert found.keys() - theirs.keys() == {"acl"}
    for name in ("config", "agent_info", "exception_info"):
        if found[name] is not None:
            assert found[name].keys() <= theirs[name].keys(), name
    types(found, theirs)


PHASES: list[ev.Phase] = [
    "open_environment",
    "prepare_task",
    "start_harness",
    "run_harness",
    "collect_result",
]


def test_phases_give_harbors_parts_of_a_trial(tmp_path: Path) -> None:
    before = [say.plan("t", 1), *(say.phase("t", 1, name) for name in PHASES)]
    start, *rest = say.attempt("t", 1, *before)
    result, verdict, end = rest[-3:]
    events = [start, *before, result, say.phase("t", 1, "evaluate"), verdict, end]
    found = trial(tmp_path, ev.TaskStarted(task="t"), *events)

    def at(second: int) -> str:
        return f"2025-06-15T15:06:{40 + second}.000000Z"

    # seq 4 starts the attempt, 6 to 10 enter the phases, 12 the evaluation, 14 ends it
    assert found["environment_setup"] == {"started_at": at(6), "finished_at": at(8)}
    assert found["agent_setup"] == {"started_at": at(8), "finished_at": at(9)}
    assert found["agent_execution"] == {"started_at": at(9), "finished_at": at(10)}
    assert found["verifier"] == {"started_at": at(12), "finished_at": at(14)}


def test_a_part_that_never_ran_is_null_and_the_last_one_ends_with_the_attempt(
    tmp_path: Path,
) -> None:
    during = [say.plan("t", 1), say.phase("t", 1, "open_environment")]
    found = trial(tmp_path, ev.TaskStarted(task="t"), *say.broken("t", 1, *during))
    assert found["environment_setup"] == {
        "started_at": "2025-06-15T15:06:46.000000Z",
        "finished_at": found["finished_at"],
    }
    assert [found[name] for name in ("agent_setup", "agent_execution", "verifier")] == [None] * 3


def test_of_several_tries_the_parts_are_those_of_the_last(tmp_path: Path) -> None:
    first = [say.plan("t", 1), *(say.phase("t", 1, name) for name in PHASES)]
    second = [say.retried("t", 1, 1), say.plan("t", 1), say.phase("t", 1, "open_environment")]
    made = say.attempt("t", 1, *first, *second, retries=1)
    found = trial(tmp_path, ev.TaskStarted(task="t"), *made)
    assert found["environment_setup"]["started_at"] == "2025-06-15T15:06:53.000000Z"
    assert found["agent_execution"] is None
    assert found["acl"]["retries"] == 1


@pytest.mark.parametrize(
    ("code", "phase", "expected"),
    [
        ("run_timeout", "run_harness", "AgentTimeoutError"),
        ("evaluation_timeout", "evaluate", "VerifierTimeoutError"),
        ("TimeoutError", "open_environment", "EnvironmentStartTimeoutError"),
        ("TimeoutError", "start_harness", "AgentSetupTimeoutError"),
        ("TimeoutError", None, "TimeoutError"),
        ("provider_rate_limited", "run_harness", "ApiRateLimitError"),
        ("provider_authentication", "run_harness", "AgentAuthenticationError"),
        ("provider_context_window", "run_harness", "ContextWindowExceededError"),
        ("environment_start_failed", "open_environment", "SandboxBuildFailedError"),
        ("no_verdict", "evaluate", "RewardFileEmptyError"),
        ("ZeroDivisionError", "run_harness", "ZeroDivisionError"),
        ("harness_error", "run_harness", "HarnessError"),
        ("value_refused", "collect_result", "ValueRefusedError"),
        ("", None, "Error"),
    ],
)
def test_errors_have_the_names_that_harbors_policies_know(
    code: str, phase: str | None, expected: str
) -> None:
    assert exception_type(ev.ErrorInfo(code=code, message="m", phase=phase)) == expected


def test_an_error_is_told_with_its_words_its_trace_and_when(tmp_path: Path) -> None:
    found = trial(tmp_path, *say.whole("t", say.broken("t")))
    assert found["exception_info"] == {
        "exception_type": "AgentTimeoutError",
        "exception_message": "not finished after 5 s",
        "exception_traceback": "Traceback: no\n",
        "occurred_at": found["finished_at"],
    }
    assert found["verifier_result"] is None
    assert found["acl"]["status"] == "run_error"


def test_a_timeout_whose_answer_was_judged_has_both_an_error_and_a_reward(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="run_timeout", message="late", phase="run_harness")
    found = trial(tmp_path, *say.whole("t", say.attempt("t", error=error)))
    assert found["exception_info"]["exception_type"] == "AgentTimeoutError"
    assert found["verifier_result"] == {"rewards": {"reward": 1.0}}
    assert found["acl"]["resolved"] is True


def test_a_cancelled_attempt_is_harbors_cancelled_error(tmp_path: Path) -> None:
    events = [ev.TaskStarted(task="t"), *say.cancelled("t")]
    found = trial(tmp_path, *events, ev.TaskCancelled(task="t", reason="SIGINT"))
    assert found["exception_info"]["exception_type"] == "CancelledError"
    assert found["acl"]["status"] == "cancelled"


def test_a_skipped_attempt_is_no_error(tmp_path: Path) -> None:
    end = ev.AttemptFinished(task="t", attempt=1, status="skipped")
    events = [ev.AttemptStarted(task="t", attempt=1), say.broken("t")[1], end]
    found = trial(tmp_path, *say.whole("t", events))
    assert (found["exception_info"], found["acl"]["status"]) == (None, "skipped")


def test_what_calls_of_discarded_tries_took_is_part_of_the_trial(tmp_path: Path) -> None:
    during = [*say.call("t", 1, 0), say.retried("t", 1, 1), *say.call("t", 1, 1)]
    found = trial(tmp_path, *say.whole("t", say.attempt("t", 1, *during, retries=1)))
    assert found["agent_result"]["n_input_tokens"] == 200
    assert found["agent_result"]["cost_usd"] == 0.5
    assert found["agent_result"]["metadata"]["n_llm_calls"] == 2


def test_a_cost_that_one_call_did_not_tell_is_unknown_and_not_less(tmp_path: Path) -> None:
    during = [*say.call("t", 1, 0), *say.call("t", 1, 1, cost_usd=None, usage=None)]
    found = trial(tmp_path, *say.whole("t", say.attempt("t", 1, *during)))["agent_result"]
    assert (found["cost_usd"], found["n_input_tokens"]) == (None, 100)


def test_turns_are_answers_that_say_something_and_tools_those_that_ran(tmp_path: Path) -> None:
    wanted = [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]
    during = [
        *say.call("t", 1, 0, response=say.reply(None, tool_calls=wanted)),
        ev.ToolFinished(task="t", attempt=1, name="ls", call_id="c1"),
        ev.ToolFinished(task="t", attempt=1, name="ls"),
        *say.call("t", 1, 1, response=say.reply("")),
        *say.failed_call("t", 1, 2, "provider_timeout", "late"),
        *say.call("t", 1, 3),
    ]
    found = trial(tmp_path, *say.whole("t", say.attempt("t", 1, *during)))["agent_result"]
    assert found["metadata"] == {"n_llm_calls": 4, "n_turns": 2, "n_tool_calls": 2}


def test_tools_that_only_the_model_tells_of_are_counted_by_what_it_wanted(tmp_path: Path) -> None:
    wanted = [{"id": f"c{n}", "function": {"name": "ls", "arguments": "{}"}} for n in (1, 2)]
    during = say.call("t", 1, 0, response=say.reply(None, tool_calls=wanted))
    found = trial(tmp_path, *say.whole("t", say.attempt("t", 1, *during)))["agent_result"]
    assert found["metadata"]["n_tool_calls"] == 2


def test_an_id_that_is_no_unicode_is_told_readably_and_as_it_is(tmp_path: Path) -> None:
    found = trial(tmp_path, *say.whole("half \ud83d", say.attempt("half \ud83d")))
    assert found["task_name"] == "half \ufffd"
    assert json.loads(found["acl"]["task_id_escaped"]) == "half \ud83d"


def test_times_of_an_import_are_not_those_of_the_trials(tmp_path: Path) -> None:
    imported = ev.RunImported(
        format="x",
        identity="ab" * 32,
        records_in=1,
        records_out=1,
        started_at="2024-01-01T00:00:00Z",
        finished_at="2024-01-01T01:00:00Z",
    )
    created, *rest = say.opening("t")
    path = say.write(tmp_path, created, imported, *rest, *say.whole("t", say.attempt("t")))
    files = say.exported(path)
    found = say.document(files, "t/result.json")
    assert (found["started_at"], found["finished_at"]) == (None, None)
    assert found["agent_info"]["version"] == "unknown"
    job = say.document(files)
    assert (job["started_at"], job["finished_at"]) == (
        "2024-01-01T00:00:00Z",
        "2024-01-01T01:00:00Z",
    )
