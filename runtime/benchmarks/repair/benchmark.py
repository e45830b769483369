"""The benchmark acl-repair: broken functions, judged by hidden cases in a sandbox."""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

import functools
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, ClassVar

from ledger.errors import SandboxFailed
from ledger.events import Evaluator
from runtime.benchmarks.params import read_params
from runtime.benchmarks.repair.tasks import Case, RepairTask, shipped_tasks
from runtime.contracts import AttemptContext, Benchmark, StageError, Task
from runtime.results import Evaluation, RunResult
from runtime.sandbox import SandboxResult, Verdict, run_checks

_LONGEST_ANSWER = 200_000  # characters; the functions have less than 2,000
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMPT = """\
The Python function `{entry}` below does not do what its docstring says. Repair it.
Answer with the whole corrected function in one code block. It must not import anything.

```python
{source}```
"""


class RepairBenchmark(Benchmark):
    """Sixty functions that seeded changes have broken; the answer is the repaired source.

    Parameters: `tasks` (how many, from the first), `task_ids`, `category`, `limit`.
    """

    id: ClassVar[str] = "acl-repair"
    version: ClassVar[str] = "1"

    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        """Give the tasks in their released order; UsageError for a parameter not listed above."""
        count = read_params(params, seeded=False).tasks
        return [_task(task) for task in shipped_tasks()[:count]]

    async def prepare_task(self, task: Task, context: AttemptContext) -> None:
        """Put the broken function into the environment, as `<entry>.py`."""
        if context.session is not None:
            await context.session.write_text(f"{task.input['entry']}.py", task.input["source"])

    async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
        """Keep every file that the agent leaves."""
        return [] if context.session is None else await context.session.files()

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        """Run the hidden cases on the answer; right only if all pass.

        `metrics.hidden_pass_rate` is the share that passes, `tests_status` names each case under
        FAIL_TO_PASS (the broken function fails it) or PASS_TO_PASS.
        """
        source = extract_source(result.final_answer, task.input["entry"])
        if source is None:
            return Evaluation(_evaluator(), correct=False, score=0.0, reason="no answer")
        checks = [Case.model_validate(case).check() for case in task.secret["hidden"]]
        try:
            checked = await run_checks(source, task.input["entry"], checks)
        except SandboxFailed as error:
            raise StageError("sandbox_failed", str(error)) from error
        passed = sum(verdict.passed for verdict in checked.verdicts)
        return Evaluation(
            _evaluator(),
            correct=checked.passed,
            score=1.0 if checked.passed else 0.0,
            metrics={"hidden_pass_rate": passed / len(checks)},
            reason=_reason(checked),
            tests_status=_tests_status(checked.verdicts, task.secret["fail_to_pass"]),
            stdout=checked.stdout or None,
            stderr=checked.stderr or None,
        )


def extract_source(answer: object, entry: str) -> str | None:
    """Give the source in an answer: the last code block that defines `entry`, else all of it.

    None when there is no text, or more than any repair could need.
    """
    if not isinstance(answer, str) or not answer.strip() or len(answer) > _LONGEST_ANSWER:
        return None
    blocks = [block for block in _FENCED.findall(answer) if f"def {entry}" in block]
    return str(blocks[-1]) if blocks else answer


def _task(task: RepairTask) -> Task:
    return Task(
        task_id=task.task_id,
        category=task.category,
        input={
            "prompt": _PROMPT.format(entry=task.entry, source=task.source),
            "entry": task.entry,
            "source": task.source,
            "examples": [case.model_dump() for case in task.examples],
        },
        secret={
            "hidden": [case.model_dump() for case in task.hidden],
            "fail_to_pass": task.fail_to_pass,
        },
        ground_truth=task.solution,
        metadata=task.metadata.model_dump(mode="json"),
        checksum=task.checksum,
    )


def _reason(checked: SandboxResult) -> str:
    failed = [verdict for verdict in checked.verdicts if not verdict.passed]
    if checked.timed_out:
        return "stopped: out of time"
    if failed:
        first = failed[0]
        total = len(checked.verdicts)
        return f"{len(failed)} of {total} hidden cases fail; {first.name} gave {first.gave}"
    if not checked.passed:
        return f"the process ended with {checked.signal or checked.exit_code}"
    return f"all {len(checked.verdicts)} hidden cases pass"


def _tests_status(verdicts: tuple[Verdict, ...], fail_to_pass: tuple[str, ...]) -> dict[str, Any]:
    status: dict[str, dict[str, list[str]]] = {
        group: {"success": [], "failure": []} for group in ("FAIL_TO_PASS", "PASS_TO_PASS")
    }
    for verdict in verdicts:
        group = "FAIL_TO_PASS" if verdict.name in fail_to_pass else "PASS_TO_PASS"
        status[group]["success" if verdict.passed else "failure"].append(verdict.name)
    return status


@functools.cache
def _evaluator() -> Evaluator:
    """Name the verifier by what decides a verdict: its code and the hidden cases."""
    runtime = files("runtime")
    decisive = [
        runtime / "sandbox.py",
        runtime / "sandbox_process.py",
        runtime / "sandbox_worker.py",
        files(__package__) / "benchmark.py",
        files(__package__) / "tasks.jsonl",
    ]
    digests = [hashlib.sha256(file.read_bytes()).digest() for file in decisive]
    sha256 = hashlib.sha256(b"".join(digests)).hexdigest()
    return Evaluator(id=RepairBenchmark.id, version=RepairBenchmark.version, sha256=sha256)
