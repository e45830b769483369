"""Where the events of a source stand, noted while it is folded."""

from pathlib import Path

import pytest

from ledger import events as ev
from ledger.fold import fold
from ledger.store import Ledger
from ledger.view import LedgerView, Recorded
from runtime.reuse_index import SourceIndex
from tests import events_of as say


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run of two tasks that took turns."""
    first, second = say.whole_task("a", say.attempt("a")), say.whole_task("b", say.attempt("b"))
    turns = [event for pair in zip(first, second, strict=True) for event in pair]
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("a", "b"), *turns, *say.ending())
    return tmp_path


def events(run: Path) -> list[Recorded]:
    with LedgerView.open(run) as view:
        return list(view.events())


def of(kind: type[ev.Event], seq: int, like: Recorded) -> Recorded:
    """An event as its header alone tells it: its body was erased."""
    return Recorded(like.header._replace(code=kind.code, seq=seq), None, like.leaf)


def test_the_events_of_each_task_are_noted_in_order(run: Path) -> None:
    index = SourceIndex()
    fold(index.watch(iter(events(run))))
    for task in ("a", "b"):
        told = [one.seq for one in events(run) if one.task == task]
        assert len(told) > 4
        assert index.of(task) == told
        assert index.to_its_end(task) == told
    assert index.of("c") == index.to_its_end("c") == []


def test_what_follows_the_end_of_a_task_does_not_lead_to_it(run: Path) -> None:
    index, recorded = SourceIndex(), events(run)
    ended = next(one for one in recorded if one.type == "task.finished")
    late = of(ev.CallLost, len(recorded), ended)
    list(index.watch([*recorded, late]))
    assert index.of(str(ended.task))[-1] == late.seq
    assert index.to_its_end(str(ended.task))[-1] == ended.seq


@pytest.mark.parametrize("kind", [ev.TaskReused, ev.OriginalRecorded, ev.AnnotationAdded])
def test_what_is_no_copy_is_left_out_whatever_became_of_its_body(
    run: Path, kind: type[ev.Event]
) -> None:
    index = SourceIndex()
    begun = next(one for one in events(run) if one.type == "task.started")
    list(index.watch([of(kind, 0, begun), of(ev.AttemptReused, 1, begun)]))
    assert index.of(str(begun.task)) == [1]


def test_the_leaf_hashes_are_those_of_all_events(run: Path) -> None:
    index = SourceIndex()
    passed = list(index.watch(events(run)))
    assert passed == events(run)
    with LedgerView.open(run) as view:
        assert bytes(index.leaves) == view.leaves()
