import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.errors import UsageError
from ledger.state import RunState
from runtime import orchestrator as module
from runtime.contracts import AttemptContext, StageError, Task
from runtime.dispatch import Dispatcher
from runtime.interrupt import StopSignal
from runtime.results import MetricResult
from tests.ledger_checks import check_ledger
from tests.suites import ByParams, named, orchestrate, orchestrator, ran, right, statuses, suite


def name_of(context: AttemptContext) -> str:
    return context.request.metadata.request_name or ""


# -- what comes back ----------------------------------------------------------------------------


def test_each_request_has_its_own_ledger_that_names_the_orchestration(tmp_path: Path) -> None:
    result = orchestrate(tmp_path, right, named("one", "a"), named("two", "b"))
    assert (result.status, result.name) == ("completed", "s")
    for name, outcome in result.requests.items():
        created = ran(result, name).of(ev.RunCreated)[0]
        assert created.orchestration_id == result.orchestration_id
        assert created.request_name == name
        assert outcome.path is not None
        check_ledger(outcome.path)
    assert result.started_at < result.finished_at


def test_outcomes_stand_in_the_order_of_the_suite(tmp_path: Path) -> None:
    bad = named("first", "a", harness={"id": "nowhere"})
    ended: list[str] = []
    made = orchestrator(tmp_path, right, suite(named("zero", "z"), bad, named("last", "b")))
    result = asyncio.run(made.run(on_end=lambda outcome: ended.append(outcome.name)))
    assert list(result.requests) == ["zero", "first", "last"]
    assert ended == ["first", "zero", "last"]


def test_two_orchestrations_have_two_ids(tmp_path: Path) -> None:
    ids = {orchestrate(tmp_path, right, named("one", "a")).orchestration_id for _ in range(2)}
    assert len(ids) == 2


def test_progress_is_told_by_the_name_of_the_request(tmp_path: Path) -> None:
    told: dict[str, Any] = {}
    made = orchestrator(tmp_path, right, suite(named("one", "a"), named("two", "b", "c")))
    asyncio.run(made.run(on_progress=lambda name, progress: told.update({name: progress})))
    assert {name: progress.done for name, progress in told.items()} == {"one": 1, "two": 2}


def test_who_watches_does_not_disturb(tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    made = orchestrator(tmp_path, right, suite(named("one", "a"), named("two", "b")))
    assert asyncio.run(made.run(on_end=fail)).status == "completed"


# -- one limit, in order ------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3])
def test_all_requests_together_keep_to_one_limit(tmp_path: Path, k: int) -> None:
    together = asyncio.Barrier(3)
    now, most = 0, 0

    async def act(t: Task, context: AttemptContext) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.wait_for(together.wait(), 30)
        await asyncio.sleep(0.002)
        now -= 1
        return "right"

    requests = [named(name, f"{name}1", f"{name}2", k=k) for name in "abc"]
    result = orchestrate(tmp_path, act, *requests, task_concurrency=3)
    assert result.status == "completed"
    assert all(not state.has_error for n in "abc" for state in ran(result, n).state.tasks.values())
    assert most == 3


def test_a_request_may_keep_to_less(tmp_path: Path) -> None:
    together = asyncio.Barrier(3)
    now, most = 0, 0

    async def act(t: Task, context: AttemptContext) -> str:
        nonlocal now, most
        if name_of(context) == "b":
            await asyncio.wait_for(together.wait(), 30)
            return "right"
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return "right"

    requests = [named("a", "1", "2", "3", task_concurrency=1), named("b", "1", "2", "3")]
    result = orchestrate(tmp_path, act, *requests, task_concurrency=4)
    assert ran(result, "b").state.counts().correct == 3
    assert most == 1
    recorded = [ran(result, name).of(ev.RunCreated)[0].request for name in "ab"]
    assert [one["execution"]["task_concurrency"] for one in recorded] == [1, 4]


def test_a_place_that_becomes_free_goes_to_the_earliest_request_that_waits(tmp_path: Path) -> None:
    begun: list[str] = []

    async def act(t: Task, context: AttemptContext) -> str:
        begun.append(t.task_id)
        await asyncio.sleep(0.002)
        return "right"

    orchestrate(tmp_path, act, named("a", "a1", "a2", "a3"), named("b", "b1"), task_concurrency=1)
    assert begun == ["a1", "a2", "a3", "b1"]


def test_the_next_request_is_prepared_when_too_few_tasks_wait(tmp_path: Path) -> None:
    ended: list[str] = []
    ended_at_load: dict[str, int] = {}
    second_is_loaded = threading.Event()

    def loading(params: Mapping[str, Any]) -> None:
        first = params["tasks"][0]
        ended_at_load[first] = len(ended)
        if first == "b1":
            second_is_loaded.set()

    async def act(t: Task, context: AttemptContext) -> str:
        if t.task_id == "a4":
            # The last of the first request ends only when the second is being prepared.
            assert await asyncio.to_thread(second_is_loaded.wait, 30)
        ended.append(t.task_id)
        return "right"

    requests = [named("a", "a1", "a2", "a3", "a4"), named("b", "b1")]
    result = orchestrate(tmp_path, act, *requests, task_concurrency=2, benchmark=ByParams(loading))
    assert result.status == "completed"
    assert ran(result, "a").state.counts().correct == 4
    # Of four tasks two have the two places and two wait, which is not fewer than two.
    assert ended_at_load["b1"] >= 1


def test_requests_are_finalized_in_order(tmp_path: Path) -> None:
    second_is_done = asyncio.Event()
    finalized: list[str] = []

    class Noting(ByParams):
        def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
            finalized.append(next(iter(state.tasks)))
            return metrics

    async def act(t: Task, context: AttemptContext) -> str:
        if t.task_id == "a":
            await asyncio.wait_for(second_is_done.wait(), 30)
        second_is_done.set()
        return "right"

    orchestrate(tmp_path, act, named("1", "a"), named("2", "b"), benchmark=Noting())
    assert finalized == ["a", "b"]


def test_each_run_has_its_own_log(tmp_path: Path) -> None:
    def fail(t: Task, context: AttemptContext) -> None:
        raise RuntimeError(f"no {t.task_id}")

    result = orchestrate(
        tmp_path, fail, named("1", "a1", "a2"), named("2", "b1"), task_concurrency=1
    )
    logs = [Path(result.requests[name].paths["log_file"]).read_text() for name in "12"]
    assert ["no a2" in log for log in logs] == [True, False]
    assert ["no b1" in log for log in logs] == [False, True]


# -- reuse --------------------------------------------------------------------------------------


def test_sources_are_frozen_before_any_output(tmp_path: Path) -> None:
    """The run that the second names is there when its turn comes, but was not in the beginning."""
    first = named("first", "a", output={"run_id": "new"})
    second = named("second", "a", runtime={"reuse_run_id": "new"})
    result = orchestrate(tmp_path, right, first, second)
    assert statuses(result) == {"first": "completed", "second": "failed"}
    assert result.requests["second"].error.code == "run_not_found"
    assert result.requests["second"].run_id is None


def test_each_request_reuses_its_own_source(tmp_path: Path) -> None:
    requests = [named(name, f"{name}1", output={"run_id": name}) for name in "ab"]
    orchestrate(tmp_path, right, *requests)

    def never(t: Task, context: AttemptContext) -> None:
        raise AssertionError("it is reused")

    again = [named(name, f"{name}1", runtime={"reuse_run_id": name}) for name in "ab"]
    result = orchestrate(tmp_path, never, *again)
    assert result.status == "completed"
    for name in "ab":
        (reused,) = ran(result, name).of(ev.TaskReused)
        assert (reused.task, reused.source_run_id) == (f"{name}1", name)


# -- refused as a whole -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "requests",
    [
        [named("a", "1"), named("a", "2")],
        [named("a", "1", output={"run_id": "x"}), named("b", "1", output={"run_id": "x"})],
        [named("a", "1", runtime={"reuse": True}), named("b", "1")],
    ],
    ids=["names", "outputs", "reuse"],
)
def test_contradictions_refuse_all_before_any_output(
    tmp_path: Path, requests: list[dict[str, Any]]
) -> None:
    with pytest.raises(UsageError):
        orchestrate(tmp_path, right, named("fine", "1", model={"id": "m"}), *requests)
    assert list(tmp_path.iterdir()) == []


# -- one fails, the others do not ---------------------------------------------------------------


class Faulty(ByParams):
    """Fails where a task is called for it."""

    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        if "load" in params["tasks"]:
            raise OSError("no such data")
        return super().load_tasks(params)

    def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
        if "aggregate" in state.tasks:
            raise ZeroDivisionError
        return metrics


def fatal_for_one(t: Task, context: AttemptContext) -> str:
    if t.task_id == "fatal":
        raise StageError("lost", "it is gone", fatal=True)
    return "right"


FAILURES = {
    "preflight": named("bad", "x", harness={"id": "nowhere"}),
    "source": named("bad", "x", runtime={"reuse_run_id": "nowhere"}),
    "place": named("bad", "x", output={"run_id": "taken"}),
    "load": named("bad", "load"),
    "task": named("bad", "fatal", "x"),
    "finalization": named("bad", "aggregate"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_fails_its_request_only(tmp_path: Path, failure: str) -> None:
    (tmp_path / "listed" / "none" / "taken").mkdir(parents=True)
    result = orchestrate(
        tmp_path,
        fatal_for_one,
        named("before", "a"),
        FAILURES[failure],
        named("after", "b"),
        benchmark=Faulty(),
        task_concurrency=1,
    )
    assert statuses(result) == {"before": "completed", "bad": "failed", "after": "completed"}
    assert result.status == "partial_failure"
    assert result.requests["bad"].error is not None
    assert result.requests["bad"].exit_code != 0


def test_it_is_a_partial_failure_also_if_all_fail(tmp_path: Path) -> None:
    result = orchestrate(
        tmp_path, right, named("a", "load"), named("b", "load"), benchmark=Faulty()
    )
    assert result.status == "partial_failure"


def test_an_orchestration_that_breaks_is_failed_and_what_runs_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    async def room(self: Dispatcher) -> None:
        asked.append(1)
        if len(asked) == 2:
            raise RuntimeError("a fault of ours")

    monkeypatch.setattr(module.Dispatcher, "room", room)
    result = orchestrate(tmp_path, right, named("a", "1"), named("b", "1"))
    assert result.status == "failed"
    assert statuses(result) == {"a": "completed", "b": "cancelled"}
    assert result.requests["b"].exit_code == 1


# -- stopped ------------------------------------------------------------------------------------


def stopping(stop: StopSignal, ask: str) -> Any:
    """The first request's task is right; the second's asks for a stop, and waits for it."""

    async def act(t: Task, context: AttemptContext) -> str:
        if name_of(context) == "first":
            return "right"
        if ask == "signal":
            stop.request("SIGINT")
        else:
            stop.expire()
        await asyncio.sleep(60)
        raise AssertionError("it was not stopped")

    return act


def test_a_signal_stops_what_runs_and_begins_nothing(tmp_path: Path) -> None:
    stop = StopSignal()
    requests = [named("first", "a"), named("second", "b", "c"), named("third", "d")]
    result = orchestrate(
        tmp_path, stopping(stop, "signal"), *requests, stop=stop, task_concurrency=1
    )
    assert result.status == "cancelled"
    assert statuses(result) == {
        "first": "completed",
        "second": "cancelled",
        "third": "cancelled",
    }
    second = ran(result, "second")
    assert [event.signal for event in second.of(ev.InterruptRequested)] == ["SIGINT"]
    assert [event.task for event in second.of(ev.TaskCancelled)] == ["b", "c"]
    assert second.of(ev.RunFinished)[0].exit_code == 130
    third = result.requests["third"]
    assert (third.run_id, third.path, third.exit_code) == (None, None, 130)
    assert third.error.code == "never_begun"


def test_the_end_of_its_time_stops_it_too_and_no_signal_is_told(tmp_path: Path) -> None:
    stop = StopSignal()
    requests = [named("first", "a"), named("second", "b", "c"), named("third", "d")]
    result = orchestrate(tmp_path, stopping(stop, "time"), *requests, stop=stop, task_concurrency=1)
    assert result.status == "timed_out"
    assert statuses(result) == {
        "first": "completed",
        "second": "timed_out",
        "third": "cancelled",
    }
    second = ran(result, "second")
    assert second.of(ev.InterruptRequested) == []
    assert [event.reason for event in second.of(ev.TaskCancelled)] == ["the time was over"] * 2
    (end,) = second.of(ev.RunFinished)
    assert (end.status, end.exit_code) == ("timed_out", 1)
    check_ledger(result.requests["second"].path)


def test_timeout_seconds_are_what_ends_the_time(tmp_path: Path) -> None:
    begun: list[float] = []

    async def act(t: Task, context: AttemptContext) -> str:
        begun.append(seconds)
        await asyncio.sleep(600)
        raise AssertionError("it was not stopped")

    for seconds in (0.2, 5.0, 60.0):
        result = orchestrate(tmp_path, act, named("a", "1"), timeout_seconds=seconds)
        if begun:  # else the time was over before there was anything to stop
            break
    assert begun == [seconds]
    assert statuses(result) == {"a": "timed_out"}


def test_time_that_ends_after_the_work_changes_nothing(tmp_path: Path) -> None:
    stop = StopSignal()

    class Late(ByParams):
        def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
            stop.expire()
            return metrics

    result = orchestrate(tmp_path, right, named("a", "1"), stop=stop, benchmark=Late())
    assert result.status == "completed"


def test_the_grace_is_that_of_the_suite(tmp_path: Path) -> None:
    stop = StopSignal()
    ended: list[str] = []
    outlasted: list[bool] = []

    async def stubborn(t: Task, context: AttemptContext) -> str:
        stop.request("SIGTERM")
        for _ in range(3000):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
            if ended:
                break
        outlasted.append(bool(ended))
        return "right"

    wanted = suite(named("a", "1"), cleanup_grace_seconds=0.05)
    made = orchestrator(tmp_path, stubborn, wanted, stop=stop)
    result = asyncio.run(made.run(on_end=lambda outcome: ended.append(outcome.name)))
    assert statuses(result) == {"a": "cancelled"}
    assert [end.status for end in ran(result, "a").of(ev.AttemptFinished)] == ["cancelled"]
    assert outlasted == [True]


@pytest.mark.parametrize("where", ["load_tasks", "aggregate_metrics"])
def test_a_plugin_that_never_returns_does_not_outlast_the_time(tmp_path: Path, where: str) -> None:
    never = threading.Event()
    stop = StopSignal()

    def hang() -> None:
        stop.expire()
        never.wait()

    class Hanging(ByParams):
        def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
            if where == "load_tasks":
                hang()
            return super().load_tasks(params)

        def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
            if where == "aggregate_metrics":
                hang()
            return metrics

    try:
        result = orchestrate(
            tmp_path,
            right,
            named("hangs", "hang"),
            benchmark=Hanging(),
            stop=stop,
            cleanup_grace_seconds=0.05,
        )
    finally:
        never.set()
    assert statuses(result) == {"hangs": "timed_out"}
    if where == "load_tasks":
        assert result.requests["hangs"].path is None
        assert list(tmp_path.iterdir()) == []
        return
    assert ran(result, "hangs").types[-2:] == ["run.finished", "ledger.sealed"]
    check_ledger(result.requests["hangs"].path)


def test_a_request_whose_tasks_cannot_be_had_fails_alone_and_reserves_nothing(
    tmp_path: Path,
) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz0123456789"

    class Refusing(ByParams):
        def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
            found = super().load_tasks(params)
            if [one.task_id for one in found] == ["bad"]:
                raise RuntimeError(f"no access with {secret}")
            return found

    result = orchestrate(
        tmp_path, right, named("bad", "bad"), named("good", "1"), benchmark=Refusing()
    )
    assert statuses(result) == {"bad": "failed", "good": "completed"}
    bad = result.requests["bad"]
    assert (bad.exit_code, bad.path) == (2, None)
    assert bad.error is not None
    assert "RuntimeError: no access with" in bad.error.message
    assert secret not in repr(bad)
    assert len(list(tmp_path.rglob("ledger.sqlite"))) == 1


def test_plugins_of_one_request_see_that_request(tmp_path: Path) -> None:
    seen: dict[str, str] = {}

    def act(t: Task, context: AttemptContext) -> str:
        seen[t.task_id] = context.request.model.id
        return "right"

    requests = [named("a", "1", model={"id": "m"}), named("b", "2", model={"id": "n"})]
    orchestrate(tmp_path, act, *requests)
    assert seen == {"1": "m", "2": "n"}
