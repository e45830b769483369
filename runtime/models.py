"""What a user asks for: the request of one run, as it stands in a file or on the command line."""

from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_serializer,
    field_validator,
    model_validator,
)

from ledger.canonical import encode
from ledger.errors import ValueRefused

Strategy = Literal["all", "stop_on_correct"]
Seconds = Annotated[float, Field(ge=0)]
Factor = Annotated[float, Field(gt=0)]


def _storable(params: dict[str, Any]) -> dict[str, Any]:
    # YAML gives dates and keys that are numbers; told here, by name, rather than by the recorder.
    try:
        encode(params)
    except ValueRefused as error:
        raise ValueError(f"{error.path} is {error.why}") from error
    return params


Params = Annotated[dict[str, Any], AfterValidator(_storable)]
"""Parameters that a ledger can hold as they are."""


class Model(BaseModel):
    """A closed, frozen model: an unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EnvName(Model):
    """A secret by the name of the environment variable that holds it; resolved at use."""

    env: str


class BenchmarkSpec(Model):
    """Which benchmark, and its parameters."""

    id: str
    params: Params = Field(default_factory=dict)


class HarnessSpec(Model):
    """Which harness, and its parameters; `none` for a benchmark that runs its tasks itself."""

    id: str = "none"
    params: Params = Field(default_factory=dict)


class EnvironmentSpec(Model):
    """Where attempts run."""

    id: str = "local"
    params: Params = Field(default_factory=dict)
    env_variables: dict[str, str] = Field(default_factory=dict)
    resources: Params = Field(default_factory=dict)
    setup: Params = Field(default_factory=dict)


class ModelSpec(Model):
    """Which model answers; `api_key` is never stored."""

    id: str = "none"
    base_url: str = ""
    api_key: str | EnvName | None = None
    api_protocol: str = ""
    params: Params = Field(default_factory=dict)


class ArtifactLimits(Model):
    """How many files, and how many bytes of them, an attempt may leave."""

    max_files: Annotated[int, Field(ge=0)] = 1000
    max_bytes: Annotated[int, Field(ge=0)] = 64 * 1024 * 1024


class ExecutionSpec(Model):
    """How often, how many at once, how long, and what is tried again."""

    task_concurrency: Annotated[int, Field(ge=1)] = 4
    k: Annotated[int, Field(ge=1)] = 1
    strategy: Strategy = "all"
    enabled_recipes: list[str] = Field(default_factory=list)
    keep_environment: bool = False
    enable_analysis: bool = True
    analyzers: list[str] | None = None
    exclude_analyzers: list[str] = Field(default_factory=list)
    max_retries: Annotated[int, Field(ge=0)] = 0
    retry_pattern_list: list[str] | None = None
    retry_min_delay_seconds: Seconds = 5.0
    retry_max_delay_seconds: Seconds = 60.0
    run_timeout_seconds: Factor | None = None
    evaluation_timeout_seconds: Factor | None = None
    timeout_multiplier: Factor = 1.0
    run_timeout_multiplier: Factor | None = None
    evaluation_timeout_multiplier: Factor | None = None
    artifact_collect_timeout_seconds: Factor | None = None
    artifact_limits: ArtifactLimits = Field(default_factory=ArtifactLimits)
    provider_limits: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    env_open_qps: Annotated[float, Field(ge=0)] = 0.0


class RunRuntimeSpec(Model):
    """Reuse: a non-empty `reuse_run_id` switches it on.

    `reuse_changed` takes tasks over whose input is another one by now. With `reuse_require_equal`
    a source that was asked for otherwise is refused.
    """

    reuse: bool | None = None
    reuse_run_id: str = ""
    reuse_changed: bool = False
    reuse_require_equal: bool = False

    @model_validator(mode="before")
    @classmethod
    def _an_id_enables_reuse(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("reuse_run_id"):
            return {**data, "reuse": True}
        return data


class OutputSpec(Model):
    """Where the run is put below the results directory."""

    run_name: str = ""
    run_id: str = ""


class RunMetadata(Model):
    """Where the request came from."""

    config_path: str | None = None
    recipe_dirs: list[str] = Field(default_factory=list)
    request_name: str | None = None

    @field_validator("config_path")
    @classmethod
    def _no_directory(cls, value: str | None) -> str | None:
        # A ledger tells nothing of the machine it was made on.
        return None if value is None else PurePath(value).name

    @field_serializer("recipe_dirs")
    def _last_part_of_absolute_paths(self, value: list[str]) -> list[str]:
        # They are loaded from where they are, and recorded without saying where that is.
        return [PurePath(path).name if PurePath(path).is_absolute() else path for path in value]


class RunRequest(Model):
    """The complete request of one run."""

    benchmark: BenchmarkSpec
    harness: HarnessSpec = Field(default_factory=HarnessSpec)
    environment: EnvironmentSpec = Field(default_factory=EnvironmentSpec)
    model: ModelSpec = Field(default_factory=ModelSpec)
    execution: ExecutionSpec = Field(default_factory=ExecutionSpec)
    runtime: RunRuntimeSpec = Field(default_factory=RunRuntimeSpec)
    output: OutputSpec = Field(default_factory=OutputSpec)
    metadata: RunMetadata = Field(default_factory=RunMetadata)

    def to_task_payload(self) -> dict[str, Any]:
        """The complete execution request as plain JSON values; not yet redacted."""
        return self.model_dump()

    def to_persistence_params(self) -> dict[str, Any]:
        """What storage and reuse need: benchmark, model, output, reuse and metadata."""
        return {
            "benchmark": self.benchmark.model_dump(),
            "model": self.model.model_dump(),
            "output": self.output.model_dump(),
            "reuse": self.runtime.model_dump(),
            "metadata": self.metadata.model_dump(),
        }
