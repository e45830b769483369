"""kill -9 in the middle of an erasure: all is as it was, or all is erased; the next one finishes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import AlreadySealed
from ledger.store import Ledger
from tests import events_of as say
from tests.erased import assert_gone, digits, pieces
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[2]
# ACL_STEP_STRIDE=1 kills at every step.
STRIDE = int(os.environ.get("ACL_STEP_STRIDE", "7"))


@pytest.mark.parametrize("seal", [False, True], ids=["running", "sealed"])
@pytest.mark.parametrize(("moment", "first"), [("before", 0), ("after", STRIDE // 2)])
def test_an_erasure_killed_at_each_of_its_steps_is_done_or_was_not_begun(
    tmp_path: Path, moment: str, first: int, seal: bool
) -> None:
    source, folder = tmp_path / "source", tmp_path / "killed"
    source.mkdir()
    folder.mkdir()
    marker = digits(10_000)
    with Ledger.create(source) as ledger:
        ledger.append(*say.opening("t"))
        ledger.append(*say.whole_task("t", say.attempt("t", answer=marker)))
        ledger.checkpoint()
        if seal:
            ledger.seal()
    before = pieces(source / "ledger.sqlite", marker)
    steps = subprocess.run(
        [
            *(sys.executable, "-m", "tests.crash.erasing", str(source), str(folder)),
            *(moment, str(first), str(STRIDE)),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    outcomes = [json.loads(line) for line in steps.stdout.splitlines()]
    assert outcomes[-1]["finished"]
    done = [was_erased(Path(outcome["folder"])) for outcome in outcomes]
    # Once a kill comes too late to hinder it, every later one does.
    assert done == sorted(done)
    assert set(done) == {False, True}
    for outcome, is_erased in zip(outcomes, done, strict=True):
        run = Path(outcome["folder"])
        finish(run, is_erased=is_erased, seal=seal)
        assert_gone(run / "ledger.sqlite", marker, before)


def was_erased(run: Path) -> bool:
    """Whether the erasure is recorded; either way the ledger is whole."""
    check_ledger(run / "ledger.sqlite")
    with LedgerView.open(run) as view:
        told = [one.seq for one in view.events() if isinstance(one.event, ev.PayloadErased)]
        assert view.event(5).erased is bool(told)
        assert len(told) <= 1
    return bool(told)


def finish(run: Path, *, is_erased: bool, seal: bool) -> None:
    """Open what was left, and erase if that was not done."""
    if seal:
        with pytest.raises(AlreadySealed):
            Ledger.open(run)
    with Ledger.open(run, amends=True) as ledger:
        if not is_erased:
            ledger.erase([5], reason="asked to")
        ledger.checkpoint()
    assert not (run / "ledger.sqlite.new").exists()
    check_ledger(run / "ledger.sqlite")
    with LedgerView.open(run) as view:
        assert view.sealed is seal
        if seal:
            assert list(view.checkpoints())[-1][0] == view.size
            assert (run / "ledger.sqlite").stat().st_mode & 0o777 == 0o444
