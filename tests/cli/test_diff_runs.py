"""`acl diff RUN RUN`: the part that compares runs."""

import json
from pathlib import Path

import pytest

from acl.diff_runs import diff_runs
from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say

Out = pytest.CaptureFixture[str]


def write(directory: Path, run_id: str, *tasks: tuple[str, bool], **execution: object) -> Path:
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(say.created(run_id, **execution), ev.RunStarted())
        ledger.append(say.selected(*(name for name, _ in tasks), category="math"))
        for name, correct in tasks:
            score = 1.0 if correct else 0.0
            ledger.append(*say.whole_task(name, say.attempt(name, correct=correct, score=score)))
        ledger.append(*say.ending())
        ledger.seal()
    return directory


def test_a_run_is_equal_to_itself(sealed: Path, capsys: Out) -> None:
    assert diff_runs(sealed, sealed, json=False) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "equal verdicts: 3 tasks"


def test_tasks_that_changed_are_listed_with_both_verdicts(tmp_path: Path, capsys: Out) -> None:
    a = write(tmp_path / "a", "one", ("t1", True), ("t2", False), ("t3", True))
    b = write(tmp_path / "b", "two", ("t1", False), ("t2", True), ("t4", True), k=2)
    assert diff_runs(a, b, json=False) == 1
    out = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "lost t1 math correct, score 1.0000 wrong, score 0.0000" in rows
    assert "gained t2 math wrong, score 0.0000 correct, score 1.0000" in rows
    assert "only in A: t3" in rows
    assert "only in B: t4" in rows
    assert "execution.k 1 2" in rows
    assert any(row.startswith("correct.accuracy 0.6667 ") and "(wilson)" in row for row in rows)
    assert rows[-1] == (
        "verdicts differ: 2 tasks changed (1 gained, 1 lost), 0 equal, 1 only in A, 1 only in B"
    )


def test_one_json_document_tells_all_of_it(tmp_path: Path, capsys: Out) -> None:
    a = write(tmp_path / "a", "one", ("t1", True), ("t2", True))
    b = write(tmp_path / "b", "two", ("t1", False), ("t2", True))
    assert diff_runs(a, b, json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] is False
    assert found["directions"] == {"lost": 1}
    assert [change["task"] for change in found["changes"]] == ["t1"]
    assert found["before"]["run_id"] == "one"
    assert found["before"]["counts"]["correct"] == 2
    pairs = {pair["name"]: pair for pair in found["metrics"]}
    assert pairs["correct.accuracy"]["change"] == -0.5
    assert pairs["correct.accuracy"]["before"]["interval"]["name"] == "wilson"


def test_a_killed_run_can_be_compared(sealed: Path, killed: Path, capsys: Out) -> None:
    assert diff_runs(sealed, killed, json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["before"]["status"], found["after"]["status"]) == ("completed", "interrupted")
