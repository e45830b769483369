"""What `acl` tells of an attempt."""

import json
from pathlib import Path

from exporters.attempt_trailer import attempt_trailer
from exporters.reading import Reading
from exporters.record import build_detail_record
from ledger import events as ev
from ledger.fold import fold
from ledger.view import LedgerView
from tests.golden.regenerate import TREES
from tests.golden.runs import attempt, call, create, finished, opening, ref, reused


def trailer(path: Path, task_id: str = "t", number: int = 1) -> dict:
    with LedgerView.open(path) as view:
        state = fold(view.events())
        return attempt_trailer(state.tasks[task_id].attempts[number], Reading(state, view))


def write(path: Path, *events: ev.AnyEvent) -> None:
    with create(path, "trailer") as ledger:
        ledger.append(*opening("r", ref("t")), ev.TaskStarted(task="t"), *events)


def test_an_attempt_without_anything_special_tells_its_addresses_only(tmp_path: Path) -> None:
    write(tmp_path, *attempt("t"))
    told = trailer(tmp_path)
    assert list(told) == ["result", "evaluation"]
    with LedgerView.open(tmp_path) as view:
        addresses = {r.type: r.address.hex() for r in view.events()}
    assert told["result"] == addresses["result.recorded"]
    assert told["evaluation"] == addresses["evaluation.finished"]


def test_calls_of_all_tries_are_told_without_their_texts(tmp_path: Path) -> None:
    retry = ev.AttemptRetried(
        task="t",
        attempt=1,
        retry=1,
        max_retries=1,
        retry_delay_seconds=0.0,
        stage="run",
        scope="attempt",
        error=ev.ErrorInfo(code="429", message=""),
    )
    start = ev.CallStarted(
        task="t", attempt=1, call_id="lost", call_index=1, messages=[{"content": "secret plan"}]
    )
    write(
        tmp_path,
        ev.AttemptStarted(task="t", attempt=1),
        *call("t", 1, 0, 0.5),
        retry,
        start,
        ev.CallLost(task="t", attempt=1, call_id="lost"),
        ev.CallStarted(task="t", attempt=1, call_id="open", call_index=2),
    )
    first, lost, still_open = trailer(tmp_path)["calls"]
    assert (first["call_id"], first["cost_usd"], first["usage"]["input_tokens"]) == (
        "t/1/0",
        0.5,
        100,
    )
    assert "retry" not in first
    assert lost == {"call_id": "lost", "call_index": 1, "retry": 1, "lost": True}
    assert still_open == {"call_id": "open", "call_index": 2, "retry": 1}


def test_a_call_that_was_given_up_and_came_back_is_told_as_it_ended(tmp_path: Path) -> None:
    begin, end = call("t", 1, 0, 0.5)
    lost = ev.CallLost(task="t", attempt=1, call_id=begin.call_id)
    write(tmp_path, ev.AttemptStarted(task="t", attempt=1), begin, lost, end)
    (told,) = trailer(tmp_path)["calls"]
    assert (told["success"], told.get("lost")) == (True, None)


def test_one_id_used_for_two_calls_gives_two(tmp_path: Path) -> None:
    one, other = call("t", 1, 0, 0.5), call("t", 1, 0, 0.25)
    write(tmp_path, ev.AttemptStarted(task="t", attempt=1), *one, *other)
    assert [told["cost_usd"] for told in trailer(tmp_path)["calls"]] == [0.5, 0.25]


def test_a_fault_of_the_house_and_replaced_secrets_are_told(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="env", message="", fatal=True)
    write(
        tmp_path,
        ev.AttemptStarted(task="t", attempt=1),
        ev.ResultRecorded(task="t", attempt=1, status="run_error", error=error, redactions=3),
        finished("t", status="run_error", error=error),
    )
    told = trailer(tmp_path)
    assert (told["fatal"], told["redactions"]) == (True, 3)


def test_what_the_evaluation_measured_is_told_apart_from_the_harness(tmp_path: Path) -> None:
    events = attempt("t", metrics={"tokens": 5})
    events[3] = events[3].model_copy(update={"metrics": {"lines": 3, "speed": 1.5}})
    write(tmp_path, *events)
    assert trailer(tmp_path)["measured"] == ["lines", "speed"]


def test_an_attempt_of_a_claimed_origin_names_it(tmp_path: Path) -> None:
    claim = ev.Claim(run_id="old", ledger_id="ab" * 16, size=7, root="cd" * 32)
    write(tmp_path, ev.AttemptStarted(task="t", attempt=1, claim=claim))
    assert trailer(tmp_path)["reused_from"] == claim.model_dump()


def test_a_claimed_task_is_told_and_counted_like_a_copied_one(tmp_path: Path) -> None:
    claim = ev.Claim(run_id="old", ledger_id="ab" * 16, size=7, root="cd" * 32)
    with create(tmp_path, "claimed") as ledger:
        ledger.append(*opening("r", ref("t")), ev.TaskStarted(task="t", claim=claim))
        ledger.append(*attempt("t"), ev.TaskFinished(task="t", reason="all_attempts", error=False))
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        told = build_detail_record(state.tasks["t"], state, view)
    assert told["acl"]["reused_from"] == claim.model_dump()
    assert state.counts().reused == 1
    golden = json.loads((TREES / "reused" / "details" / "math-3_math.json").read_text())
    assert list(golden["acl"]["reused_from"]) == list(told["acl"]["reused_from"])


def test_the_calls_of_a_copied_task_are_told_with_it(tmp_path: Path) -> None:
    reused(tmp_path)
    assert len(trailer(tmp_path, "math-3")["calls"]) == 3
