"""What an analysis is asked for, as `analysis_config.yaml` holds it: self-contained, no paths.

The same ledger prefix and the same configuration give the same bytes, so the file that an
analysis wrote makes that analysis again.
"""

from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exporters import OutFile
from exporters.identity import Identity
from exporters.jobs.trial import dataset, harness_id, model_id
from ledger.errors import UsageError
from ledger.events.base import Text
from ledger.state import RunState

CONFIG_FILE = "analysis_config.yaml"

_Share = Annotated[float, Field(ge=0, le=1)]
_Inside = Annotated[float, Field(gt=0, lt=1)]
_Positive = Annotated[int, Field(ge=1)]
_Count = Annotated[int, Field(ge=0)]
_Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Data(_Section):
    """Where things are, relative to the job; `dataset_dir` is `<benchmark>@<version>`."""

    log_dir: Literal["."] = "."
    dataset_dir: Text | None = None
    trajectory_layout: Literal["acl_ledger"] = "acl_ledger"
    gold_source: Literal["acl_ledger"] = "acl_ledger"
    trajectory_subpath: Literal["agent/litellm-trajectory.jsonl"] = "agent/litellm-trajectory.jsonl"
    trial_result_file: Literal["result.json"] = "result.json"
    trial_report_subpath: Literal["verifier/report.json"] = "verifier/report.json"
    max_iterations_default: _Positive | None = None


class Output(_Section):
    """The names of what is written."""

    dir: Literal["analysis"] = "analysis"
    instances_jsonl: Literal["instances.jsonl"] = "instances.jsonl"
    report_json: Literal["report_failed.json"] = "report_failed.json"


class Scope(_Section):
    """What an instance is, and which instances are looked at."""

    unit: Literal["task", "attempt"] = "task"
    include_resolved: bool = True
    include_errors: bool = True
    include_empty_patch: bool = True


class Features(_Section):
    """From when on something counts as a pathology."""

    loop_threshold: Annotated[int, Field(ge=2)] = 3
    premature_stop_threshold: _Share = 0.3
    tool_error_storm_threshold: Annotated[int, Field(ge=2)] = 5


class Off(_Section):
    """A stage that this tool does not have."""

    enabled: Literal[False] = False


class Stage(_Section):
    """A stage that can be left out."""

    enabled: bool = True


class InstanceStage(Stage):
    """Tables and correlations over instances."""

    out_subdir: Literal["instance_analysis"] = "instance_analysis"


class Weights(_Section):
    """How much each component score counts in the composite one."""

    sub_score: _Share = 0.33
    stp_score: _Share = 0.27
    tvr_score: _Share = 0.23
    fec_score: _Share = 0.10
    dpi_score: _Share = 0.07


class Turns(_Section):
    """Of `stp_score`: full from `lo` to `hi` turns, none from `zero` on."""

    lo: _Positive = 1
    hi: _Positive = 80
    zero: _Positive = 200

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if not self.lo <= self.hi < self.zero:
            raise ValueError("lo <= hi < zero does not hold")
        return self


class TrajectoryStage(Stage):
    """How trajectories of resolved and unresolved instances differ."""

    out_subdir: Literal["traj_analysis"] = "traj_analysis"
    weights: Weights = Field(default_factory=Weights)
    stp: Turns = Field(default_factory=Turns)


class Bands(_Section):
    """The least rate of success of each empirical tier; below `hard` it is very_hard."""

    easy: _Share = 0.80
    medium: _Share = 0.50
    hard: _Share = 0.20

    @model_validator(mode="after")
    def _descending(self) -> Self:
        if not self.easy > self.medium > self.hard > 0:
            raise ValueError("easy > medium > hard > 0 does not hold")
        return self


class Difficulty(_Section):
    """How the tier of a task is found in other runs."""

    thresholds: Bands = Field(default_factory=Bands)
    min_attempts: _Positive = 5
    min_pairs: _Positive = 2


class PeerRun(_Section):
    """Another run whose attempts were counted, up to a size with a root."""

    run_id: Text
    ledger_id: str
    size: _Count
    root: _Hex32


class PeerTask(_Section):
    """What the other runs did at a task: n attempts of `pairs` (harness, model), k resolved."""

    n: _Positive
    k: _Count
    pairs: _Positive

    @model_validator(mode="after")
    def _part_of_n(self) -> Self:
        if self.k > self.n:
            raise ValueError("k is larger than n")
        return self


class EmpiricalSource(_Section):
    """The attempts of other runs, by task; kept with the analysis, so that it can be made again."""

    runs: list[PeerRun]
    tasks: dict[Text, PeerTask]


class Statistics(_Section):
    """Which statistics, and how they are written."""

    confidence: _Inside = 0.95
    alpha: _Inside = 0.05
    correction: Literal["benjamini_hochberg"] = "benjamini_hochberg"
    quantile: Literal["hyndman_fan_7"] = "hyndman_fan_7"
    mwu_exact_max_n: Annotated[int, Field(ge=0, le=60)] = 20
    rounding: Annotated[int, Field(ge=1, le=12)] = 6


class Salvage(_Section):
    """The first event of a damaged ledger that was not as stored."""

    damaged_at: _Count


class Source(_Section):
    """The prefix of a ledger that an analysis is of."""

    schema_: Annotated[str, Field(alias="schema")]
    run_id: Text
    ledger_id: str
    size: _Count
    root: _Hex32
    salvaged: Salvage | None = None


class AnalysisConfig(_Section):
    """All options. What follows from the run (`scaffold`, `acl`, ...) is filled in by `of_run`."""

    data: Data = Field(default_factory=Data)
    output: Output = Field(default_factory=Output)
    analysis: Scope = Field(default_factory=Scope)
    features: Features = Field(default_factory=Features)
    judge: Off = Field(default_factory=Off)
    hack_detector: Off = Field(default_factory=Off)
    task_analysis: Stage = Field(default_factory=Stage)
    instance_analysis: InstanceStage = Field(default_factory=InstanceStage)
    traj_analysis: TrajectoryStage = Field(default_factory=TrajectoryStage)
    skip_main_pipeline: Literal[False] = False
    scaffold: Text | None = None
    model: Text | None = None
    taxonomy_version: Literal["acl-1"] = "acl-1"
    judge_version: Literal["none"] = "none"
    difficulty: Difficulty = Field(default_factory=Difficulty)
    empirical_source: EmpiricalSource | None = None
    statistics: Statistics = Field(default_factory=Statistics)
    acl: Source | None = None

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a configuration; missing sections take their defaults.

        Raises UsageError for what is no YAML, for a field that is not known, or a wrong value.
        """
        try:
            data = yaml.safe_load(text)
            return cls.model_validate({} if data is None else data)
        except yaml.YAMLError as error:
            raise UsageError(f"the analysis configuration is no YAML: {_line(error)}") from None
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"])) or "the whole file"
            raise UsageError(f"analysis configuration, {where}: {fault['msg']}") from None

    def of_run(self, state: RunState) -> Self:
        """The same options for this prefix of this run."""
        trailer = Identity.of(state).trailer()
        changes = {
            "data": self.data.model_copy(update={"dataset_dir": dataset(state)}),
            "scaffold": harness_id(state),
            "model": model_id(state),
            "acl": Source.model_validate(trailer),
        }
        return self.model_copy(update=changes)

    def to_yaml(self) -> bytes:
        """The text of `analysis_config.yaml`."""
        document = self.model_dump(mode="json", by_alias=True)
        if self.acl is not None and self.acl.salvaged is None:
            del document["acl"]["salvaged"]
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
        return text.encode("utf-8")


def config_file(config: AnalysisConfig) -> OutFile:
    """The configuration as a file of the analysis."""
    return OutFile(CONFIG_FILE, config.to_yaml())


def _line(error: Any) -> str:
    return " ".join(str(error).split())
