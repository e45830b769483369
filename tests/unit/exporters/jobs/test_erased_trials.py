"""Files of trials whose events were erased after they were exported."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from exporters.check import check_tree
from exporters.jobs.job import LAYOUT, job_files
from exporters.jobs.place import write_job
from exporters.reading import Recent
from ledger import events as ev
from ledger.errors import RunNotFound
from ledger.fold import fold
from ledger.view import LedgerView, Recorded
from tests import job_runs as say
from tests.golden.erasing import Erased

# Both stand in both trajectories, and the answer in the trial's result.
LITELLM, ATIF = "t/agent/litellm-trajectory.jsonl", "t/agent/trajectory.json"
RESULT = "t/result.json"


@dataclass(frozen=True)
class Exported:
    """A run of one trial, its job, and the numbers of a call's two events."""

    run: Path
    job: Path
    start: int
    end: int

    def unproven(self, *bodies: int, pieces: bool = False) -> set[str]:
        """The files that the check calls not checkable; nothing may differ."""
        with LedgerView.open(self.run) as ledger:
            left = Erased(ledger, *bodies, pieces=pieces)
            found = check_tree(
                lambda size: fold(left.events(until=size)),
                left,
                self.job,
                ledger_id=ledger.ledger_id.hex(),
                size=ledger.size,
                find={LAYOUT: job_files}.__getitem__,
            )
            told = [one for one in found if one.code != "tree_older"]
        assert {one.code for one in told} <= {"tree_erased"}
        return {one.message.split(" ", 1)[0] for one in told}


@pytest.fixture
def exported(tmp_path: Path) -> Exported:
    run, artifacts = tmp_path / "run", tmp_path / "artifacts"
    with say.create(run) as ledger:
        ledger.append(*say.opening("t"))
        question = [say.said("user", "long " * 2000)]
        ledger.append(*say.whole("t", say.attempt("t", 1, *say.call("t", 1, 0, question))))
        ledger.append(*say.ending())
        with ledger.view() as view:
            state = fold(view.events())
            job = write_job(artifacts, state, view).directory
            kinds = {type(one.event): one.seq for one in view.events()}
        start, end = kinds[ev.CallStarted], kinds[ev.CallFinished]
        ledger.append(ev.PayloadErased(sequence=(start, end), reason="asked to"))
    return Exported(run, job, start, end)


def test_nothing_is_unproven_while_all_is_there(exported: Exported) -> None:
    assert exported.unproven() == set()


def test_every_file_that_tells_of_an_erased_answer_is_not_checkable(exported: Exported) -> None:
    assert exported.unproven(exported.end) == {LITELLM, ATIF, RESULT, "result.json"}


def test_every_file_that_tells_a_text_of_which_pieces_were_erased_is_not_checkable(
    exported: Exported,
) -> None:
    assert exported.unproven(pieces=True) == {LITELLM, ATIF}


class Counted:
    """Counts how often each event is asked for."""

    def __init__(self, view: LedgerView, *erased: int) -> None:
        self._view = Erased(view, *erased, pieces=True)
        self.asked: list[int] = []

    def event(self, seq: int) -> Recorded:
        self.asked.append(seq)
        return self._view.event(seq)

    def blob(self, digest: bytes) -> bytes:
        return self._view.blob(digest)

    def resolve(self, value: object) -> object:
        return self._view.resolve(value)


def test_an_event_is_asked_for_once_unless_something_of_it_was_erased(exported: Exported) -> None:
    with LedgerView.open(exported.run) as view:
        counted = Counted(view, exported.end)
        recent = Recent(counted)
        for _ in range(3):
            assert recent.event(exported.start) == view.event(exported.start)
            assert recent.event(exported.end).erased
        assert counted.asked == [exported.start, *[exported.end] * 3]
        question = recent.event(exported.start).event
        assert isinstance(question, ev.CallStarted)
        with pytest.raises(RunNotFound):
            recent.resolve(question.messages)
        recent.event(exported.start)
        assert counted.asked[4:] == [exported.start]
