"""What was erased is unknown in an analysis, and never told as something else."""

from pathlib import Path

import pytest

from exporters.job_analysis import analyze_job
from ledger import LedgerView, fold
from tests.analysis_runs import Analysis, Job, call, right, tool, wrong
from tests.golden.erasing import Erased


def without(path: Path, *types: str) -> Analysis:
    """The analysis after the bodies of all events of these types were erased."""
    with LedgerView.open(path) as ledger:
        gone = [recorded.seq for recorded in ledger.events() if recorded.type in types]
        view = Erased(ledger, *gone)
        state = fold(view.events())
        return Analysis({file.path: file.data for file in analyze_job(state, view)})


@pytest.fixture
def run(tmp_path: Path) -> Path:
    during = [*call("a", content="x", cost_usd=1.0), tool("a", "ls", {})]
    job = Job().add("a", right("a", during=during)).add("b", wrong("b", during=call("b")))
    return job.write(tmp_path)


def test_an_erased_verdict_is_no_wrong_answer(run: Path) -> None:
    found = without(run, "evaluation.finished", "attempt.finished")
    one = found.instance("b")
    assert (one["axes"]["answer"], one["primary"]) == ("erased", "erased")
    assert (one["resolved"], one["correctness_verdict"]) == (False, "V5")
    assert "erased" in one["flags"]
    assert found.trajectories["excluded"]["error"] == 2


def test_an_erased_answer_is_not_told_as_missing(run: Path) -> None:
    one = without(run, "result.recorded").instance("b")
    assert one["deterministic_features"]["answer_chars"] is None
    assert one["component_scores"]["sub_score"] is None
    assert one["axes"]["answer"] == "wrong"


@pytest.mark.parametrize(
    "kind",
    ["call.started", "call.finished", "tool.finished", "plan.resolved", "attempt.started"],
)
def test_other_erased_events_are_flagged_and_stop_nothing(run: Path, kind: str) -> None:
    found = without(run, kind)
    assert "erased" in found.instance("a")["flags"]
    assert found.instance("a")["resolved"] is True


def test_nothing_erased_is_not_flagged(run: Path) -> None:
    assert "erased" not in without(run).instance("a")["flags"]
