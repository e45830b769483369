"""Attempts that ran and have no verdict: evaluated, not run again."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exporters.details import build_detail_record
from exporters.retry_record import retry_files
from exporters.summary import summary
from ledger import events as ev
from ledger.copying import copy_ledger
from ledger.fold import fold
from ledger.view import LedgerView
from runtime.contracts import Analysis, AttemptContext, BaseAnalyzer, StageError, Task
from runtime.interrupt import StopSignal
from runtime.llm import CallStart
from runtime.results import Evaluation, RunResult
from tests.fake_plugins import JUDGE, Listed, Ran, evaluate, task
from tests.ledger_checks import check_ledger
from tests.reuse_runs import exported

TASKS = [task("a"), task("b")]
Verdict = Callable[[Task, RunResult, AttemptContext], Any]


class Judging(Listed):
    """Judges as told: a verdict, or an exception; keeps the files that it is told to keep."""

    def __init__(
        self, verdict: Verdict, tasks: list[Task] = TASKS, *, keeps: tuple[str, ...] = ()
    ) -> None:
        super().__init__(tasks)
        self.verdict = verdict
        self.keeps = keeps

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        found = self.verdict(task, result, context)
        if found is None:
            return await super().evaluate(task, result, context)
        if hasattr(found, "__await__"):
            return await found
        return found


class Keeping(Judging):
    """Keeps files, which `Listed` does not."""

    async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
        return list(self.keeps)


class Agent:
    """Answers right, and counts what it was asked; leaves a file."""

    def __init__(self, act: Callable[[Task, AttemptContext], Any] | None = None) -> None:
        self.asked: list[tuple[str, int]] = []
        self.act = act

    async def __call__(self, t: Task, context: AttemptContext) -> Any:
        self.asked.append((t.task_id, context.attempt))
        assert context.session is not None
        await context.session.write_text("out.txt", f"left by {t.task_id}")
        if self.act is not None:
            found = self.act(t, context)
            return await found if hasattr(found, "__await__") else found
        return "right"


def house_fault(*_: Any) -> Any:
    raise StageError("sandbox_failed", "no sandbox")


def as_usual(*_: Any) -> Any:
    return None


def run(
    results: Path,
    verdict: Verdict = as_usual,
    agent: Agent | None = None,
    *,
    run_id: str = "second",
    source: str = "first",
    kind: type[Judging] = Judging,
    keeps: tuple[str, ...] = (),
    tasks: list[Task] = TASKS,
    runtime: dict[str, Any] | None = None,
    **how: Any,
) -> Ran:
    ran = evaluate(
        results,
        agent or Agent(),
        benchmark=kind(verdict, tasks, keeps=keeps),
        output={"run_id": run_id},
        runtime=runtime or ({"reuse_run_id": source} if source else {}),
        **how,
    )
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)
    return ran


def unjudged(results: Path, **how: Any) -> Ran:
    """A run in which the verifier never worked."""
    return run(results, house_fault, run_id="first", source="", **how)


class Killing:
    """Takes a copy of the running ledger at the first call: what a kill would have left."""

    def __init__(self, results: Path, run_id: str = "first") -> None:
        self.running = results / "listed" / "none" / run_id
        self.left = results / "listed" / "none" / f"{run_id}-killed"

    def __call__(self, *_: Any) -> Any:
        if not self.left.exists():
            self.left.mkdir()
            copy_ledger(self.running, self.left)


def types_of(ran: Ran, name: str) -> list[tuple[str, bool]]:
    return [(r.type, r.copied) for r in ran.events if r.task == name]


def test_an_attempt_whose_verifier_failed_is_evaluated_and_not_run_again(tmp_path: Path) -> None:
    first = unjudged(tmp_path)
    agent = Agent()
    ran = run(tmp_path, agent=agent)
    assert agent.asked == []
    assert ran.outcome.status == "completed"
    counts = ran.state.counts()
    assert (counts.evaluated, counts.correct, counts.error, counts.reused) == (2, 2, 0, 0)
    (reused,) = ran.of(ev.AttemptReused, "a")
    there = [r for r in first.events if r.task == "a" and r.attempt == 1]
    result = next(r.seq for r in there if r.type == "result.recorded")
    assert list(reused.sequence) == [r.seq for r in there if r.seq <= result]
    assert reused.source_run_id == "first"
    assert reused.source_ledger_id == first.state.ledger_id
    assert (reused.size, reused.root) == (first.state.size, first.state.root.hex())


def test_the_copies_end_with_the_result_and_the_verdict_is_this_runs_own(tmp_path: Path) -> None:
    unjudged(tmp_path)
    ran = run(tmp_path)
    found = types_of(ran, "a")
    copied = [name for name, is_copy in found if is_copy]
    assert copied[0] == "attempt.started"
    assert copied[-1] == "result.recorded"
    assert "evaluation.finished" not in copied
    begin = [name for name, _ in found].index("result.recorded") + 1
    assert found[:2] == [("task.started", False), ("attempt.reused", False)]
    assert found[begin:] == [
        ("phase.entered", False),
        ("evaluation.finished", False),
        ("attempt.finished", False),
        ("task.finished", False),
    ]
    state = ran.state.tasks["a"].attempts[1]
    assert state.copied
    assert state.origin is not None
    assert state.origin.run_id == "first"


def test_the_identity_of_the_attempt_is_kept(tmp_path: Path) -> None:
    first = unjudged(tmp_path)
    ran = run(tmp_path)
    theirs = first.state.tasks["a"].attempts[1]
    ours = ran.state.tasks["a"].attempts[1]
    assert ours.identity == theirs.identity
    assert ours.result_address == theirs.result_address


def test_the_record_tells_where_the_attempt_was_made(tmp_path: Path) -> None:
    first = unjudged(tmp_path)
    ran = run(tmp_path)
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        record = build_detail_record(ran.state.tasks["a"], ran.state, view)
    assert record["attempts"]["1"]["final_answer"] == "right"
    told = record["acl"]["attempts"]["1"]["reused_from"]
    assert (told["run_id"], told["ledger_id"]) == ("first", first.state.ledger_id)
    assert record["acl"]["reused_from"] is None


def test_an_attempt_that_was_being_judged_when_its_run_was_killed_is_evaluated(
    tmp_path: Path,
) -> None:
    run(tmp_path, Killing(tmp_path), run_id="first", source="")
    agent = Agent()
    ran = run(tmp_path, agent=agent, source="first-killed", task_concurrency=1)
    assert ran.of(ev.AttemptReused)[0].source_run_id == "first"
    assert len(agent.asked) == 2 - len(ran.of(ev.AttemptReused))
    assert ran.state.counts().correct == 2


def test_an_attempt_that_was_stopped_while_it_was_judged_is_evaluated(tmp_path: Path) -> None:
    stop = StopSignal()

    def stopping(*_: Any) -> Any:
        stop.request("SIGINT")

        async def wait() -> None:
            await asyncio.sleep(30)

        return wait()

    first = run(tmp_path, stopping, run_id="first", source="", stop=stop, task_concurrency=1)
    assert first.state.tasks["a"].attempts[1].status == "cancelled"
    agent = Agent()
    run(tmp_path, agent=agent)
    assert agent.asked == [("b", 1)]


@pytest.mark.parametrize(
    "verdict",
    [
        lambda *_: (_ for _ in ()).throw(ValueError("cannot read the answer")),
        lambda *_: Evaluation(JUDGE),
    ],
    ids=["verifier raised", "no verdict"],
)
def test_what_the_verifier_could_not_judge_by_its_own_fault_runs_again(
    tmp_path: Path, verdict: Verdict
) -> None:
    run(tmp_path, verdict, run_id="first", source="")
    agent = Agent()
    ran = run(tmp_path, agent=agent)
    assert [name for name, _ in agent.asked] == ["a", "b"]
    assert ran.of(ev.AttemptReused) == []


def test_an_attempt_that_failed_runs_again(tmp_path: Path) -> None:
    failing = Agent(lambda *_: (_ for _ in ()).throw(RuntimeError("no")))
    unjudged(tmp_path, agent=failing)
    agent = Agent()
    assert run(tmp_path, agent=agent).of(ev.AttemptReused) == []
    assert len(agent.asked) == 2


def test_of_several_attempts_only_the_ones_without_a_verdict_are_taken(tmp_path: Path) -> None:
    def second_fails(_: Task, __: RunResult, context: AttemptContext) -> Any:
        return house_fault() if context.attempt == 2 else None

    run(tmp_path, second_fails, run_id="first", source="", k=2)
    agent = Agent()
    ran = run(tmp_path, agent=agent, k=2)
    assert sorted(agent.asked) == [("a", 1), ("b", 1)]
    assert [event.attempt for event in ran.of(ev.AttemptReused, "a")] == [2]
    assert ran.state.counts().correct == 2


def test_no_attempt_is_taken_beyond_k(tmp_path: Path) -> None:
    unjudged(tmp_path, k=3)
    ran = run(tmp_path, k=2)
    assert [event.attempt for event in ran.of(ev.AttemptReused, "a")] == [1, 2]


def test_where_the_first_right_answer_ends_a_task_only_its_first_attempt_is_taken(
    tmp_path: Path,
) -> None:
    unjudged(tmp_path, k=2)
    agent = Agent()
    ran = run(tmp_path, agent=agent, k=2, strategy="stop_on_correct")
    assert [event.attempt for event in ran.of(ev.AttemptReused, "a")] == [1]
    assert agent.asked == []
    assert ran.state.tasks["a"].solved_at == 1


def test_where_the_first_answer_is_wrong_the_next_attempts_are_made(tmp_path: Path) -> None:
    unjudged(tmp_path, k=2, agent=Agent(lambda *_: "wrong"))
    agent = Agent()
    ran = run(tmp_path, agent=agent, k=2, strategy="stop_on_correct")
    assert sorted(agent.asked) == [("a", 2), ("b", 2)]
    assert ran.state.tasks["a"].solved_at == 2


def test_a_changed_task_is_not_evaluated_on_the_old_answer(tmp_path: Path) -> None:
    unjudged(tmp_path)
    changed = [Task("a", ground_truth="right", checksum="another"), task("b")]
    agent = Agent()
    ran = run(tmp_path, agent=agent, tasks=changed)
    assert agent.asked == [("a", 1)]
    assert [event.task for event in ran.of(ev.AttemptReused)] == ["b"]


def test_an_answer_with_a_replaced_secret_is_not_judged(tmp_path: Path) -> None:
    """The verifier would judge asterisks."""
    unjudged(
        tmp_path, agent=Agent(lambda t, _: "password=hunter2" if t.task_id == "a" else "right")
    )
    agent = Agent()
    ran = run(tmp_path, agent=agent)
    assert agent.asked == [("a", 1)]
    assert "task a, attempt 1 cannot be evaluated: a secret was taken out of it" in log_of(ran)


def log_of(ran: Ran) -> str:
    return Path(ran.outcome.paths["log_file"]).read_text(encoding="utf-8")


def test_of_an_import_no_attempt_is_judged(tmp_path: Path) -> None:
    first = unjudged(tmp_path / "there")
    exported(first, tmp_path / "listed" / "none" / "first")
    agent = Agent()
    ran = run(tmp_path, agent=agent)
    assert len(agent.asked) == 2
    assert "attempt 1 cannot be evaluated: an import holds no more than an excerpt" in log_of(ran)


def test_discarded_tries_come_along(tmp_path: Path) -> None:
    def once(t: Task, context: AttemptContext) -> Any:
        if context.retry == 0:
            raise StageError("sandbox_failed", "not yet")
        return "right"

    first = run(
        tmp_path,
        lambda *_: (_ for _ in ()).throw(StageError("auth", "no", fatal=True)),
        Agent(once),
        run_id="first",
        source="",
        max_retries=1,
        retry_min_delay_seconds=0.0,
    )
    assert first.state.tasks["a"].retry_count == 1
    agent = Agent()
    ran = run(tmp_path, agent=agent)
    assert agent.asked == []
    assert ran.state.tasks["a"].retry_count == 1
    (finished,) = ran.of(ev.AttemptFinished, "a")
    assert finished.retries == 1
    assert finished.resolved_plan_hash == ran.of(ev.PlanResolved, "a")[-1].plan_hash


def test_a_call_without_an_end_is_lost(tmp_path: Path) -> None:
    async def calling(_: Task, context: AttemptContext) -> str:
        await context.calls.started(CallStart("c1", 0, "p", "m", {}, []))
        return "right"

    unjudged(tmp_path, agent=Agent(calling))
    ran = run(tmp_path)
    (lost,) = ran.of(ev.CallLost, "a")
    assert lost.call_id == "c1"
    assert ran.state.tasks["a"].attempts[1].spend.lost_calls == 1


def test_calls_of_the_verifier_are_numbered_behind_those_of_the_agent(tmp_path: Path) -> None:
    async def calling(_: Task, context: AttemptContext) -> str:
        await context.calls.started(CallStart("c1", 0, "p", "m", {}, []))
        return "right"

    async def asking(t: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        await context.calls.started(CallStart("j1", 0, "p", "m", {}, []))
        return Evaluation(JUDGE, correct=True, score=1.0)

    unjudged(tmp_path, agent=Agent(calling))
    ran = run(tmp_path, asking)
    assert [event.call_index for event in ran.of(ev.CallStarted, "a")] == [0, 1]


def test_the_summary_tells_of_attempts_that_were_only_evaluated(tmp_path: Path) -> None:
    unjudged(tmp_path)
    ran = run(tmp_path)
    shown = summary(ran.state).data
    line = "- Reused attempts: 2, from run first, evaluated in this run"
    assert isinstance(shown, bytes)
    assert line in shown.decode().splitlines()


# -- files --------------------------------------------------------------------------------------


async def by_file(t: Task, _: RunResult, context: AttemptContext) -> Evaluation:
    assert context.session is not None
    text = await context.session.read_text("out.txt")
    return Evaluation(JUDGE, correct=text == f"left by {t.task_id}", score=1.0)


def test_the_verifier_finds_the_files_that_were_kept(tmp_path: Path) -> None:
    first = unjudged(tmp_path, kind=Keeping, keeps=("out.txt",))
    agent = Agent()
    ran = run(tmp_path, by_file, agent, kind=Keeping, keeps=("out.txt",))
    assert agent.asked == []
    assert ran.state.counts().correct == 2
    (files,) = ran.of(ev.ArtifactsCollected, "a")
    assert files.contents == {"out.txt": "left by a"}
    there = next(r.seq for r in first.events if r.type == "artifacts.collected" and r.task == "a")
    assert files.source_seq == there
    told = [r for r in ran.events if r.type == "artifacts.collected"]
    assert not any(r.copied for r in told)


def test_that_the_files_are_the_same_is_told_as_a_claim(tmp_path: Path) -> None:
    unjudged(tmp_path, kind=Keeping, keeps=("out.txt",))
    ran = run(tmp_path, by_file, kind=Keeping, keeps=("out.txt",))
    assert ran.outcome.path is not None
    claims = [f for f in check_ledger(ran.outcome.path) if f.code == "files_claim"]
    assert sorted(str(f.task) for f in claims) == ["a", "b"]


@pytest.mark.parametrize("swallowed", [False, True])
@pytest.mark.parametrize(
    "asks",
    [
        lambda session: session.read_text("not kept"),
        lambda session: session.exec(["true"]),
        lambda session: session.files(),
        lambda session: session.write_text("x", "y"),
        lambda session: session.size("not kept"),
        lambda session: session.upload(Path("x"), "y"),
        lambda session: session.download("not kept", Path("x")),
    ],
)
def test_where_the_environment_is_needed_the_attempt_is_made_anew(
    tmp_path: Path, asks: Callable[[Any], Any], swallowed: bool
) -> None:
    only = [task("a")]

    async def asking(_: Task, __: RunResult, context: AttemptContext) -> Evaluation:
        if len(agent.asked) == 0:
            try:
                await asks(context.session)
            except Exception:
                if not swallowed:
                    raise
        return Evaluation(JUDGE, correct=len(agent.asked) > 0, score=1.0)

    unjudged(tmp_path, tasks=only)
    agent = Agent()
    ran = run(tmp_path, asking, agent, tasks=only)
    assert agent.asked == [("a", 1)]
    (retried,) = ran.of(ev.AttemptRetried)
    assert (retried.scope, retried.stage, retried.retry) == ("attempt", "evaluate", 1)
    assert retried.error.code == "environment_gone"
    assert retried.discarded_result["final_answer"] == "right"
    assert ran.state.tasks["a"].correct is True
    assert ran.state.tasks["a"].attempts[1].retries
    assert "cannot be judged by what was recorded" in log_of(ran)
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        state = fold(view.events())
        (file,) = retry_files(state.tasks["a"], "a", state, view)
    text = file.data if isinstance(file.data, bytes) else b"".join(file.data)
    assert json.loads(text)["acl"]["copied"] is False


def test_an_attempt_that_was_killed_before_its_files_were_kept_runs_again(tmp_path: Path) -> None:
    killing = Killing(tmp_path)

    class KilledThere(Keeping):
        async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
            killing()
            return ["out.txt"]

    run(tmp_path, run_id="first", source="", kind=KilledThere, task_concurrency=1)
    agent = Agent()
    ran = run(tmp_path, by_file, agent, source="first-killed", kind=Keeping, keeps=("out.txt",))
    assert len(agent.asked) == 2
    assert ran.of(ev.AttemptReused) == []
    assert "task a, attempt 1 cannot be evaluated: its files were not kept yet" in log_of(ran)


def test_where_no_files_are_kept_a_result_alone_is_enough(tmp_path: Path) -> None:
    killing = Killing(tmp_path)

    def taking_along(name: str, *_: Any) -> None:
        killing()

    class Stopping(Judging):
        async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
            killing()
            return []

    run(tmp_path, run_id="first", source="", kind=Stopping, task_concurrency=1)
    agent = Agent()
    ran = run(tmp_path, agent=agent, source="first-killed")
    assert [event.task for event in ran.of(ev.AttemptReused)] == ["a"]
    assert agent.asked == [("b", 1)]


# -- chains -------------------------------------------------------------------------------------


def test_an_attempt_that_is_killed_again_before_its_verdict_keeps_its_whole_lineage(
    tmp_path: Path,
) -> None:
    first = unjudged(tmp_path, tasks=[task("a")], kind=Keeping, keeps=("out.txt",))
    second = run(
        tmp_path, Killing(tmp_path, "second"), tasks=[task("a")], kind=Keeping, keeps=("out.txt",)
    )
    shutil.rmtree(tmp_path / "listed" / "none" / "first")
    agent = Agent()
    third = run(
        tmp_path,
        by_file,
        agent,
        run_id="third",
        source="second-killed",
        tasks=[task("a")],
        kind=Keeping,
        keeps=("out.txt",),
    )
    assert agent.asked == []
    (reused,) = third.of(ev.AttemptReused)
    assert reused.chained
    assert reused.source_ledger_id == second.state.ledger_id
    told = reused.lineage[second.state.ledger_id]
    assert told["source_ledger_id"] == first.state.ledger_id
    assert third.of(ev.ArtifactsCollected)[0].contents == {"out.txt": "left by a"}


def test_a_task_with_such_an_attempt_is_reused_whole_by_a_later_run(tmp_path: Path) -> None:
    first = unjudged(tmp_path)
    run(tmp_path)
    agent = Agent()
    third = run(tmp_path, agent=agent, run_id="third", source="second")
    assert agent.asked == []
    assert third.state.counts().reused == 2
    assert ("attempt.reused", True) in types_of(third, "a")
    origin = third.state.tasks["a"].attempts[1].origin
    assert origin is not None
    assert origin.ledger_id == first.state.ledger_id


def test_a_run_that_is_stopped_first_leaves_the_attempts_for_the_next(tmp_path: Path) -> None:
    unjudged(tmp_path)
    stop = StopSignal()

    class Stopped(Judging):
        def select_tasks(self, tasks: list[Task], params: Any) -> list[Task]:
            stop.request("SIGTERM")
            return tasks

    second = run(tmp_path, stop=stop, kind=Stopped)
    statuses = {t.attempts[1].status for t in second.state.tasks.values()}
    assert statuses == {"cancelled"}
    agent = Agent()
    third = run(tmp_path, agent=agent, run_id="third", source="second")
    assert agent.asked == []
    assert third.state.counts().correct == 2


def test_a_run_that_is_stopped_between_two_tasks_leaves_the_other_for_the_next(
    tmp_path: Path,
) -> None:
    unjudged(tmp_path)
    stop = StopSignal()

    def stopping(t: Task, *_: Any) -> Any:
        stop.request("SIGTERM")

    second = run(tmp_path, stopping, stop=stop, task_concurrency=1)
    assert second.outcome.status == "cancelled"
    assert second.state.tasks["b"].attempts[1].status == "cancelled"
    third = run(tmp_path, run_id="third", source="second")
    assert [event.task for event in third.of(ev.AttemptReused)][-1:] == ["b"]
    assert third.state.counts().correct == 2


class Stopping(BaseAnalyzer):
    """Asks the run to stop and then looks for ever."""

    id = "stopping"
    base_analyzer = "stopping"

    def __init__(self, stop: StopSignal) -> None:
        self.stop = stop

    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
        self.stop.request("SIGTERM")
        await asyncio.sleep(30)
        return Analysis()


def test_a_verdict_of_an_attempt_that_was_stopped_behind_it_is_given_again(tmp_path: Path) -> None:
    stop = StopSignal()
    only = [task("a")]
    first = run(tmp_path, run_id="first", source="", tasks=only, stop=stop, also=[Stopping(stop)])
    before = first.state.tasks["a"].attempts[1]
    assert (before.status, before.correct) == ("cancelled", True)
    agent = Agent()
    ran = run(tmp_path, agent=agent, tasks=only)
    assert agent.asked == []
    assert len(ran.of(ev.EvaluationFinished)) == 1


def test_a_plan_that_cannot_be_made_is_told_by_a_try_of_its_own(tmp_path: Path) -> None:
    class Unplanned(Judging):
        def build_plan(self, task: Task, plan: Any) -> Any:
            raise RuntimeError("no plan")

    unjudged(tmp_path, tasks=[task("a")])
    ran = run(tmp_path, kind=Unplanned, tasks=[task("a")])
    assert ran.outcome.status == "failed"
    assert ran.of(ev.AttemptRetried)[0].error.phase == "plan"
    assert ran.state.tasks["a"].attempts[1].status == "run_error"


def test_nothing_is_evaluated_that_another_run_has_judged_wrong(tmp_path: Path) -> None:
    run(tmp_path, run_id="first", source="", agent=Agent(lambda *_: "wrong"))
    agent = Agent()
    ran = run(tmp_path, agent=agent)
    assert agent.asked == []
    assert ran.of(ev.AttemptReused) == []
    assert ran.state.counts().incorrect == 2
