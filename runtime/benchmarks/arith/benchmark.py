"""The benchmark acl-arith: seeded problems, judged by the last number of the answer."""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

import functools
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, ClassVar

from ledger.events import Evaluator
from runtime.benchmarks.arith.answers import read_number, write_number
from runtime.benchmarks.arith.problems import VERSION, Problem, problems
from runtime.benchmarks.params import read_params
from runtime.contracts import AttemptContext, Benchmark, Task
from runtime.results import Evaluation, RunResult

_PROMPT = "{question}\nEnd your answer with the result as one number."


class ArithBenchmark(Benchmark):
    """Arithmetic and word problems; the answer is right if its last number is, exactly.

    Parameters: `tasks` (how many, 60), `seed` (1), `task_ids`, `category`, `limit`.
    """

    id: ClassVar[str] = "acl-arith"
    version: ClassVar[str] = VERSION

    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        """Give the problems of a seed; UsageError for a parameter not listed above."""
        wanted = read_params(params, seeded=True)
        return [_task(problem) for problem in problems(wanted.tasks, wanted.seed)]

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        """Compare the last number of the answer with the truth, as exact fractions."""
        given = read_number(result.final_answer)
        correct = given is not None and given == read_number(task.ground_truth)
        read = "no number" if given is None else write_number(given)
        return Evaluation(
            _evaluator(),
            correct=correct,
            score=1.0 if correct else 0.0,
            reason=f"read {read}, right is {task.ground_truth}",
        )


def _task(problem: Problem) -> Task:
    return Task(
        task_id=problem.task_id,
        category=problem.category,
        input={
            "prompt": _PROMPT.format(question=problem.question),
            "question": problem.question,
        },
        ground_truth=write_number(problem.answer),
        metadata={
            "difficulty": problem.difficulty,
            "domain": problem.category,
            "operations": problem.operations,
            "tags": ["arithmetic", problem.category, problem.difficulty],
        },
        checksum=problem.checksum,
    )


@functools.cache
def _evaluator() -> Evaluator:
    here = files(__package__)
    code = [(here / name).read_bytes() for name in ("answers.py", "benchmark.py")]
    sha256 = hashlib.sha256(b"".join(hashlib.sha256(text).digest() for text in code)).hexdigest()
    return Evaluator(id=ArithBenchmark.id, version=VERSION, sha256=sha256)
