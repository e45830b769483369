"""`acl show` names the run that attempts come from which ran there and were judged here."""

from pathlib import Path

from runtime.contracts import AttemptContext, StageError, Task
from runtime.results import Evaluation, RunResult
from tests.cli.conftest import Acl
from tests.fake_plugins import JUDGE, Listed, evaluate, task
from tests.reuse_runs import Agent


class Judging(Listed):
    """Fails to judge where it is told so."""

    def __init__(self, *, works: bool) -> None:
        super().__init__([task("a"), task("b")])
        self.works = works

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        if not self.works and task.task_id == "a":
            raise StageError("sandbox_failed", "no sandbox")
        return Evaluation(JUDGE, correct=True, score=1.0)


def judged_later(results: Path) -> Path:
    """A run with task `b` of run `first`, and the attempt of its task `a`, without a verdict."""
    evaluate(results, Agent(), benchmark=Judging(works=False), output={"run_id": "first"})
    benchmark, reuse = Judging(works=True), {"reuse_run_id": "first"}
    path = evaluate(results, Agent(), benchmark=benchmark, runtime=reuse).outcome.path
    assert path is not None
    return path


def test_tasks_tell_which_run_their_attempts_come_from(acl: Acl, tmp_path: Path) -> None:
    rows = {
        row["task_id"]: row
        for row in acl("show", judged_later(tmp_path), "--tasks", "--json").lines()
    }
    assert (rows["a"]["reused_from"], rows["a"]["reused_attempts"]) == ("first", 1)
    assert (rows["b"]["reused_from"], rows["b"]["reused_attempts"]) == ("first", 0)


def test_a_task_tells_it_of_each_attempt(acl: Acl, tmp_path: Path) -> None:
    shown = acl("show", judged_later(tmp_path), "a").out.splitlines()
    header = next(n for n, text in enumerate(shown) if text.startswith("ATTEMPT"))
    assert shown[header].split()[-1] == "FROM"
    assert shown[header + 1].split()[-1] == "first"


def test_the_counts_of_a_run_have_them(acl: Acl, tmp_path: Path) -> None:
    path = judged_later(tmp_path)
    counts = acl("show", path, "--json").document()["counts"]
    assert (counts["reused"], counts["reused_attempts"]) == (1, 1)
    assert "reused 1, reused_attempts 1" in acl("show", path).out
