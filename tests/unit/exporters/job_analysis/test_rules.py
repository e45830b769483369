"""Axes, primary causes and verdicts: each rule by an attempt that fires it."""

from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from tests.analysis_runs import (
    Job,
    attempt,
    broken,
    call,
    cancelled,
    retried,
    right,
    tool,
    unjudged,
    wrong,
)


def diagnosed(path: Path, made: list[ev.AnyEvent], **metadata: Any) -> dict[str, Any]:
    return Job().add("t", made, **metadata).analyze(path).instance("t")


@pytest.mark.parametrize(
    ("code", "phase", "execution"),
    [
        ("bad_plan", "plan", "setup_error"),
        ("no_agent", "start_harness", "setup_error"),
        ("anything", "open_environment", "environment_error"),
        ("sandbox_failed", "run_harness", "environment_error"),
        ("SandboxBuildFailedError", None, "environment_error"),
        ("provider_rate_limited", "run_harness", "provider_error"),
        ("RateLimitError", None, "provider_error"),
        ("429", None, "provider_error"),
        ("run_timeout", "run_harness", "timeout"),
        ("AgentTimeoutError", None, "timeout"),
        ("ValueError", "run_harness", "run_error"),
        ("VerifierTimeoutError", None, "eval_error"),
    ],
)
def test_a_failed_run_is_told_by_where_it_failed(
    tmp_path: Path, code: str, phase: str | None, execution: str
) -> None:
    one = diagnosed(tmp_path, broken("t", code=code, phase=phase))
    assert one["axes"]["execution"] == execution
    assert one["primary"] == one["primary_failure"] == execution
    assert one["correctness_verdict"] == "V5"


def test_calls_that_failed_are_the_evidence_of_a_provider_error(tmp_path: Path) -> None:
    during = [*call("t", index=0), *call("t", index=1, error="provider_timeout")]
    one = diagnosed(tmp_path, broken("t", code="provider_timeout", during=during))
    assert one["evidence_events"] == [9, 11]
    assert one["evidence_step_ids"] == [1]


def test_a_failed_verifier_is_not_blamed_on_the_agent(tmp_path: Path) -> None:
    one = diagnosed(tmp_path, unjudged("t"))
    assert one["primary"] == one["axes"]["execution"] == "eval_error"
    assert one["axes"]["answer"] == "not_evaluated"
    assert "no_answer" not in one["secondary_failures"]


def test_a_cancelled_attempt_was_cancelled(tmp_path: Path) -> None:
    assert diagnosed(tmp_path, cancelled("t"))["axes"]["execution"] == "cancelled"


@pytest.mark.parametrize(
    ("made", "answer", "verdict", "primary"),
    [
        (wrong("t"), "wrong", "V4", "wrong_answer"),
        (wrong("t", answer="  "), "empty", "V5", "no_answer"),
        (wrong("t", answer=None), "empty", "V5", "no_answer"),
        (wrong("t", score=0.2), "partial", "V3", "partial_credit"),
        (attempt("t", correct=False), "wrong", "V4", "wrong_answer"),
        (right("t"), "correct", "V1", "clean"),
    ],
)
def test_answers_have_their_verdicts(
    tmp_path: Path, made: list[ev.AnyEvent], answer: str, verdict: str, primary: str
) -> None:
    one = diagnosed(tmp_path, made)
    assert (one["axes"]["answer"], one["correctness_verdict"]) == (answer, verdict)
    assert one["primary"] == primary
    assert one["primary_failure"] == (None if primary == "clean" else primary)


def test_the_earliest_cause_is_primary_and_later_ones_are_secondary(tmp_path: Path) -> None:
    loop = [tool("t", "ls", {}) for _ in range(3)]
    cut = call("t", index=0, finish="length")
    one = diagnosed(tmp_path, wrong("t", during=[*cut, *loop], answer=None))
    assert one["primary"] == "context_truncation"
    assert one["secondary_failures"] == ["no_answer", "loop"]


@pytest.mark.parametrize(
    ("outcomes", "model_io"),
    [
        ([None], "ok"),
        (["provider_timeout", None], "degraded"),
        ([None, "provider_timeout"], "failed"),
    ],
)
def test_model_calls_are_told_by_how_the_last_one_ended(
    tmp_path: Path, outcomes: list[str | None], model_io: str
) -> None:
    during = [e for i, error in enumerate(outcomes) for e in call("t", index=i, error=error)]
    assert diagnosed(tmp_path, right("t", during=during))["axes"]["model_io"] == model_io


def test_what_does_not_apply_is_said_not_to(tmp_path: Path) -> None:
    axes = diagnosed(tmp_path, right("t"))["axes"]
    assert [name for name, value in axes.items() if value == "not_applicable"] == [
        "model_io",
        "tool_usage",
        "long_horizon",
        "localization",
        "diagnosis",
        "implementation",
    ]
    assert len(axes) == 8


def again(task: str) -> list[ev.AnyEvent]:
    plan = ev.PlanResolved(task=task, attempt=1, plan={}, plan_hash="ab" * 32)
    return [retried(task), plan]


@pytest.mark.parametrize(
    ("during", "plan", "primary"),
    [
        (again("t"), None, "after_retry"),
        (
            [*call("t", error="provider_timeout"), *call("t", index=1)],
            None,
            "after_provider_errors",
        ),
        ([tool("t", is_error=True)], None, "after_tool_errors"),
        ([e for i in range(9) for e in call("t", index=i)], {"max_turns": 10}, "at_limit"),
        ([e for i in range(8) for e in call("t", index=i)], {"max_turns": 10}, "clean"),
    ],
)
def test_a_resolved_attempt_says_how_it_got_there(
    tmp_path: Path, during: list[ev.AnyEvent], plan: dict[str, Any] | None, primary: str
) -> None:
    one = diagnosed(tmp_path, right("t", during=during, plan=plan))
    assert (one["primary"], one["primary_failure"], one["secondary_failures"]) == (
        primary,
        None,
        [],
    )
    assert one["correctness_verdict"] == ("V2" if primary == "after_retry" else "V1")


def test_evidence_names_events_and_at_most_twenty(tmp_path: Path) -> None:
    loop = [tool("t", "ls", {}) for _ in range(30)]
    one = diagnosed(tmp_path, wrong("t", during=loop))
    assert one["primary"] == "loop"
    assert one["evidence_events"] == list(range(6, 26))
    assert len(one["evidence_step_ids"]) == 20


def test_every_row_names_the_event_that_ended_its_attempt(tmp_path: Path) -> None:
    one = diagnosed(tmp_path, right("t"))
    assert one["acl"]["run_id"] == "r"
    assert one["acl"]["attempt.finished_seq"] == 8
    assert len(one["acl"]["attempt.finished_hash"]) == 64
    assert one["acl"]["plan_hash"] == "cd" * 32
