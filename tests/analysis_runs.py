"""Runs to be analysed in tests, said in few words, and the files of their analysis."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exporters.job_analysis import AnalysisConfig, analyze_job
from ledger import LedgerView, RunState, fold
from ledger import events as ev
from tests.golden.runs import JUDGE, create, opening

Events = list[ev.AnyEvent]
EXPECTED = {
    "MANIFEST.json",
    "analysis_config.yaml",
    "instances.jsonl",
    "report_failed.json",
    "report_resolved.json",
    "report_task_analysis.json",
    "score_comparison.json",
    "traj_analysis/score_comparison.json",
    "instance_analysis/summary.json",
    "instance_analysis/correlations.json",
    "instance_analysis/correlations.txt",
    *(
        f"instance_analysis/contingency_{axis}.{ending}"
        for axis in ("difficulty_label", "tag1", "tag2", "tag3", "tag4", "category")
        for ending in ("csv", "txt")
    ),
}


@dataclass(frozen=True)
class Analysis:
    """The files of one analysis, by path."""

    files: dict[str, bytes]

    def json(self, path: str) -> Any:
        return json.loads(self.files[path], parse_constant=_no_constant)

    def text(self, path: str) -> str:
        return self.files[path].decode("utf-8")

    def csv(self, path: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.text(path))))

    @property
    def instances(self) -> list[dict[str, Any]]:
        lines = self.text("instances.jsonl").splitlines()
        return [json.loads(line, parse_constant=_no_constant) for line in lines]

    def instance(self, instance_id: str) -> dict[str, Any]:
        return next(one for one in self.instances if one["instance_id"] == instance_id)

    def features(self, instance_id: str) -> dict[str, Any]:
        return self.instance(instance_id)["deterministic_features"]

    @property
    def failed(self) -> Any:
        return self.json("report_failed.json")

    @property
    def resolved(self) -> Any:
        return self.json("report_resolved.json")

    @property
    def tasks(self) -> Any:
        return self.json("report_task_analysis.json")

    @property
    def trajectories(self) -> Any:
        return self.json("traj_analysis/score_comparison.json")

    @property
    def summary(self) -> Any:
        return self.json("instance_analysis/summary.json")

    @property
    def correlations(self) -> Any:
        return self.json("instance_analysis/correlations.json")


def _no_constant(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


@dataclass
class Job:
    """A run made of tasks; `events` is what its ledger will hold."""

    k: int = 1
    run_id: str = "r"
    refs: list[ev.TaskRef] = field(default_factory=list)
    tasks: Events = field(default_factory=list)
    ends: bool = True
    strategy: str = "all"
    harness: str = "search"
    model: str = "model-1"

    def add(
        self,
        task_id: str,
        *attempts: Events,
        category: str | None = None,
        checksum: str | None = None,
        error: bool | None = None,
        **metadata: Any,
    ) -> "Job":
        """Add a task; `error` is told by its attempts if it is not given."""
        self.refs.append(
            ev.TaskRef(task_id=task_id, category=category, checksum=checksum, metadata=metadata)
        )
        if attempts:
            made = [event for events in attempts for event in events]
            ends = [event for event in made if isinstance(event, ev.AttemptFinished)]
            failed = any("error" in end.status for end in ends) if error is None else error
            finish: ev.AnyEvent = ev.TaskFinished(task=task_id, reason="all_attempts", error=failed)
            if any(end.status == "cancelled" for end in ends):
                finish = ev.TaskCancelled(task=task_id, reason="interrupted")
            self.tasks += [ev.TaskStarted(task=task_id), *made, finish]
        return self

    def write(self, path: Path) -> Path:
        """Make the ledger."""
        begin = opening(self.run_id, *self.refs, k=self.k, strategy=self.strategy)
        created = begin[0]
        assert isinstance(created, ev.RunCreated)
        request = {
            **created.request,
            "harness": {"id": self.harness, "params": {}},
            "model": {**created.request["model"], "id": self.model},
        }
        begin[0] = created.model_copy(update={"request": request})
        ending = [ev.SummaryStarted(), ev.RunFinished(status="completed", exit_code=0)]
        with create(path, self.run_id) as ledger:
            ledger.append(*begin, *self.tasks, *(ending if self.ends else ()))
        return path

    def state(self, path: Path) -> RunState:
        """Make the ledger and fold it."""
        with LedgerView.open(self.write(path)) as view:
            return fold(view.events())

    def analyze(self, path: Path, config: AnalysisConfig | None = None) -> Analysis:
        """Make the ledger and analyse it."""
        return analyzed(self.write(path), config)


def analyzed(path: Path, config: AnalysisConfig | None = None) -> Analysis:
    with LedgerView.open(path) as view:
        state = fold(view.events())
        return Analysis({file.path: file.data for file in analyze_job(state, view, config)})


def options(**sections: Any) -> AnalysisConfig:
    return AnalysisConfig.model_validate(sections)


def attempt(
    task: str,
    number: int = 1,
    *,
    correct: bool | None = True,
    score: float | None = None,
    answer: object = "an answer",
    during: Sequence[ev.AnyEvent] = (),
    plan: dict[str, Any] | None = None,
    status: ev.AttemptStatus = "completed",
    error: ev.ErrorInfo | None = None,
    judged: bool = True,
    **result: Any,
) -> Events:
    """One attempt; `during` are its calls and tools, `plan` the parameters of the harness."""
    where = {"task": task, "attempt": number}
    planned = ev.PlanResolved(**where, plan={"harness": plan or {}}, plan_hash="cd" * 32)
    verdict = ev.EvaluationFinished(**where, correct=correct, score=score, evaluator=JUDGE)
    told = (correct, score) if judged else (None, None)
    return [
        ev.AttemptStarted(**where),
        planned,
        *during,
        ev.ResultRecorded(
            **where,
            status="completed" if error is None else "run_error",
            final_answer=answer,
            error=error,
            **result,
        ),
        *([verdict] if judged else []),
        ev.AttemptFinished(
            **where,
            status=status if error is None else "run_error",
            correct=told[0],
            score=told[1],
            error=error,
            retries=sum(isinstance(event, ev.AttemptRetried) for event in during),
        ),
    ]


def right(task: str, number: int = 1, **fields: Any) -> Events:
    return attempt(task, number, **{"correct": True, "score": 1.0, **fields})


def wrong(task: str, number: int = 1, **fields: Any) -> Events:
    return attempt(task, number, **{"correct": False, "score": 0.0, **fields})


def broken(
    task: str, number: int = 1, code: str = "boom", phase: str = "run_harness", **fields: Any
) -> Events:
    """An attempt that ended in an error, without a verdict."""
    error = ev.ErrorInfo(code=code, message="it broke", phase=phase)
    return attempt(task, number, **{"answer": None, "error": error, "judged": False, **fields})


def cancelled(task: str, number: int = 1) -> Events:
    where = {"task": task, "attempt": number}
    return [ev.AttemptStarted(**where), ev.AttemptFinished(**where, status="cancelled")]


def unjudged(task: str, number: int = 1) -> Events:
    """An attempt whose verifier failed."""
    where = {"task": task, "attempt": number}
    error = ev.ErrorInfo(code="evaluation_timeout", message="too slow", phase="evaluate")
    return [
        ev.AttemptStarted(**where),
        ev.ResultRecorded(**where, status="completed", final_answer="x"),
        ev.EvaluationFinished(**where, evaluation_error=error, evaluator=JUDGE),
        ev.AttemptFinished(**where, status="eval_error", error=error),
    ]


def retried(task: str, number: int = 1, retry: int = 1, code: str = "boom") -> ev.AttemptRetried:
    return ev.AttemptRetried(
        task=task,
        attempt=number,
        retry=retry,
        max_retries=3,
        retry_delay_seconds=0.0,
        stage="run",
        scope="attempt",
        error=ev.ErrorInfo(code=code, message="again"),
    )


def call(
    task: str,
    number: int = 1,
    index: int = 0,
    *,
    tools: Sequence[tuple[str, object]] = (),
    content: str | None = "said",
    finish: str = "stop",
    usage: ev.Usage | None = None,
    error: str | None = None,
    lost: bool = False,
    **end: Any,
) -> Events:
    """A model call: its answer says `content` and asks for `tools` (name, arguments)."""
    where = {"task": task, "attempt": number, "call_id": f"{task}/{number}/{index}"}
    asked = [{"function": {"name": name, "arguments": json.dumps(given)}} for name, given in tools]
    message = {"role": "assistant", "content": content, "tool_calls": asked}
    start = ev.CallStarted(**where, call_index=index, model="model-1")
    if lost:
        return [start, ev.CallLost(**where)]
    fault = None if error is None else ev.ErrorInfo(code=error, message="no")
    return [
        start,
        ev.CallFinished(
            **where,
            success=error is None,
            response=(
                {"choices": [{"finish_reason": finish, "message": message}]}
                if error is None
                else None
            ),
            usage=usage,
            error=fault,
            **end,
        ),
    ]


def tool(task: str, name: str = "ls", arguments: object = None, **fields: Any) -> ev.ToolFinished:
    given = {"attempt": 1, **fields}
    return ev.ToolFinished(task=task, name=name, arguments=arguments, **given)


def phase(task: str, name: ev.Phase, previous: ev.Phase | None = None, **fields: Any) -> Any:
    return ev.PhaseEntered(task=task, attempt=1, phase=name, previous=previous, **fields)


def mixed() -> Job:
    """Forty tasks: resolved and not, partly, with errors, of several kinds, with all features."""
    job = Job()
    for index in range(40):
        name = f"task-{index:02}"
        turns, failing = 1 + index * 7 % 11, index % 6 == 5
        during = [
            event
            for turn in range(turns)
            for event in call(
                name,
                index=turn,
                usage=ev.Usage(input_tokens=100 + 13 * turn + index, output_tokens=5 + index % 4),
                cost_usd=0.001 * (turn + 1),
                ttft_ms=50.0 + index,
            )
        ]
        during += [
            tool(name, "bash", {"command": f"make test {n // (1 + index % 3)}"}, is_error=failing)
            for n in range(index % 8)
        ]
        about = {
            "difficulty": ("easy", "medium", "hard", "very_hard")[index * 3 % 4],
            "domain": ("web", "data", "cli")[index % 3],
            "tags": ["python", ("web", "data", "cli")[index % 3], "x", f"bug-{index % 5}"],
            "lines": index * index % 17,
        }
        if index % 10 == 9:
            made = broken(name, code="provider_server_error", during=during)
        elif (index * 3 % 4) + index % 3 < 3:
            made = right(name, during=during)
        else:
            made = wrong(name, during=during, score=0.25 * (index % 2))
        job.add(name, made, category=("a", "b")[index % 2], **about)
    return job
