import math
from enum import StrEnum

from ledger import events as ev
from runtime.gate import prune_event, redact_event
from runtime.redact import Redactor
from tests import events_of as say

SECRET = "correct-horse-battery"
REDACTOR = Redactor({"SERVICE_TOKEN": SECRET})


def test_an_event_without_secrets_stays_the_same_object() -> None:
    event = say.result("t", final_answer={"a": [1, "x"]}, metrics={"total_tokens": 5})
    assert redact_event(event, REDACTOR) is event


def test_secrets_go_from_values_errors_and_text_alike() -> None:
    error = ev.ErrorInfo(code="boom", message=f"with {SECRET}", traceback=f"at {SECRET}")
    event = say.result("t", status="run_error", error=error, extra={"note": SECRET})
    clean = redact_event(event, REDACTOR)
    assert isinstance(clean, ev.ResultRecorded)
    assert clean.error == ev.ErrorInfo(
        code="boom", message="with ********", traceback="at ********"
    )
    assert clean.extra == {"note": "********"}
    assert clean.redactions == 3


def test_numbers_of_metrics_and_verdicts_stay() -> None:
    event = say.verdict("t", score=0.5, metrics={"api_key": 1, "bearer": 0.25})
    assert redact_event(event, REDACTOR) is event


def test_what_ties_events_together_stays() -> None:
    task = f"task of {SECRET}"
    event = ev.TasksSelected(
        benchmark="b", tasks=(ev.TaskRef(task_id=task, metadata={"by": SECRET}),)
    )
    clean = redact_event(event, REDACTOR)
    assert isinstance(clean, ev.TasksSelected)
    assert clean.tasks == (ev.TaskRef(task_id=task, metadata={"by": "********"}),)
    assert clean.redactions == 1


def test_a_command_stays_a_tuple() -> None:
    event = say.created().model_copy(update={"command": ("acl", f"--header=Bearer {SECRET}")})
    clean = redact_event(event, REDACTOR)
    assert isinstance(clean, ev.RunCreated)
    assert isinstance(clean.command, tuple)
    assert SECRET not in clean.command[1]


def test_the_path_of_a_file_says_nothing_of_what_it_holds() -> None:
    contents = {".env": "EDITOR=vi\nA_TOKEN=abcdef", "auth": "kept", f"of {SECRET}": "kept"}
    event = ev.ArtifactsCollected(task="t", attempt=1, artifacts=(), contents=contents)
    clean = redact_event(event, REDACTOR)
    assert isinstance(clean, ev.ArtifactsCollected)
    assert clean.contents == {
        ".env": "EDITOR=vi\nA_TOKEN=********",
        "auth": "kept",
        "of ********": "kept",
    }
    assert clean.redactions == 2
    harmless = event.model_copy(update={"contents": {".env": "EDITOR=vi", "auth": "kept"}})
    assert redact_event(harmless, REDACTOR) is harmless


def test_redactions_that_were_counted_before_are_added_to() -> None:
    event = say.result("t", final_answer=SECRET).model_copy(update={"redactions": 2})
    assert redact_event(event, REDACTOR).redactions == 3


def test_what_no_ledger_holds_is_cut_out_of_its_field() -> None:
    event = say.result("t", final_answer={1: "x", "a": math.nan}, telemetry=[b"raw", 1])
    clean, refusals = prune_event(event)
    assert isinstance(clean, ev.ResultRecorded)
    assert list(clean.final_answer) == ["a"]
    assert clean.telemetry == [None, 1]
    assert [refusal.path for refusal in refusals] == ["$.final_answer", "$.telemetry[0]"]


def test_an_event_that_can_be_held_stays_the_same_object() -> None:
    event = say.result("t", final_answer={"a": math.inf})
    clean, refusals = prune_event(event)
    assert clean is event
    assert refusals == []


def test_a_text_of_a_subclass_becomes_plain_text() -> None:
    class Tool(StrEnum):
        GREP = "grep"

    clean, refusals = prune_event(ev.ToolFinished(task="t", attempt=1, name=Tool.GREP))
    assert isinstance(clean, ev.ToolFinished)
    assert type(clean.name) is str
    assert (clean.name, refusals) == ("grep", [])


def test_a_field_that_the_event_must_have_is_not_cut_out() -> None:
    event = ev.MetricsComputed.model_construct(metrics={"a": 1}.items(), counts={})
    clean, refusals = prune_event(event)
    assert clean is event
    assert refusals == []
