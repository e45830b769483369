"""`acl replay --evaluate`: the verdicts again, by the benchmarks that ship."""

from pathlib import Path

import pytest

from ledger.events import Evaluator
from runtime.benchmarks.arith.benchmark import ArithBenchmark
from runtime.contracts import AttemptContext, StageError, Task
from runtime.results import Evaluation, RunResult
from tests.cli.conftest import Acl

ARITH = ("--benchmark", "acl-arith", "--harness", "calculator", "--limit", 10)


def made(acl: Acl, *how: object) -> Path:
    said = acl("run", *how, "--run-id", "r", "--no-export", "--json")
    assert said.status == 0, said.err
    return Path(said.document()["path"])


def judging(monkeypatch: pytest.MonkeyPatch, *wrong: str, version: str = "1") -> None:
    """From now on acl-arith takes every answer for right but an empty one and those to `wrong`."""

    async def evaluate(
        self: ArithBenchmark, task: Task, result: RunResult, context: AttemptContext
    ) -> Evaluation:
        if task.task_id == "arith-002-fraction":
            raise StageError("no_judge", "it is asleep")
        correct = bool(result.final_answer) and task.task_id not in wrong
        judge = Evaluator(id="acl-arith", version=version)
        return Evaluation(judge, correct=correct, score=float(correct))

    monkeypatch.setattr(ArithBenchmark, "evaluate", evaluate)


@pytest.mark.parametrize(
    "how",
    [
        ARITH,
        ("--benchmark", "acl-repair", "--harness", "search", "--limit", 4, "--k", 2),
    ],
    ids=["arith", "repair"],
)
def test_the_benchmarks_that_ship_judge_as_before(acl: Acl, how: tuple[object, ...]) -> None:
    path = made(acl, *how)
    said = acl("replay", path, "--evaluate", "--json")
    assert said.status == 0
    document = said.document()
    assert document["equal"] is True
    counts = document["evaluation"]["counts"]
    attempts = 10 if how is ARITH else 8
    assert (counts["attempts"], counts["compared"], counts["equal"]) == (attempts,) * 3
    assert document["evaluation"]["metrics"]["metrics"] == document["recorded"]["metrics"]


def test_a_verdict_that_differs_is_named_and_fails(
    acl: Acl, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(acl, *ARITH)
    before = acl("replay", path, "--json").document()["metrics"]["metrics"]["correct.accuracy"]
    judging(monkeypatch, "arith-001-expression")
    said = acl("replay", path, "--evaluate")
    assert said.status == 1
    first = "verdict differs: arith-001-expression, attempt 1: correct recorded True, now False"
    assert first in said.out
    failed = "not comparable: arith-002-fraction, attempt 1: the evaluator failed: no_judge"
    assert failed in said.out
    assert "equal to the recorded metrics" in said.out  # those of the recorded verdicts
    document = acl("replay", path, "--evaluate", "--json").document()
    assert (document["equal"], document["differences"]) == (False, [])
    evaluation = document["evaluation"]
    assert evaluation["reasons"] == {"the evaluator failed": 1}
    assert [one["task"] for one in evaluation["different"]] == ["arith-001-expression"]
    assert evaluation["metrics"]["metrics"]["correct.accuracy"] == pytest.approx(before - 0.1)


def test_verdicts_of_two_versions_of_the_evaluator_are_said_to_be_mixed(
    acl: Acl, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(acl, *ARITH)
    judging(monkeypatch, version="2")
    said = acl("replay", path, "--evaluate")
    assert said.status == 0
    assert "mixed: the verdicts are of more than one evaluator" in said.out
    assert "judged by another evaluator than the recorded one: 9" in said.out
    assert acl("replay", path, "--evaluate", "--json").document()["evaluation"]["evaluator"] == (
        "mixed"
    )


def test_a_run_whose_benchmark_is_not_installed_cannot_be_judged(acl: Acl, sealed: Path) -> None:
    said = acl("replay", sealed, "--evaluate")
    assert said.status == 2
    assert "there is no benchmark 'bench'; known: acl-arith, acl-repair" in said.err
