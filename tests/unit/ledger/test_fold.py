from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import LedgerView, RunState, fold
from ledger import events as ev
from ledger.canonical import Binary
from ledger.state import Spend
from ledger.store import Copy, Ledger
from ledger.view import Recorded
from tests import events_of as say

Store = Callable[[Iterable[ev.AnyEvent]], list[Recorded]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Store events in a new ledger, one append each, and read them back."""

    def stored(events: Iterable[ev.AnyEvent]) -> list[Recorded]:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.sqlite"
        with Ledger.create(path) as ledger:
            ledger.append(*events)
        with LedgerView.open(path) as view:
            return list(view.events())

    return stored


def test_the_size_and_root_of_the_state_are_the_ledgers(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "l.sqlite") as ledger:
        ledger.append(*say.opening("t"), *say.whole_task("t", say.attempt("t")), *say.ending())
        expected = ledger.root()
        with ledger.view() as view:
            state = fold(view.events())
    assert (state.size, state.root) == (11, expected)


def test_a_run_without_an_end_is_interrupted(store: Store) -> None:
    assert fold(store(say.opening("t"))).status == "interrupted"
    ended = [*say.opening("t"), ev.RunFinished(status="failed", exit_code=1)]
    assert fold(store(ended)).status == "failed"


def test_verdicts_come_from_the_evaluation(store: Store) -> None:
    events = [
        *say.opening("t", k=3),
        ev.TaskStarted(task="t"),
        *say.attempt("t", 1, correct=False, score=0.25),
        *say.attempt("t", 2, correct=True, score=0.5),
        *say.attempt("t", 3, correct=True, score=1.0),
        ev.TaskFinished(task="t", reason="all_attempts", error=False),
    ]
    task = fold(store(events)).tasks["t"]
    assert (task.correct, task.solved_at, task.score) == (True, 2, 0.5)
    assert task.bin == "evaluated"
    assert task.has_detail


def test_the_score_of_an_unsolved_task_is_its_best(store: Store) -> None:
    events = [
        *say.opening("t", k=2),
        ev.TaskStarted(task="t"),
        *say.attempt("t", 1, correct=False, score=0.75),
        *say.attempt("t", 2, correct=False, score=0.25),
    ]
    task = fold(store(events)).tasks["t"]
    assert (task.correct, task.solved_at, task.score) == (False, None, 0.75)


def test_a_task_of_scalars_is_neither_correct_nor_incorrect(store: Store) -> None:
    events = [*say.opening("t"), *say.whole_task("t", say.attempt("t", correct=None, score=3.5))]
    counts = fold(store(events)).counts()
    assert (counts.evaluated, counts.correct, counts.incorrect) == (1, 0, 0)


def test_every_task_is_in_exactly_one_bin(store: Store) -> None:
    skipped = [
        ev.AttemptStarted(task="skip", attempt=1),
        say.result("skip", status="skipped"),
        ev.AttemptFinished(task="skip", attempt=1, status="skipped"),
    ]
    events = [
        *say.opening("good", "bad", "skip", "never", "mixed", k=2),
        *say.whole_task("good", say.attempt("good")),
        *say.whole_task("bad", say.failed_attempt("bad"), error=True),
        *say.whole_task("skip", skipped),
        *say.whole_task("mixed", say.failed_attempt("mixed"), say.attempt("mixed", 2), error=True),
    ]
    counts = fold(store(events)).counts()
    assert (counts.total, counts.evaluated, counts.error, counts.skipped, counts.missing) == (
        5,
        2,
        1,
        1,
        1,
    )
    assert counts.files_error == 2
    assert counts.attempts == 5


def test_counts_by_category_keep_tasks_without_one(store: Store) -> None:
    refs = (ev.TaskRef(task_id="a", category="x"), ev.TaskRef(task_id="b"))
    events = [say.created(), ev.RunStarted(), ev.TasksSelected(benchmark="b", tasks=refs)]
    state = fold(store(events))
    assert state.categories() == ["x", None]
    assert state.counts("x").total == state.counts(None).total == 1


def retry(scope: ev.RetryScope = "attempt", number: int = 1) -> ev.AttemptRetried:
    return ev.AttemptRetried(
        task="t",
        attempt=1,
        retry=number,
        max_retries=2,
        retry_delay_seconds=0.0,
        stage="run",
        scope=scope,
        error=ev.ErrorInfo(code="x", message="y"),
    )


def call(call_id: str, *, cost: float | None, tokens: int | None = 10) -> list[ev.AnyEvent]:
    usage = None if tokens is None else ev.Usage(input_tokens=tokens, output_tokens=1)
    return [
        ev.CallStarted(task="t", attempt=1, call_id=call_id, call_index=0),
        ev.CallFinished(
            task="t", attempt=1, call_id=call_id, success=True, usage=usage, cost_usd=cost
        ),
    ]


def test_the_cost_of_a_discarded_try_is_kept_apart(store: Store) -> None:
    events = [
        *say.opening("t"),
        ev.TaskStarted(task="t"),
        ev.AttemptStarted(task="t", attempt=1),
        *call("a", cost=1.0),
        retry(),
        *call("b", cost=0.5),
        say.result("t"),
    ]
    attempt = fold(store(events)).tasks["t"].attempts[1]
    assert attempt.discarded == Spend(calls=1, input_tokens=10, output_tokens=1, cost_usd=1.0)
    assert attempt.spend == Spend(calls=1, input_tokens=10, output_tokens=1, cost_usd=0.5)
    assert len(attempt.retries) == 1


def test_unknown_cost_and_usage_are_counted_and_not_zero(store: Store) -> None:
    events = [
        *say.opening("t"),
        ev.TaskStarted(task="t"),
        ev.AttemptStarted(task="t", attempt=1),
        *call("a", cost=None, tokens=None),
    ]
    spend = fold(store(events)).tasks["t"].attempts[1].spend
    assert (spend.unknown_cost, spend.unknown_usage, spend.cost_usd) == (1, 1, 0.0)


def test_a_lost_call_that_ends_late_is_counted_once(store: Store) -> None:
    started, finished = call("a", cost=2.0)
    events = [
        *say.opening("t"),
        ev.TaskStarted(task="t"),
        ev.AttemptStarted(task="t", attempt=1),
        started,
        ev.CallLost(task="t", attempt=1, call_id="a"),
        retry(),
        finished,
    ]
    state = fold(store(events))
    attempt = state.tasks["t"].attempts[1]
    assert state.late_calls == 1
    assert attempt.spend == Spend()
    assert attempt.discarded == Spend(calls=1, input_tokens=10, output_tokens=1, cost_usd=2.0)


def test_a_discarded_verdict_is_forgotten_and_the_result_kept(store: Store) -> None:
    events = [
        *say.opening("t"),
        ev.TaskStarted(task="t"),
        ev.AttemptStarted(task="t", attempt=1),
        say.result("t"),
        say.verdict("t", correct=True, score=1.0),
        retry("evaluate"),
    ]
    attempt = fold(store(events)).tasks["t"].attempts[1]
    assert not attempt.verdict
    assert attempt.evaluation is None
    assert attempt.result is not None


@pytest.mark.parametrize("size", [1, 5000, 200_000])
def test_equal_answers_have_equal_keys_whatever_their_size(store: Store, size: int) -> None:
    events = [
        *say.opening("t", k=3),
        ev.TaskStarted(task="t"),
        *say.attempt("t", 1, answer="x" * size),
        *say.attempt("t", 2, answer="x" * size),
        *say.attempt("t", 3, answer="x" * size + "y"),
    ]
    attempts = fold(store(events)).tasks["t"].attempts
    assert attempts[1].answer == attempts[2].answer != attempts[3].answer
    assert attempts[1].identity != attempts[2].identity


SCRIPT = [
    *say.opening("t", "u", k=2),
    ev.TaskStarted(task="t"),
    ev.AttemptStarted(task="t", attempt=1),
    *call("a", cost=1.0),
    retry(),
    *call("b", cost=None),
    say.result("t"),
    say.verdict("t", correct=False, score=0.5),
    ev.AttemptFinished(
        task="t", attempt=1, status="completed", correct=False, score=0.5, retries=1
    ),
    *say.whole_task("u", say.attempt("u"), say.failed_attempt("u", 2), error=True),
    ev.AnnotationAdded(text="x", author="y"),
    *say.attempt("t", 2),
    ev.TaskFinished(task="t", reason="all_attempts", error=False),
    *say.ending(),
    ev.LedgerSealed(),
]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> list[Recorded]:
    path = tmp_path_factory.mktemp("script") / "l.sqlite"
    with Ledger.create(path) as ledger:
        ledger.append(*SCRIPT)
    with LedgerView.open(path) as view:
        return list(view.events())


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, len(SCRIPT)))
def test_folding_in_two_parts_is_folding_in_one(script: list[Recorded], cut: int) -> None:
    assert fold(script[cut:], fold(script[:cut])) == fold(script)


def test_a_new_state_is_empty() -> None:
    assert fold([]) == RunState()
    assert fold([]).size == 0


def test_what_an_import_was_told_of_an_origin_is_no_copy_and_counts_as_reused(
    store: Store,
) -> None:
    claim = ev.Claim(run_id="old", ledger_id="ab" * 16, size=3, root="cd" * 32)
    start, *rest = say.attempt("a")
    events = [
        *say.opening("a", "b", "c"),
        ev.TaskStarted(task="a", claim=claim),
        start,
        *rest,
        ev.TaskFinished(task="a", reason="all_attempts", error=False),
        ev.TaskStarted(task="b"),
        ev.AttemptStarted(task="b", attempt=1, claim=claim),
        ev.TaskStarted(task="c"),
        ev.AttemptStarted(task="c", attempt=1),
    ]
    state = fold(store(events))
    a, b, c = (state.tasks[name] for name in "abc")
    assert (a.claim, a.origin, a.reused) == (claim, None, True)
    assert (b.claim, b.reused, b.attempts[1].claim) == (None, False, claim)
    assert [task.attempts[1].copied for task in (a, b, c)] == [True, True, False]
    assert state.counts().reused == 1


def test_the_ends_of_calls_are_kept_beside_their_starts(store: Store) -> None:
    at = {"task": "t", "attempt": 1}
    events = [
        *say.opening("t"),
        ev.TaskStarted(task="t"),
        ev.AttemptStarted(**at),
        ev.CallStarted(**at, call_id="x", call_index=0),
        ev.CallStarted(**at, call_id="y", call_index=1),
        ev.CallFinished(**at, call_id="y", success=True),
        ev.CallLost(**at, call_id="x"),
    ]
    stored = store(events)
    attempt = fold(stored).tasks["t"].attempts[1]
    types = {recorded.seq: recorded.type for recorded in stored}
    assert [types[seq] for seq in attempt.calls] == ["call.started"] * 2
    assert [types[seq] for seq in attempt.call_ends] == ["call.finished", "call.lost"]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with an attempt that came alone: one finished call for 1 USD, and a lost one."""
    lost = ev.CallStarted(task="t", attempt=1, call_id="c1", call_index=1)
    started = [ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1)]
    with Ledger.create(tmp_path / "source.sqlite") as ledger:
        ledger.append(*say.opening("t"), *started, *call("c0", cost=1.0), lost, say.result("t"))
        source = ledger.view()
    events = [r for r in source.events() if r.attempt == 1]
    reused = ev.AttemptReused(
        task="t",
        attempt=1,
        source_run_id="s",
        source_ledger_id=source.ledger_id.hex(),
        size=source.size,
        root=source.root().hex(),
        leaves=Binary(source.leaves()),
        sequence=tuple(r.seq for r in events),
    )
    copies = [Copy(r.header, source.raw(r.seq)[1], source.blob) for r in events]
    source.close()
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.append(*say.opening("t"), started[0], reused, *copies)
        ledger.append(ev.CallLost(task="t", attempt=1, call_id="c1"))
        yield ledger


def own(ledger: Ledger) -> tuple[Spend, Spend]:
    with ledger.view() as view:
        return fold(view.events()).tasks["t"].attempts[1].own_spend()


def test_what_a_copied_attempt_spent_was_not_spent_here(alone: Ledger) -> None:
    assert own(alone) == (Spend(), Spend())
    with alone.view() as view:
        spent = fold(view.events()).tasks["t"].attempts[1].spend
    assert (spent.calls, spent.lost_calls, spent.cost_usd) == (2, 1, 1.0)


def test_what_its_verdict_cost_was_spent_here(alone: Ledger) -> None:
    alone.append(ev.PhaseEntered(task="t", attempt=1, phase="evaluate"), *call("c2", cost=0.25))
    counted, discarded = own(alone)
    assert (counted.calls, counted.cost_usd, counted.open_calls, counted.lost_calls) == (
        *(1, 0.25),
        *(0, 0),
    )
    assert discarded == Spend()


def test_where_it_is_made_anew_only_that_is_counted_here(alone: Ledger) -> None:
    error = ev.ErrorInfo(code="environment_gone", message="gone")
    again = ev.AttemptRetried(
        task="t",
        attempt=1,
        retry=1,
        max_retries=0,
        retry_delay_seconds=0.0,
        stage="evaluate",
        scope="attempt",
        error=error,
    )
    alone.append(
        ev.PhaseEntered(task="t", attempt=1, phase="evaluate"), *call("c2", cost=0.25), again
    )
    alone.append(*call("c3", cost=2.0), say.result("t"))
    counted, discarded = own(alone)
    assert (counted.calls, counted.cost_usd) == (1, 2.0)
    assert (discarded.calls, discarded.cost_usd) == (1, 0.25)


def test_phases_are_those_of_the_counted_try_and_tools_those_of_all(store: Store) -> None:
    def tried() -> list[ev.AnyEvent]:
        return [
            ev.PlanResolved(task="t", attempt=1, plan={}, plan_hash="0" * 64),
            ev.PhaseEntered(task="t", attempt=1, phase="run_harness"),
            ev.ToolFinished(task="t", attempt=1, name="ls"),
        ]

    opening = [*say.opening("t"), ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1)]
    events = store([*opening, *tried(), retry(), *tried(), say.result("t")])
    attempt = fold(events).tasks["t"].attempts[1]
    phases = [recorded.seq for recorded in events if recorded.type == "phase.entered"]
    assert attempt.phases == phases[1:]
    assert attempt.tools == [
        recorded.seq for recorded in events if recorded.type == "tool.finished"
    ]
