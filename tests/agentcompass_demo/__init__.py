"""A benchmark for AgentCompass, loaded by `--recipe-dir`: it asks an endpoint and compares.

    agentcompass run acl_stub none MODEL --benchmark-params '{"tasks": 4, "pause": 0.1}'

Task `echo-N` is right when the endpoint echoes it, `wrong-N` never is, `flaky-N` fails at its
first try, `broken-N` cannot be evaluated, `lost-N` fails at every try.
"""

import asyncio
from typing import Any

import httpx
from agentcompass.errors import StageFailure
from agentcompass.runtime import (
    BENCHMARKS,
    PreparedTask,
    RunRequest,
    RunResult,
    TaskInput,
    TaskOutput,
    TaskSpec,
)
from agentcompass.runtime.base import BaseRecipe, HarnessFreeBenchmark
from agentcompass.runtime.metrics.contract import make_metric_contract
from agentcompass.runtime.models.result import ExecutionIssue, TaskStatus

_KINDS = ("echo", "wrong", "flaky", "broken")


class NoRecipe(BaseRecipe):
    id = "acl-stub-none"

    def matches(self, req: RunRequest, task: TaskSpec, plan: Any) -> bool:
        return False

    def apply(self, plan: Any, req: RunRequest, task: TaskSpec) -> Any:
        return plan


RECIPE_CLASSES = [NoRecipe]


class StubBenchmark(HarnessFreeBenchmark):
    id = "acl_stub"
    description = "Asks a stub and compares."
    metric_contract = make_metric_contract(
        primary="correct", binary=("correct",), scalar=("answer_chars",)
    )

    def __init__(self) -> None:
        self._tried: set[str] = set()

    def load_tasks(self, req: RunRequest) -> list[TaskSpec]:
        count = int(req.benchmark.params.get("tasks", 4))
        names = [f"{_KINDS[n % len(_KINDS)]}-{n}" for n in range(count)]
        names += ["lost-0"] if req.benchmark.params.get("fatal") else []
        return [TaskSpec(name, f"say {name}", name.split("-")[0], name) for name in names]

    async def prepare_task(
        self, task: TaskSpec, env: Any, req: RunRequest, plan: Any
    ) -> PreparedTask:
        prompt = TaskInput(prompt=task.question)
        return PreparedTask(task.task_id, task.category, task.ground_truth, prompt, TaskOutput())

    async def run_task(
        self, task: TaskSpec, prepared: PreparedTask, req: RunRequest, plan: Any, env: Any = None
    ) -> RunResult:
        await asyncio.sleep(float(req.benchmark.params.get("pause", 0)))
        first = task.task_id not in self._tried
        self._tried.add(task.task_id)
        if task.category == "lost" or (task.category == "flaky" and first):
            raise StageFailure(ExecutionIssue("fatal", "run", "model_failed", "the stub went away"))
        body = {"model": req.model.id, "messages": [{"role": "user", "content": task.question}]}
        async with httpx.AsyncClient() as client:
            url = f"{req.model.base_url}/chat/completions"
            reply = await client.post(url, json=body, timeout=30)
        answer = reply.json()["choices"][0]["message"]["content"]
        return RunResult(
            task_id=task.task_id,
            status=TaskStatus.COMPLETED,
            category=task.category,
            final_answer=answer,
            ground_truth=task.ground_truth,
            telemetry={"calls": 1},
        )

    async def evaluate(
        self,
        task: TaskSpec,
        prepared: PreparedTask,
        result: RunResult,
        req: RunRequest,
        plan: Any,
        env: Any = None,
    ) -> RunResult:
        if task.category == "broken":
            raise StageFailure(ExecutionIssue("error", "evaluate", "no_judge", "nobody judges"))
        answer = str(result.final_answer)
        right = task.category != "wrong" and task.task_id in answer
        result.metrics = {"correct": right, "answer_chars": len(answer)}
        return result


if "acl_stub" not in BENCHMARKS.names():
    BENCHMARKS.register()(StubBenchmark)
