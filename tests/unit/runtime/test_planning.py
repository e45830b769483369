from typing import ClassVar

import pytest

from ledger.errors import ValueRefused
from runtime.contracts import BaseRecipe, ExecutionPlan, StageError, Task
from runtime.models import EnvironmentSpec, RunRequest
from runtime.planning import build_plan, plan_event, timeouts
from runtime.redact import Redactor
from tests.fake_plugins import Listed, Scripted, request, task

REDACTOR = Redactor({})


class Noting(Listed):
    def build_plan(self, task: Task, plan: ExecutionPlan) -> ExecutionPlan:
        plan.benchmark["order"] = ["benchmark"]
        plan.run_timeout_seconds = 7.0
        return plan


class NotingHarness(Scripted):
    def build_plan(self, task: Task, plan: ExecutionPlan) -> ExecutionPlan:
        plan.benchmark["order"].append("harness")
        return plan


class Recipe(BaseRecipe):
    id: ClassVar[str] = "first"

    def matches(self, request: RunRequest, task: Task) -> bool:
        return task.category == "x"

    def apply(self, plan: ExecutionPlan, task: Task) -> ExecutionPlan:
        plan.benchmark["order"].append(self.id)
        return plan


class Second(Recipe):
    id: ClassVar[str] = "second"


def planned(category: str = "x", **execution: object) -> ExecutionPlan:
    asked = request(**execution)
    recipes = [Recipe(), Second()]
    found = task("t", category=category)
    return build_plan(asked, Noting(), NotingHarness(lambda t, c: None), recipes, found)


def test_benchmark_harness_and_recipes_are_asked_in_this_order() -> None:
    plan = planned()
    assert plan.benchmark["order"] == ["benchmark", "harness", "first", "second"]
    assert plan.applied_recipes == ["first", "second"]


def test_a_recipe_that_does_not_match_changes_nothing() -> None:
    plan = planned("y")
    assert plan.benchmark["order"] == ["benchmark", "harness"]
    assert plan.applied_recipes == []


def test_the_plans_own_limits_are_multiplied() -> None:
    execution = request(timeout_multiplier=2.0, evaluation_timeout_seconds=5.0).execution
    found = timeouts(planned(timeout_multiplier=2.0, evaluation_timeout_seconds=5.0), execution)
    assert (found.run, found.evaluation, found.artifacts) == (14.0, 10.0, None)
    assert found.recorded() == {"run": 14.0, "evaluation": 10.0}


def test_equal_plans_have_equal_hashes_and_secrets_are_in_none() -> None:
    plan = planned()
    plan.harness = {"api_key": "one", "budget": 3}
    limits = timeouts(plan, request().execution)
    first = plan_event("t", 1, plan, limits, REDACTOR)
    plan.harness = {"budget": 3, "api_key": "another"}
    second = plan_event("t", 2, plan, limits, REDACTOR)
    assert first.plan["harness"] == {"api_key": "********", "budget": 3}
    assert first.plan_hash == second.plan_hash
    plan.harness = {"budget": 4}
    assert plan_event("t", 1, plan, limits, REDACTOR).plan_hash != first.plan_hash


def test_what_no_ledger_holds_is_no_plan() -> None:
    plan = planned()
    plan.harness = {"tools": {"a"}}
    with pytest.raises(ValueRefused, match=r"\$\.harness\.tools"):
        plan_event("t", 1, plan, timeouts(plan, request().execution), REDACTOR)


class Replacing(Recipe):
    """Gives a plan of its own, or something else."""

    def __init__(self, given: object) -> None:
        self.given = given

    def apply(self, plan: ExecutionPlan, task: Task) -> ExecutionPlan:
        return self.given  # type: ignore[return-value]


def with_recipes(*recipes: BaseRecipe, category: str = "x") -> ExecutionPlan:
    harness = NotingHarness(lambda t, c: None)
    return build_plan(request(), Noting(), harness, recipes, task("t", category=category))


def test_recipes_that_were_applied_are_told_also_of_a_plan_that_a_later_one_made() -> None:
    fresh = ExecutionPlan(environment=request().environment, run_timeout_seconds=3.0)
    plan = with_recipes(Second(), Replacing(fresh))
    assert plan.run_timeout_seconds == 3.0
    assert plan.applied_recipes == ["second", "first"]


def test_what_is_no_plan_is_refused_with_who_gave_it() -> None:
    with pytest.raises(StageError, match="recipe first gave NoneType") as refused:
        with_recipes(Replacing(None))
    assert (refused.value.code, refused.value.fatal) == ("bad_plan", True)


def test_a_recipe_does_not_change_which_environment_is_used() -> None:
    other = ExecutionPlan(environment=EnvironmentSpec(id="elsewhere"))
    with pytest.raises(StageError, match="recipe first changed the environment rooms to elsewhere"):
        with_recipes(Replacing(other))


def test_the_environment_of_a_plan_is_a_copy_of_the_requests() -> None:
    asked = request(environment={"id": "rooms", "resources": {"cpus": 1}})
    plan = build_plan(asked, Noting(), NotingHarness(lambda t, c: None), (), task("t"))
    plan.environment.resources["cpus"] = 8
    assert asked.environment.resources == {"cpus": 1}


def test_a_plan_tells_the_parameters_that_an_attempt_was_made_with() -> None:
    asked = request(
        harness={"id": "scripted", "params": {"budget": 7, "api_key": "x1"}},
        benchmark={"id": "listed", "params": {"level": {"hard": True}, "limit": 3}},
    )
    plan = build_plan(asked, Listed(), Scripted(lambda t, c: None), [], task("t"))
    recorded = plan_event("t", 1, plan, timeouts(plan, asked.execution), REDACTOR).plan
    assert recorded["harness"] == {"budget": 7, "api_key": "********"}
    assert recorded["benchmark"] == {"level": {"hard": True}}


def test_a_plug_in_that_changes_its_plan_does_not_change_the_request() -> None:
    asked = request(benchmark={"id": "listed", "params": {"order": [0]}})

    class Adding(Listed):
        def build_plan(self, task: Task, plan: ExecutionPlan) -> ExecutionPlan:
            plan.benchmark["order"].append(1)
            return plan

    for _ in range(2):
        plan = build_plan(asked, Adding(), None, [], task("t"))
        assert plan.benchmark["order"] == [0, 1]
    assert asked.benchmark.params == {"order": [0]}


def test_attempts_of_another_budget_have_another_plan_and_of_other_tasks_the_same() -> None:
    def hash_of(budget: int, limit: int) -> str:
        asked = request(
            harness={"id": "scripted", "params": {"budget": budget}},
            benchmark={"id": "listed", "params": {"limit": limit}},
        )
        plan = build_plan(asked, Listed(), Scripted(lambda t, c: None), [], task("t"))
        return plan_event("t", 1, plan, timeouts(plan, asked.execution), REDACTOR).plan_hash

    assert hash_of(1, 5) == hash_of(1, 6)
    assert hash_of(1, 5) != hash_of(2, 5)
