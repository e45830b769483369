"""Child of `benchmarks.record` in an environment of AgentCompass: its store takes the same content.

    python benchmarks/peer_agentcompass.py PAYLOADS COUNT DIRECTORY

The calls are those of its runner, in its order, for 16 tasks at once: the scheduler's look for a
checkpoint, the resolved plan, the retry's details, the evaluation checkpoint, the attempt's
checkpoint, the result of the task; at the end the terminal status. What its runner writes besides
(progress, log, metrics) is left out. Prints one JSON document.
"""

import asyncio
import gc
import json
import sys
import time
from collections import deque
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from agentcompass.runtime.attempts.repository import (
    AttemptCheckpoint,
    AttemptKey,
    AttemptTerminalStatus,
    RunAttemptCheckpointRepository,
)
from agentcompass.runtime.checkpoint import EvaluationCheckpoint
from agentcompass.runtime.results.detail import build_detail_record
from agentcompass.runtime.results.layout import RunLayout
from agentcompass.runtime.results.store import RunStore

WORKERS: Final = 16
_PLAN: Final = {"k": 1, "strategy": "avg"}
Content = dict[str, Any]


class _Run:
    """One run in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.store = RunStore(SimpleNamespace(model="model-1"))
        self.store._get_results_root = lambda: directory
        self.params: dict[str, Any] = {
            "benchmark": {"id": "airline"},
            "harness": {"id": "act"},
            "model": {"id": "model-1"},
            "execution": {"attempts": _PLAN},
            "output": {"run_id": "run-1"},
        }
        self.output: Path = self.store._get_output_directory(self.params)
        self.store.write_run_info(self.output, dict(self.params), self.params)
        self.layout = RunLayout(self.output)
        self.checkpoints = RunAttemptCheckpointRepository(self.output)

    async def run(self, contents: list[Content]) -> None:
        """All tasks, and the terminal status."""
        waiting = deque(contents)

        async def work() -> None:
            while waiting:
                await self._task(waiting.popleft())

        await asyncio.gather(*(work() for _ in range(WORKERS)))
        self.store.write_terminal_status(self.output, "completed")

    async def _task(self, content: Content) -> None:
        task, key = content["task"], AttemptKey(content["task"], 1)
        await self.checkpoints.load(key)
        await self.store.record_resolved_execution_plan(self.output, task, 1, content["plan"])
        await self.checkpoints.load(key)
        for number, message in enumerate(content["errors"], 1):
            self.layout.begin_run(task, 1)
            await self.store.save_retry_detail(_retry(task, number, message), self.params)
        self.layout.begin_run(task, 1)
        await self._save_evaluation(content)
        value = _value(content)
        checkpoint = AttemptCheckpoint(
            key=key,
            status=AttemptTerminalStatus.COMPLETED,
            value=value,
            retries=len(content["errors"]),
        )
        await self.checkpoints.save(checkpoint)
        record = build_detail_record(_record(content, value))
        await self.store.save_partial_result(record, self.params)
        await self.checkpoints.delete_task(task)

    async def _save_evaluation(self, content: Content) -> None:
        """What the runner keeps before it evaluates: the result, and the prepared task."""
        task = content["task"]
        artifacts = self.layout.attempt_dir(task, 1, create=True) / "artifacts"
        artifacts.mkdir(parents=True, exist_ok=True)
        checkpoint = EvaluationCheckpoint(
            task_id=task,
            category="airline",
            attempt=1,
            source_run_id="run-1",
            source_evaluation_mode="none",
            run_result={
                **_given(content),
                "task_id": task,
                "category": "airline",
                "ground_truth": None,
                "telemetry": content["telemetry"],
                "extra": {},
            },
            prepared_task={"task_id": task, "category": "airline", "ground_truth": None},
            artifacts={
                "schema_version": 1,
                "complete": True,
                "entries": [],
                "directory": artifacts.relative_to(self.layout.root).as_posix(),
            },
        )
        await self.store.save_evaluation_checkpoint(checkpoint, self.params)


def _given(content: Content) -> Content:
    return {
        "status": "completed",
        "metrics": {},
        "final_answer": content["answer"],
        "trajectory": {"steps": content["trajectory"]},
        "issues": [],
        "artifacts": {},
        "meta": None,
    }


def _value(content: Content) -> Content:
    """The result of an attempt with its verdict; telemetry goes to the harness's part of meta."""
    judged = {"correct": content["correct"], "score": content["score"]}
    return {
        **_given(content),
        "metrics": judged,
        "meta": {"harness": {"telemetry": content["telemetry"]}},
        "analysis_result": {},
    }


def _record(content: Content, value: Content) -> Content:
    retries = len(content["errors"])
    return {
        "task_id": content["task"],
        "category": "airline",
        "ground_truth": None,
        "attempt_plan": _PLAN,
        "attempts": {"1": value},
        "retry_count": retries,
        "retry_counts": {"1": retries} if retries else {},
    }


def _retry(task: str, number: int, message: str) -> Content:
    issue = {"severity": "error", "phase": "run", "code": "run_failed", "message": message}
    return {
        "schema_version": "agentcompass.retry.v1",
        "task_id": task,
        "category": "airline",
        "attempt": 1,
        "retry": number,
        "max_retries": 2,
        "retry_delay_seconds": 0.0,
        "stage": "attempt",
        "scope": "attempt",
        "matched_pattern": "connection",
        "issues": [issue],
        "discarded_result": {"task_id": task, "status": "run_error", "issues": [issue]},
    }


def _written() -> int:
    """As `benchmarks.counting`, which is not installed here."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        return 0
    told = dict(line.split(": ") for line in counters.read_text().splitlines())
    return int(told["wchar"])


def main(payloads: Path, count: int, directory: Path) -> None:
    """Read the payloads, store them, and tell what it took."""
    with payloads.open("rb") as lines:
        contents = [json.loads(line) for line in islice(lines, count)]
    gc.collect()
    gc.freeze()
    before = _written()
    wall, cpu = time.perf_counter(), time.process_time()
    run = _Run(directory)
    asyncio.run(run.run(contents))
    told = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    told["written"] = _written() - before
    files = [one for one in directory.rglob("*") if one.is_file()]
    print(json.dumps({**told, "bytes": sum(one.stat().st_size for one in files)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
