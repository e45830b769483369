"""The options of `acl run`, each under the name of what it sets."""

from pathlib import Path
from typing import Annotated

import typer

Many = list[str] | None

File = Annotated[
    Path | None,
    typer.Option("-f", "--file", metavar="FILE", help="A YAML or JSON request, or a suite."),
]
Benchmark = Annotated[str | None, typer.Option(metavar="ID", help="Which tasks, e.g. acl-repair.")]
BenchmarkParam = Annotated[Many, typer.Option(metavar="NAME=VALUE")]
Limit = Annotated[int | None, typer.Option(metavar="N", help="Only the first N tasks.")]
Harness = Annotated[str | None, typer.Option(metavar="ID", help="Which agent, e.g. search.")]
HarnessParam = Annotated[Many, typer.Option(metavar="NAME=VALUE")]
Model = Annotated[str | None, typer.Option(metavar="ID", help="Which model answers.")]
ModelParam = Annotated[Many, typer.Option(metavar="NAME=VALUE")]
BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help="An OpenAI-compatible endpoint.")]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="NAME", help="The variable that holds its key.")
]
K = Annotated[int | None, typer.Option("--k", metavar="N", help="Attempts per task.")]
Strategy = Annotated[str | None, typer.Option(metavar="NAME", help="all or stop_on_correct.")]
MaxRetries = Annotated[
    int | None, typer.Option(metavar="N", help="Further tries of an attempt that failed.")
]
RetryMinDelay = Annotated[float | None, typer.Option(metavar="SECONDS")]
Concurrency = Annotated[int | None, typer.Option(metavar="N", help="Tasks at once.")]
ResultsDir = Annotated[Path, typer.Option(metavar="DIR")]
RunName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Directories above it, for runs that belong together."),
]
RunId = Annotated[str | None, typer.Option(metavar="ID", help="Its name (default: the time).")]
Reuse = Annotated[
    bool | None, typer.Option("--reuse", help="Reuse the newest run of the same kind.")
]
ReuseRunId = Annotated[
    str | None, typer.Option(metavar="ID", help="Reuse the finished tasks of this run.")
]
ReuseChanged = Annotated[
    bool | None, typer.Option("--reuse-changed", help="Reuse tasks also where their input changed.")
]
ReuseRequireEqual = Annotated[
    bool | None, typer.Option("--reuse-require-equal", help="Refuse a run that was run otherwise.")
]
NoExport = Annotated[bool, typer.Option("--no-export", help="Write no files beside the ledger.")]
LiveExport = Annotated[
    Path | None, typer.Option(metavar="DIR", help="A second place for the files.")
]
Artifacts = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Also a job below DIR, up to date while the run goes on."),
]
JobName = Annotated[
    str | None, typer.Option(metavar="NAME", help="The name of the job (default: as it began).")
]
FailUnder = Annotated[
    Many, typer.Option(metavar="METRIC=X", help="Exit 1 if a metric is lower; repeatable.")
]
RequireRegistry = Annotated[
    bool, typer.Option("--require-registry", help="Do not run without an entry in the registry.")
]
