"""An agent without a model: repairs a function by trying small changes on its examples."""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from pydantic import Field, ValidationError

from ledger.errors import SandboxFailed, UsageError
from runtime.benchmarks.repair.benchmark import RepairBenchmark
from runtime.benchmarks.repair.search import Found, Step, search
from runtime.benchmarks.repair.tasks import Case
from runtime.contracts import AttemptContext, BaseHarness, Benchmark, StageError, Task
from runtime.models import Model
from runtime.results import RunResult
from runtime.sandbox import Limits, try_candidates

# The functions need well under a millisecond; what needs more than this does not end.
_TRIAL = Limits(cpu_seconds=0.02)


class SearchConfig(Model):
    """`budget`: candidates to try a task.  `inject_errors`: share of tries that fail on purpose.

    The injected failures are a test of retries; the same task, attempt and retry always fail.
    """

    budget: int = Field(default=50, ge=0)
    inject_errors: float = Field(default=0.0, ge=0.0, le=1.0)


class SearchHarness(BaseHarness):
    """Mutation search over the broken source; sees the docstring examples and nothing else."""

    id: ClassVar[str] = "search"

    def supports(self, benchmark: Benchmark) -> bool:
        """True for acl-repair: it needs a source and examples."""
        return isinstance(benchmark, RepairBenchmark)

    def build_config(self, params: Mapping[str, Any]) -> SearchConfig:
        """Parse the parameters; UsageError names the wrong one."""
        try:
            return SearchConfig.model_validate(dict(params))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            name = ".".join(map(str, fault["loc"]))
            raise UsageError(f"harness parameter {name}: {fault['msg']}") from None

    async def run_task(
        self, task: Task, config: SearchConfig, session: Any, context: AttemptContext
    ) -> RunResult:
        """Search, leave the result in the environment as `<entry>.py`, and answer with it."""
        coordinates = f"{task.task_id}:{context.attempt}"
        _inject(config.inject_errors, f"{coordinates}:{context.retry}")
        checks = [Case.model_validate(case).check() for case in task.input["examples"]]

        async def score(sources: Sequence[str]) -> list[int]:
            rows = await try_candidates(sources, task.input["entry"], checks, _TRIAL)
            passed = [sum(row) for row in rows]
            await context.tool(
                "run_examples",
                arguments={"candidates": len(sources)},
                output={"passed": passed, "examples": len(checks)},
            )
            return passed

        try:
            found = await search(
                task.input["source"],
                examples=len(checks),
                budget=config.budget,
                seed=coordinates,
                score=score,
            )
        except SandboxFailed as error:
            raise StageError("sandbox_failed", str(error)) from error
        if context.session is not None:
            await context.session.write_text(f"{task.input['entry']}.py", found.source)
        return _result(task, found, len(checks))


def _inject(share: float, seed: str) -> None:
    if Random(f"inject:{seed}").random() < share:  # noqa: S311 (reproducible on purpose)
        raise StageError("sandbox_failed", "injected by the harness parameter inject_errors")


def _result(task: Task, found: Found, examples: int) -> RunResult:
    steps = [_step(step, examples) for step in found.steps]
    end = {"action": "submit", "tried": found.tried, "passed": found.passed, "examples": examples}
    return RunResult(
        task.task_id,
        category=task.category,
        final_answer=found.source,
        trajectory=[{"step": i, **step} for i, step in enumerate([*steps, end], start=1)],
        metrics={"candidates": found.tried, "examples_passed": found.passed},
    )


def _step(step: Step, examples: int) -> dict[str, Any]:
    return {
        "action": "try_changes",
        "tried": step.tried,
        "changes": list(step.changes),
        "passed": step.passed,
        "examples": examples,
    }
