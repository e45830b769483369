"""Sums that follow a run."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import LedgerView, RunState, fold
from ledger import events as ev
from ledger.state import TaskState
from ledger.store import Ledger
from ledger.tally import Tally
from tests import events_of as say


def share(task: TaskState) -> tuple[int, ...]:
    attempts = task.in_order()
    return len(attempts), sum(attempt.finished is not None for attempt in attempts)


class Run:
    """A run that goes on, its state, and a tally that follows it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.view = LedgerView.open(ledger.path)
        self.state = RunState()
        self.tally = Tally(share)

    def say(self, *events: ev.AnyEvent) -> list[str]:
        """Record events, and tell the tasks that the tally saw move."""
        self.ledger.append(*events)
        fold(self.view.events(since=self.state.size), self.state)
        return [task.id for task in self.tally.follow(self.state)]

    def sums(self) -> tuple[int, ...]:
        """The sums over all tasks that have begun, by looking at each of them."""
        begun = [share(task) for task in self.state.tasks.values() if task.first is not None]
        return tuple(map(sum, zip(*begun, strict=True)))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        made = Run(ledger)
        with made.view:
            yield made


def test_only_tasks_that_moved_are_counted_anew_and_the_sums_are_of_all(run: Run) -> None:
    assert run.say(*say.opening("a", "b", "c")) == []
    assert (run.tally.sums, run.tally.begun) == ((), 0)
    assert run.say(*say.whole_task("c", say.attempt("c"))) == ["c"]
    start, *rest = say.attempt("a")
    assert run.say(ev.TaskStarted(task="a"), start) == ["a"]
    assert run.tally.sums == run.sums() == (2, 1)
    end = ev.TaskFinished(task="a", reason="all_attempts", error=False)
    assert run.say(*say.whole_task("b", say.attempt("b")), *rest, end) == ["a", "b"]
    assert run.tally.sums == run.sums() == (3, 3)
    assert run.say(ev.SummaryStarted()) == []
    assert run.tally.begun == 3


def test_a_tally_that_comes_late_counts_everything(run: Run) -> None:
    run.say(*say.opening("a", "b"), *say.whole_task("b", say.attempt("b")))
    late = Tally(share)
    assert [task.id for task in late.follow(run.state)] == ["b"]
    assert late.sums == run.tally.sums == (1, 1)


def test_what_moved_is_known_where_more_happened_than_is_remembered(run: Run) -> None:
    run.state.recent = deque(maxlen=4)
    run.say(*say.opening("a", "b", "c"), *say.whole_task("a", say.attempt("a")))
    moved = run.say(
        *say.whole_task("b", say.attempt("b")), ev.InterruptRequested(signal="SIGINT", count=1)
    )
    assert set(moved) >= {"b"}
    assert run.tally.sums == run.sums() == (2, 2)
    before = run.state.size
    assert run.say(ev.TaskStarted(task="c")) == ["c"]
    assert [task.id for task in run.state.moved(before)] == ["c"]
    assert [task.id for task in run.state.moved(before - 2)] == ["b", "c"]
    assert [task.id for task in run.state.moved(0)] == ["a", "b", "c"]
    assert run.state.moved(run.state.size) == []
