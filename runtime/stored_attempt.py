"""An attempt as a ledger holds it, put back into the shape in which an evaluator takes it.

There is no environment and no model: the files that were collected can be read, and whatever
would run a command or call a model raises StageError.
"""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from ledger.canonical import Binary
from ledger.events import (
    ArtifactsCollected,
    AttemptEvent,
    EvaluationFinished,
    PlanResolved,
    ResultRecorded,
)
from ledger.state import AttemptState, RunState
from ledger.view import Blobs
from runtime.contracts import AttemptContext, ExecOutcome, ExecutionPlan, StageError
from runtime.models import BenchmarkSpec, RunRequest
from runtime.results import RunResult

E = TypeVar("E", bound=AttemptEvent)

_OF_RESULT = ("final_answer", "ground_truth", "trajectory", "artifacts", "telemetry")


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """The recorded verdict of an attempt, and what it was given on.

    `replaced` says that redaction replaced something in what the evaluator would see.
    """

    result: RunResult
    verdict: EvaluationFinished
    context: AttemptContext
    time_limit: float | None
    replaced: bool


def stored_attempt(
    blobs: Blobs, state: RunState, task_id: str, attempt: AttemptState
) -> StoredAttempt | None:
    """Read an attempt whose result and verdict are recorded; None where a body was erased.

    Raises RunNotFound where a piece of a large value is gone.
    """
    result = _event(blobs, attempt.result, ResultRecorded)
    verdict = _event(blobs, attempt.evaluation, EvaluationFinished)
    if result is None or verdict is None:
        return None
    files = _event(blobs, attempt.artifacts, ArtifactsCollected)
    plan = _event(blobs, attempt.plan, PlanResolved)
    limit = None if plan is None else plan.timeouts.get("evaluation")
    return StoredAttempt(
        result=stored_result(blobs, result, state.tasks[task_id].category),
        verdict=verdict.model_copy(update={"tests_status": blobs.resolve(verdict.tests_status)}),
        context=_context(state, attempt, plan, StoredFiles(blobs, files)),
        time_limit=limit,
        replaced=any(event is not None and event.redactions for event in (result, files)),
    )


def stored_result(blobs: Blobs, result: ResultRecorded, category: str | None) -> RunResult:
    """The result of an event as the harness gave it, large values put back in.

    Raises RunNotFound where a piece of one is gone.
    """
    whole: dict[str, Any] = {name: blobs.resolve(getattr(result, name)) for name in _OF_RESULT}
    return RunResult(
        result.task,
        category=category,
        metrics=dict(result.metrics),
        meta=_object(blobs.resolve(result.meta)),
        extra=_object(blobs.resolve(result.extra)),
        **whole,
    )


def _event(blobs: Blobs, seq: int | None, kind: type[E]) -> E | None:
    event = None if seq is None else blobs.event(seq).event
    assert event is None or isinstance(event, kind)  # the fold put it there
    return event


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _context(
    state: RunState, attempt: AttemptState, plan: PlanResolved | None, files: "StoredFiles"
) -> AttemptContext:
    request = stored_request(state)
    view = {} if plan is None else plan.plan
    return AttemptContext(
        request=request,
        attempt=attempt.number,
        retry=len(attempt.retries),
        plan=ExecutionPlan(
            environment=request.environment,
            harness=_object(view.get("harness")),
            benchmark=_object(view.get("benchmark")),
            applied_recipes=[] if plan is None else list(plan.applied_recipes),
        ),
        session=files,
        calls=_NoCalls(),
        tool=_no_tool,
        api_key=None,
    )


def stored_request(state: RunState) -> RunRequest:
    """The recorded request; of one that is no request of this release only the benchmark."""
    try:
        return RunRequest.model_validate(state.request)
    except ValidationError:
        spec = _object(state.request.get("benchmark"))
        params = _object(spec.get("params"))
        return RunRequest(benchmark=BenchmarkSpec(id=str(spec.get("id")), params=params))


class StoredFiles:
    """The collected files of an attempt, as a session that can be read and do nothing else."""

    def __init__(self, blobs: Blobs, event: ArtifactsCollected | None) -> None:
        contents = None if event is None else event.contents
        self._blobs = blobs
        self._contents: Mapping[str, Any] = contents if isinstance(contents, dict) else {}

    async def exec(
        self, command: Sequence[str], *, timeout: float | None = None, stdin: str | None = None
    ) -> ExecOutcome:
        """Refuse."""
        _refuse("no command can be run over stored files")

    async def upload(self, source: Path, target: str) -> None:
        """Refuse."""
        _refuse("stored files cannot be changed")

    async def download(self, source: str, target: Path) -> None:
        """Write a stored file to `target`."""
        target.write_bytes(self._read(source))

    async def read_text(self, path: str) -> str:
        """Return a stored file as text; FileNotFoundError if it was not collected."""
        return self._read(path).decode("utf-8")

    async def write_text(self, path: str, text: str) -> None:
        """Refuse."""
        _refuse("stored files cannot be changed")

    async def files(self) -> list[str]:
        """The paths of the collected files, sorted."""
        return sorted(self._contents)

    async def size(self, path: str) -> int:
        """Return how many bytes a stored file has; FileNotFoundError if it was not collected."""
        return len(self._read(path))

    async def read_bytes(self, path: str) -> bytes:
        """Return a stored file; FileNotFoundError if it was not collected."""
        return self._read(path)

    async def close(self) -> None:
        """Nothing is open."""

    def _read(self, path: str) -> bytes:
        if path not in self._contents:
            raise FileNotFoundError(f"{path} was not collected")
        content = self._blobs.resolve(self._contents[path])
        if isinstance(content, Binary):
            return content.data
        return str(content).encode("utf-8", "surrogatepass")


class _NoCalls:
    """Refuses model calls: an evaluator that asks a model cannot be run again offline."""

    @property
    def coordinates(self) -> NoReturn:
        _refuse("no model is asked again")

    async def started(self, call: Any) -> None:
        _refuse("no model is asked again")

    async def finished(self, call: Any) -> None:
        _refuse("no model is asked again")

    def started_sync(self, call: Any) -> None:
        _refuse("no model is asked again")

    def finished_sync(self, call: Any) -> None:
        _refuse("no model is asked again")

    def unattributed_sync(self, call: Any) -> None:
        _refuse("no model is asked again")


async def _no_tool(*_: Any, **__: Any) -> None:
    _refuse("no tool is used again")


def _refuse(why: str) -> NoReturn:
    raise StageError("offline", why)
