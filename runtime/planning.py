"""The plan of one try, what is recorded of it, and its time limits."""

import hashlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from ledger import canonical
from ledger import events as ev
from runtime.contracts import (
    SELECTING,
    BaseHarness,
    BaseRecipe,
    Benchmark,
    ExecutionPlan,
    StageError,
    Task,
)
from runtime.models import ExecutionSpec, RunRequest
from runtime.redact import Redactor


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds that the phases of a try may take, multiplied; None is no limit."""

    run: float | None
    evaluation: float | None
    artifacts: float | None

    def recorded(self) -> dict[str, int | float]:
        """The limits that there are."""
        named = {"run": self.run, "evaluation": self.evaluation, "artifacts": self.artifacts}
        return {name: seconds for name, seconds in named.items() if seconds is not None}


NO_LIMITS: Final = Timeouts(None, None, None)


def build_plan(
    request: RunRequest,
    benchmark: Benchmark,
    harness: BaseHarness | None,
    recipes: Sequence[BaseRecipe],
    task: Task,
) -> ExecutionPlan:
    """Ask the benchmark, then the harness, then each recipe that matches, in order.

    They are given a plan with the parameters of the request, which are recorded with it.
    Raises StageError where one of them gives no plan, or a recipe another kind of environment.
    """
    execution = request.execution
    plan = ExecutionPlan(
        # Copies: what one try changes in them is no concern of the next.
        environment=request.environment.model_copy(deep=True),
        harness=deepcopy(request.harness.params),
        # Which other tasks were selected says nothing of this one.
        benchmark=deepcopy(
            {
                name: value
                for name, value in request.benchmark.params.items()
                if name not in SELECTING
            }
        ),
        run_timeout_seconds=execution.run_timeout_seconds,
        evaluation_timeout_seconds=execution.evaluation_timeout_seconds,
        artifact_collect_timeout_seconds=execution.artifact_collect_timeout_seconds,
    )
    plan = _plan(benchmark.build_plan(task, plan), f"benchmark {benchmark.id}", request)
    if harness is not None:
        plan = _plan(harness.build_plan(task, plan), f"harness {harness.id}", request)
    applied = []
    for recipe in recipes:
        if recipe.matches(request, task):
            plan = _plan(recipe.apply(plan, task), f"recipe {recipe.id}", request)
            applied.append(recipe.id)
    plan.applied_recipes = applied
    return plan


def _plan(given: Any, who: str, request: RunRequest) -> ExecutionPlan:
    if not isinstance(given, ExecutionPlan):
        what = type(given).__name__
        raise StageError("bad_plan", f"{who} gave {what} instead of an ExecutionPlan", fatal=True)
    if given.environment.id != request.environment.id:
        # The session would be opened by the environment of the request all the same.
        why = f"{who} changed the environment {request.environment.id} to {given.environment.id}"
        raise StageError("bad_plan", why, fatal=True)
    return given


def timeouts(plan: ExecutionPlan, execution: ExecutionSpec) -> Timeouts:
    """The limits of a plan; the multiplier of a phase replaces the general one."""
    general = execution.timeout_multiplier
    return Timeouts(
        run=_times(plan.run_timeout_seconds, execution.run_timeout_multiplier or general),
        evaluation=_times(
            plan.evaluation_timeout_seconds, execution.evaluation_timeout_multiplier or general
        ),
        artifacts=_times(plan.artifact_collect_timeout_seconds, general),
    )


def plan_event(
    task: str, attempt: int, plan: ExecutionPlan, limits: Timeouts, redactor: Redactor
) -> ev.PlanResolved:
    """The allowlisted view of `plan` without secrets, with the SHA-256 of its canonical form.

    Raises ValueRefused where a plug-in put something into the plan that no ledger holds.
    """
    view, count = redactor.redact({"plan": plan.view()})
    recorded = view["plan"]
    return ev.PlanResolved(
        task=task,
        attempt=attempt,
        plan=recorded,
        plan_hash=hashlib.sha256(canonical.encode(recorded)).hexdigest(),
        applied_recipes=tuple(plan.applied_recipes),
        timeouts=limits.recorded(),
        redactions=count or None,
    )


def _times(seconds: float | None, factor: float) -> float | None:
    return None if seconds is None else seconds * factor
