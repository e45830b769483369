"""Small plug-ins for tests of the runtime, found by a provider instead of entry points."""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ledger import LedgerView
from ledger.events import Evaluator
from ledger.fold import fold
from ledger.state import RunState
from ledger.view import Recorded
from runtime.contracts import (
    AttemptContext,
    BaseAnalyzer,
    BaseEnvironment,
    BaseHarness,
    Benchmark,
    ExecOutcome,
    ExecutionPlan,
    Session,
    Task,
)
from runtime.interrupt import StopSignal
from runtime.models import EnvironmentSpec, RunRequest
from runtime.plugins import Plugins
from runtime.results import Evaluation, RequestOutcome, RunResult
from runtime.runner import run
from runtime.surroundings import Surroundings

JUDGE = Evaluator(id="listed", version="1")


class Listed(Benchmark):
    """Tasks from a list; an answer is right if it equals the ground truth."""

    id: ClassVar[str] = "listed"
    version: ClassVar[str] = "1"

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self.tasks = list(tasks)

    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        return self.tasks

    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        correct = result.final_answer == task.ground_truth
        return Evaluation(JUDGE, correct=correct, score=1.0 if correct else 0.0)


Act = Callable[[Task, AttemptContext], Any]


class Scripted(BaseHarness):
    """Does what `act` says: a value, an exception that it raises, or a coroutine of either."""

    id: ClassVar[str] = "scripted"

    def __init__(self, act: Act) -> None:
        self.act = act
        self.closed = 0

    async def run_task(
        self, task: Task, config: Any, session: Any, context: AttemptContext
    ) -> RunResult:
        found = self.act(task, context)
        if inspect.isawaitable(found):
            found = await found
        return (
            found if isinstance(found, RunResult) else RunResult(task.task_id, final_answer=found)
        )

    async def close_session(self, session: Any) -> None:
        self.closed += 1


class Room:
    """A session that holds its files in memory."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.closed = 0

    async def exec(
        self, command: Sequence[str], *, timeout: float | None = None, stdin: str | None = None
    ) -> ExecOutcome:
        return ExecOutcome(0, "", "")

    async def upload(self, source: Path, target: str) -> None:
        self.contents[target] = source.read_bytes()

    async def download(self, source: str, target: Path) -> None:
        target.write_bytes(self.contents[source])

    async def read_text(self, path: str) -> str:
        return self.contents[path].decode()

    async def write_text(self, path: str, text: str) -> None:
        self.contents[path] = text.encode()

    async def files(self) -> list[str]:
        return sorted(self.contents)

    async def size(self, path: str) -> int:
        return len(self.contents[path])

    async def read_bytes(self, path: str) -> bytes:
        return self.contents[path]

    async def close(self) -> None:
        self.closed += 1


class Rooms(BaseEnvironment):
    """Opens rooms, and remembers them."""

    id: ClassVar[str] = "rooms"

    def __init__(self) -> None:
        self.opened: list[Room] = []

    async def open(self, spec: EnvironmentSpec, plan: ExecutionPlan) -> Session:
        self.opened.append(Room())
        return self.opened[-1]


@dataclass(frozen=True)
class Point:
    """An entry point that gives what it was made with."""

    name: str
    plugin: Any

    def load(self) -> Any:
        if isinstance(self.plugin, BaseException):
            raise self.plugin
        return self.plugin if callable(self.plugin) else lambda: self.plugin


def plugins(*found: Any, environment: BaseEnvironment | None = None) -> Plugins:
    """The given plug-ins, and nothing else but an environment."""
    groups = {
        "acl.benchmarks": Benchmark,
        "acl.harnesses": BaseHarness,
        "acl.environments": BaseEnvironment,
        "acl.analyzers": BaseAnalyzer,
    }
    everything = [*found, environment or Rooms()]

    def source(group: str) -> list[Point]:
        kind = groups.get(group)
        return [Point(p.id, p) for p in everything if kind is not None and isinstance(p, kind)]

    return Plugins(source)


def task(task_id: str, truth: Any = "right", **fields: Any) -> Task:
    return Task(task_id, ground_truth=truth, checksum=f"sum of {task_id}", **fields)


def request(**parts: Any) -> RunRequest:
    """A request for `listed`, `scripted` and `rooms`; parts are its fields, or those of execution."""
    fields = {"benchmark", "harness", "environment", "model", "runtime", "output", "metadata"}
    execution = {name: value for name, value in parts.items() if name not in fields}
    given = {name: value for name, value in parts.items() if name in fields}
    return RunRequest.model_validate(
        {
            "benchmark": {"id": "listed"},
            "harness": {"id": "scripted"},
            "environment": {"id": "rooms"},
            "model": {"id": "none"},
            "execution": execution,
            **given,
        }
    )


async def at_once(_: float) -> None:
    """Sleep no time at all."""
    await asyncio.sleep(0)


@dataclass
class Ran:
    """A run that is over: its outcome, and all that its ledger holds."""

    outcome: RequestOutcome
    events: list[Recorded]
    state: RunState

    @property
    def types(self) -> list[str]:
        return [recorded.type for recorded in self.events]

    def of(self, kind: type, task: str | None = None) -> list[Any]:
        """The events of a type, of one task if one is named."""
        return [
            r.event
            for r in self.events
            if isinstance(r.event, kind) and (task is None or r.task == task)
        ]


def read(outcome: RequestOutcome) -> Ran:
    """Read the ledger of a run whole, large values included."""
    assert outcome.path is not None
    with LedgerView.open(outcome.path) as view:
        events = list(view.events())
        whole = [
            Recorded(r.header, _resolved(r.event, view) if r.event else None, r.leaf)
            for r in events
        ]
        return Ran(outcome, whole, fold(events))


def _resolved(event: Any, view: LedgerView) -> Any:
    values = {name: view.resolve(value) for name, value in event}
    changed = {name: new for name, new in values.items() if new is not getattr(event, name)}
    return event.model_copy(update=changed)


def evaluate(
    results: Path,
    act: Act,
    tasks: Iterable[Task] = (),
    *,
    benchmark: Benchmark | None = None,
    harness_plugin: BaseHarness | None = None,
    also: Sequence[Any] = (),
    environment: BaseEnvironment | None = None,
    stop: StopSignal | None = None,
    environ: Mapping[str, str] | None = None,
    projectors: Sequence[Any] = (),
    grace: float = 60.0,
    alarm: Callable[[str], object] | None = None,
    **parts: Any,
) -> Ran:
    """Run `act` on tasks in a fresh event loop, and read what was recorded."""
    found = plugins(
        benchmark or Listed(tasks),
        harness_plugin or Scripted(act),
        *also,
        environment=environment,
    )
    around = Surroundings(
        plugins=found,
        sleep=at_once,
        environ=environ or {},
        grace_seconds=grace,
        patience=0.0,
        alarm=alarm,
    )
    work = run(
        request(**parts),
        results_dir=results,
        stop=stop,
        surroundings=around,
        projectors=projectors,
    )
    return read(asyncio.run(work))
