"""What plug-ins implement: benchmarks, harnesses, environments, recipes and analyzers.

A plug-in is a class named by an entry point (`acl.benchmarks`, `acl.harnesses`,
`acl.environments`, `acl.analyzers`); built-ins come by the same road. Every method that may wait
is async. Exceptions of plug-ins become errors of the attempt; `StageError` says which kind.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from ledger.errors import UsageError
from ledger.state import RunState
from runtime.call_records import CallEnd, CallSink, CallStart
from runtime.models import EnvironmentSpec, RunRequest
from runtime.results import ErrorInfo, Evaluation, MetricResult, RunResult

SELECTING: Final = ("task_ids", "category", "limit")
"""Parameters of a benchmark that select tasks, and change none."""


class StageError(Exception):
    """A failure with a class: `code` for retry patterns, `fatal` for faults of the house."""

    def __init__(self, code: str, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fatal = fatal


@dataclass(frozen=True, slots=True)
class Task:
    """One unit of work. `input` is what the agent may see, `secret` what only the verifier may.

    `checksum` is the SHA-256 hex of whatever decides the task: a changed task runs again.
    """

    task_id: str
    category: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    secret: Mapping[str, Any] = field(default_factory=dict)
    ground_truth: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    checksum: str | None = None


@dataclass(slots=True)
class ExecutionPlan:
    """How one try is run. Recipes change it in order; `view()` is what is recorded of it.

    `harness` and `benchmark` begin as the parameters of the request, without those that select
    tasks.
    """

    environment: EnvironmentSpec
    harness: dict[str, Any] = field(default_factory=dict)
    benchmark: dict[str, Any] = field(default_factory=dict)
    run_timeout_seconds: float | None = None
    evaluation_timeout_seconds: float | None = None
    artifact_collect_timeout_seconds: float | None = None
    applied_recipes: list[str] = field(default_factory=list)

    def view(self) -> dict[str, Any]:
        """The allowlisted view that is stored: no environment variables, no parameters' secrets."""
        return {
            "environment": {
                "id": self.environment.id,
                "resources": self.environment.resources,
                "setup": self.environment.setup,
            },
            "harness": self.harness,
            "benchmark": self.benchmark,
            "run_timeout_seconds": self.run_timeout_seconds,
            "evaluation_timeout_seconds": self.evaluation_timeout_seconds,
            "artifact_collect_timeout_seconds": self.artifact_collect_timeout_seconds,
        }


@dataclass(frozen=True, slots=True)
class ExecOutcome:
    """A finished command."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False


class Session(Protocol):
    """An open environment of one attempt."""

    async def exec(
        self, command: Sequence[str], *, timeout: float | None = None, stdin: str | None = None
    ) -> ExecOutcome:
        """Run a command in the environment's working directory."""

    async def upload(self, source: Path, target: str) -> None:
        """Copy a file into the environment."""

    async def download(self, source: str, target: Path) -> None:
        """Copy a file out of the environment."""

    async def read_text(self, path: str) -> str:
        """Read a UTF-8 file of the environment."""

    async def write_text(self, path: str, text: str) -> None:
        """Write a UTF-8 file in the environment, making its directories."""

    async def files(self) -> list[str]:
        """Relative paths of the regular files in the working directory, sorted; links left out."""

    async def size(self, path: str) -> int:
        """Bytes of a file of the environment; asked before a large one would be read."""

    async def read_bytes(self, path: str) -> bytes:
        """Read a file of the environment."""

    async def close(self) -> None:
        """Release everything; may be called twice."""


class BaseEnvironment(ABC):
    """A kind of place where attempts run."""

    id: ClassVar[str]

    @abstractmethod
    async def open(self, spec: EnvironmentSpec, plan: ExecutionPlan) -> Session:
        """Open a session for one try."""


class CallRecorder(CallSink, Protocol):
    """Records physical model calls of one attempt; see `runtime.llm`, `runtime.litellm_bridge`."""

    async def started(self, call: CallStart) -> None:
        """Return once the start is durable; the request may be sent then."""

    async def finished(self, call: CallEnd) -> None:
        """Return once the end is durable."""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What an attempt may use: its coordinates, the request, its session and its recorder."""

    request: RunRequest
    attempt: int
    retry: int
    plan: ExecutionPlan
    session: Session | None
    calls: CallRecorder
    tool: Callable[..., Awaitable[None]]
    api_key: str | None


class Benchmark(ABC):
    """A set of tasks and the authority on whether an answer is right."""

    id: ClassVar[str]
    version: ClassVar[str]
    parallel_attempts_safe: ClassVar[bool] = True

    @abstractmethod
    def load_tasks(self, params: Mapping[str, Any]) -> list[Task]:
        """All tasks in their stable order."""

    def select_tasks(self, tasks: list[Task], params: Mapping[str, Any]) -> list[Task]:
        """The tasks of this run: `params.task_ids`, `params.category`, `params.limit`.

        Raises UsageError for an id that no task has and for values that select nothing sensible.
        """
        wanted, category, limit = (params.get(name) for name in SELECTING)
        if limit is not None and (type(limit) is not int or limit < 0):
            raise UsageError(f"benchmark parameter limit: {limit!r} is not a number of tasks")
        if wanted is not None:
            _check_wanted(wanted, tasks)
        chosen = [
            task
            for task in tasks
            if (wanted is None or task.task_id in wanted)
            and (category is None or task.category == category)
        ]
        return chosen if limit is None else chosen[:limit]

    def build_plan(self, task: Task, plan: ExecutionPlan) -> ExecutionPlan:
        """Adjust the plan of one try."""
        return plan

    async def prepare_task(self, task: Task, context: AttemptContext) -> None:
        """Put what the task needs into the environment."""

    async def collect_artifacts(self, task: Task, context: AttemptContext) -> list[str]:
        """Paths of the session to keep as artifacts; runs before the environment is released."""
        return []

    @abstractmethod
    async def evaluate(self, task: Task, result: RunResult, context: AttemptContext) -> Evaluation:
        """The verdict. A failure of the verifier itself is an error, never a wrong answer."""

    def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
        """Add to the metrics that the reducers gave; by default nothing."""
        return metrics


def _check_wanted(wanted: Any, tasks: Sequence[Task]) -> None:
    if not isinstance(wanted, list | tuple):
        raise UsageError(f"benchmark parameter task_ids: {wanted!r} is not a list of ids")
    unknown = [one for one in wanted if all(one != task.task_id for task in tasks)]
    if unknown:
        raise UsageError(f"benchmark parameter task_ids: there is no task {unknown[0]!r}")


class HarnessFreeBenchmark(Benchmark):
    """A benchmark that runs its tasks itself; its requests name harness `none`."""

    @abstractmethod
    async def run_task(self, task: Task, context: AttemptContext) -> RunResult:
        """Produce the result of one try."""


class BaseHarness(ABC):
    """An agent and the way to drive it."""

    id: ClassVar[str]
    parallel_attempts_safe: ClassVar[bool] = True
    needs_model: ClassVar[bool] = False

    def supports(self, benchmark: Benchmark) -> bool:
        """True if this harness can solve tasks of `benchmark`."""
        return True

    def build_config(self, params: Mapping[str, Any]) -> Any:
        """Parse the parameters once; raise UsageError or ValueError with the name of a bad one."""
        if params:
            raise ValueError(f"harness {self.id} takes no parameter {min(params)!r}")
        return None

    def build_plan(self, task: Task, plan: ExecutionPlan) -> ExecutionPlan:
        """Adjust the plan of one try."""
        return plan

    async def start_session(self, task: Task, config: Any, context: AttemptContext) -> Any:
        """Start the agent."""
        return None

    @abstractmethod
    async def run_task(
        self, task: Task, config: Any, session: Any, context: AttemptContext
    ) -> RunResult:
        """Let the agent work on the task."""

    async def collect_result(
        self, task: Task, session: Any, result: RunResult | None, context: AttemptContext
    ) -> RunResult | None:
        """What there is after the run, a timeout or an error; None if there is nothing."""
        return result

    async def close_session(self, session: Any) -> None:
        """Stop the agent; called in every case."""


class BaseRecipe(ABC):
    """A rule that changes the plans it matches."""

    id: ClassVar[str]

    @abstractmethod
    def matches(self, request: RunRequest, task: Task) -> bool:
        """True if the recipe is for this task."""

    @abstractmethod
    def apply(self, plan: ExecutionPlan, task: Task) -> ExecutionPlan:
        """The changed plan."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyzer found."""

    is_badcase: bool | None = None
    score: float | None = None
    details: Any = None
    error: ErrorInfo | None = None
    extra: Any = None


class BaseAnalyzer(ABC):
    """Looks at finished attempts; its failure never fails them."""

    id: ClassVar[str]
    base_analyzer: ClassVar[str]
    priority: ClassVar[int] = 0

    def matches_dataset(self, benchmark: Benchmark) -> bool:
        """True if it can look at results of this benchmark."""
        return True

    def check_requirements(self) -> bool:
        """True if what it needs is installed."""
        return True

    def should_skip(self, result: RunResult) -> bool:
        """True if there is nothing to look at."""
        return False

    @abstractmethod
    async def analysis(self, task: Task, result: RunResult, evaluation: Evaluation) -> Analysis:
        """Look at one attempt."""
