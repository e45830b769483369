"""What is reused is counted and named: attempts that came alone, k, changed inputs, settings."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exporters.details import build_detail_record
from exporters.run_files import run_info
from exporters.summary import summary
from ledger.view import LedgerView
from runtime.contracts import AttemptContext, StageError, Task
from runtime.results import Evaluation, RunResult
from tests.fake_plugins import JUDGE, Listed, Ran, evaluate, task
from tests.reuse_runs import Agent, reusing, source

TASKS = [task("a"), task("b")]


class Judging(Listed):
    """Judges only where it is told to work, or where the files are not asked for."""

    def __init__(self, *, works: bool = True, wants_files: bool = False) -> None:
        super().__init__(TASKS)
        self.works = works
        self.wants_files = wants_files

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        if not self.works:
            raise StageError("sandbox_failed", "no sandbox")
        if self.wants_files and task.task_id == "a":
            assert context.session is not None
            await context.session.files()
        return Evaluation(JUDGE, correct=True, score=1.0)


def judged(results: Path, benchmark: Judging, agent: Agent, run_id: str, **how: Any) -> Ran:
    return evaluate(results, agent, benchmark=benchmark, output={"run_id": run_id}, **how)


def from_first(results: Path, benchmark: Judging, agent: Agent, **how: Any) -> Ran:
    reuse = {"reuse_run_id": "first"}
    return judged(results, benchmark, agent, "second", runtime=reuse, **how)


def summary_of(ran: Ran) -> str:
    data = summary(ran.state).data
    assert isinstance(data, bytes)
    return data.decode()


def said_by(ran: Ran) -> str:
    return Path(ran.outcome.paths["log_file"]).read_text()


def test_attempts_that_came_alone_are_counted_as_reused(tmp_path: Path) -> None:
    judged(tmp_path, Judging(works=False), Agent(), "first")
    ran = from_first(tmp_path, Judging(), Agent())
    counts = asdict(ran.state.counts())
    assert (counts["reused"], counts["reused_attempts"], counts["attempts"]) == (0, 2, 2)
    assert "- Reused attempts: 2, from run first, evaluated in this run" in summary_of(ran)


def test_an_attempt_that_was_made_anew_is_not_counted_as_reused(tmp_path: Path) -> None:
    judged(tmp_path, Judging(works=False), Agent(), "first")
    agent = Agent()
    ran = from_first(tmp_path, Judging(wants_files=True), agent)
    assert agent.asked == ["a"]
    assert ran.state.counts().reused_attempts == 1


def test_the_record_of_an_attempt_that_was_made_anew_names_no_other_run(tmp_path: Path) -> None:
    judged(tmp_path, Judging(works=False), Agent(), "first")
    ran = from_first(tmp_path, Judging(wants_files=True), Agent())
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        told: Any = {
            name: build_detail_record(ran.state.tasks[name], ran.state, view)["acl"]
            for name in "ab"
        }
    assert "reused_from" not in told["a"]["attempts"]["1"]
    assert told["b"]["attempts"]["1"]["reused_from"]["run_id"] == "first"


def test_attempts_of_a_task_that_is_reused_whole_are_not_counted_apart(tmp_path: Path) -> None:
    source(tmp_path)
    counts = reusing(tmp_path, Agent()).state.counts()
    assert (counts.reused, counts.reused_attempts) == (3, 0)


def test_an_attempt_of_another_configuration_is_made_again_and_that_is_said(
    tmp_path: Path,
) -> None:
    judged(tmp_path, Judging(works=False), Agent(), "first", model={"params": {"top_p": 1}})
    agent = Agent()
    ran = from_first(tmp_path, Judging(), agent)
    assert sorted(agent.asked) == ["a", "b"]
    assert ran.state.counts().reused_attempts == 0
    assert "2 attempts without a verdict of run 'first' run again" in said_by(ran)


def test_what_reused_tasks_hold_is_told_and_not_what_their_source_was_asked_for(
    tmp_path: Path,
) -> None:
    source(tmp_path)
    reusing(tmp_path, Agent(), k=3, output={"run_id": "three"})
    ran = reusing(tmp_path, Agent(), k=2, runtime={"reuse_run_id": "three"})
    held = "3 tasks hold 1 attempt, 1 task holds 3 attempts"
    assert f"with k=2, strategy all: {held}" in said_by(ran)
    assert "run 'three' was asked for otherwise: execution.k was 3, is 2" in said_by(ran)
    shown = summary_of(ran)
    assert "(k=2, strategy all): 4, 3 with 1, 1 with 3" in shown
    assert "- Asked for otherwise in run three: execution.k, there 3, here 2" in shown


def test_settings_that_differ_stand_in_the_files(tmp_path: Path) -> None:
    source(tmp_path, model={"params": {"top_p": 1}})
    ran = reusing(tmp_path, Agent())
    line = "- Run otherwise in run first: model.params.top_p, there 1, here null"
    assert line in summary_of(ran).splitlines()
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        data = run_info(ran.state, view).data
        document = json.loads(data if isinstance(data, bytes) else b"".join(data))
    told = [{"path": "model.params.top_p", "before": 1}]
    assert document["reused_from"]["differences"] == told


def test_tasks_that_were_reused_although_their_input_changed_are_named(tmp_path: Path) -> None:
    source(tmp_path)
    changed = [Task("a", ground_truth="right", checksum="another"), task("d")]
    runtime = {"reuse_run_id": "first", "reuse_changed": True}
    ran = reusing(tmp_path, Agent(), changed, runtime=runtime)
    assert "- Reused although their input changed: 1 (a)" in summary_of(ran).splitlines()
