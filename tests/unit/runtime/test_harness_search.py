"""The search harness: what it answers, what it records, and the failures it injects."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import UsageError
from runtime.benchmarks.arith.benchmark import ArithBenchmark
from runtime.benchmarks.repair.benchmark import RepairBenchmark
from runtime.contracts import AttemptContext, ExecutionPlan, Session, StageError, Task
from runtime.environments.local import LocalSession
from runtime.harnesses.search import SearchHarness
from runtime.models import BenchmarkSpec, EnvironmentSpec, RunRequest
from runtime.results import RunResult

HARNESS = SearchHarness()
BENCHMARK = RepairBenchmark()
TASKS = {task.task_id: task for task in BENCHMARK.load_tasks({})}


class NoCalls:
    """This harness calls no model."""

    async def started(self, call: Any) -> None:
        raise AssertionError

    async def finished(self, call: Any) -> None:
        raise AssertionError


class Tools:
    """Keeps what is told of tools."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, name: str, **fields: Any) -> None:
        self.told.append((name, fields))


def context(
    attempt: int = 1,
    retry: int = 0,
    session: Session | None = None,
    tools: Tools | None = None,
) -> AttemptContext:
    return AttemptContext(
        request=RunRequest(benchmark=BenchmarkSpec(id="acl-repair")),
        attempt=attempt,
        retry=retry,
        plan=ExecutionPlan(EnvironmentSpec()),
        session=session,
        calls=NoCalls(),
        tool=tools or Tools(),
        api_key=None,
    )


def work(task: Task, at: AttemptContext, **params: Any) -> RunResult:
    config = HARNESS.build_config(params)
    return asyncio.run(HARNESS.run_task(task, config, None, at))


def test_an_easy_task_is_repaired() -> None:
    task = TASKS["dates-is_leap_year"]
    result = work(task, context(), budget=200)
    verdict = asyncio.run(BENCHMARK.evaluate(task, result, context()))
    assert verdict.correct
    assert (result.status, result.error) == ("completed", None)


def test_the_trajectory_tells_what_was_tried_and_ends_with_the_answer() -> None:
    result = work(TASKS["dates-is_leap_year"], context(), budget=200)
    assert [step["step"] for step in result.trajectory] == [1, 2]
    assert result.trajectory[0]["action"] == "try_changes"
    assert result.trajectory[-1] == {
        "step": 2,
        "action": "submit",
        "tried": result.metrics["candidates"],
        "passed": 3,
        "examples": 3,
    }


def test_each_run_of_the_examples_is_told_as_the_use_of_a_tool() -> None:
    tools = Tools()
    result = work(TASKS["strings-is_palindrome"], context(tools=tools), budget=12)
    assert {name for name, _ in tools.told} == {"run_examples"}
    passed = [count for _, fields in tools.told for count in fields["output"]["passed"]]
    assert len(passed) == sum(fields["arguments"]["candidates"] for _, fields in tools.told)
    assert len(passed) == 1 + result.metrics["candidates"]  # the source as it was, and each change
    assert max(passed) == result.metrics["examples_passed"]


def test_a_larger_budget_repairs_more_and_none_repairs_nothing() -> None:
    async def repaired(budget: int) -> int:
        config = HARNESS.build_config({"budget": budget})

        async def one(task: Task) -> bool | None:
            result = await HARNESS.run_task(task, config, None, context())
            return (await BENCHMARK.evaluate(task, result, context())).correct

        return sum(map(bool, await asyncio.gather(*map(one, list(TASKS.values())[:15]))))

    none, small, large = (asyncio.run(repaired(budget)) for budget in (0, 5, 60))
    assert none == 0
    assert none < small < large


def test_the_same_attempt_gives_the_same_answer_and_another_one_may_differ() -> None:
    task = TASKS["dates-is_leap_year"]
    first = work(task, context(1), budget=200)
    assert work(task, context(1), budget=200) == first
    others = [work(task, context(attempt), budget=200) for attempt in (2, 3, 4)]
    assert len({result.metrics["candidates"] for result in (first, *others)}) > 1


def test_a_retry_searches_as_the_try_before_it_would_have() -> None:
    task = TASKS["dates-is_leap_year"]
    assert work(task, context(1, 1), budget=9) == work(task, context(1, 0), budget=9)


def test_the_answer_is_left_in_the_environment_as_an_artifact(tmp_path: Path) -> None:
    task = TASKS["dates-is_leap_year"]
    at = context(session=LocalSession(tmp_path, {}))

    async def attempt() -> tuple[RunResult, list[str]]:
        await BENCHMARK.prepare_task(task, at)
        assert (tmp_path / "is_leap_year.py").read_text() == task.input["source"]
        config = HARNESS.build_config({"budget": 200})
        result = await HARNESS.run_task(task, config, None, at)
        return result, await BENCHMARK.collect_artifacts(task, at)

    result, artifacts = asyncio.run(attempt())
    assert artifacts == ["is_leap_year.py"]
    assert (tmp_path / "is_leap_year.py").read_text() == result.final_answer


def fails(task: Task, attempt: int, retry: int, share: float) -> bool:
    try:
        work(task, context(attempt, retry), budget=0, inject_errors=share)
    except StageError:
        return True
    return False


def test_injected_errors_hit_the_asked_share_of_tries_and_always_the_same() -> None:
    tries = [(task, attempt, 0) for task in TASKS.values() for attempt in (1, 2, 3, 4)]
    hit = [fails(*at, share=0.2) for at in tries]
    assert 24 < sum(hit) < 72  # 48 of 240, give or take four standard deviations
    assert [fails(*at, share=0.2) for at in tries] == hit


def test_an_injected_error_can_pass_on_a_retry() -> None:
    stuck = [task for task in TASKS.values() if fails(task, 1, 0, 0.2)]
    assert stuck
    assert any(not fails(task, 1, 1, 0.2) for task in stuck)


def test_none_fail_without_injection_and_all_with_full_injection() -> None:
    task = TASKS["dates-is_leap_year"]
    assert not fails(task, 1, 0, 0.0)
    with pytest.raises(StageError, match="inject_errors") as caught:
        work(task, context(), inject_errors=1.0)
    assert (caught.value.code, caught.value.fatal) == ("sandbox_failed", False)


@pytest.mark.parametrize(
    "params", [{"budget": -1}, {"budget": "x"}, {"inject_errors": 1.5}, {"buget": 5}]
)
def test_a_wrong_parameter_is_named(params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(params))):
        HARNESS.build_config(params)


def test_only_repair_tasks_are_supported() -> None:
    assert HARNESS.supports(BENCHMARK)
    assert not HARNESS.supports(ArithBenchmark())
