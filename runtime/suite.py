"""Several requests of one file that run under one limit, and which of them contradict each other.

A suite is `{name, task_concurrency, timeout_seconds, cleanup_grace_seconds, requests: [{name,
...request...}]}`.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ledger.errors import UsageError
from runtime.models import Model, RunRequest, Seconds
from runtime.paths import directory_name, run_root

Named = Annotated[str, Field(min_length=1)]


class NamedRequest(RunRequest):
    """A request of a suite, by the name under which its outcome is told."""

    name: Named

    def by_itself(self, task_concurrency: int) -> RunRequest:
        """The request as its run records it; `task_concurrency` is used where it has none."""
        execution, metadata = self.execution, self.metadata
        if "task_concurrency" not in execution.model_fields_set:
            execution = execution.model_copy(update={"task_concurrency": task_concurrency})
        fields = {name: getattr(self, name) for name in RunRequest.model_fields}
        fields["execution"] = execution
        fields["metadata"] = metadata.model_copy(update={"request_name": self.name})
        return RunRequest.model_validate(fields)


class Suite(Model):
    """Requests in the order in which they are begun; 0 seconds of time are no limit.

    `task_concurrency` bounds what runs at once in all requests together; a request's own
    `execution.task_concurrency`, where it has one, bounds its part in that.
    """

    name: str = ""
    task_concurrency: Annotated[int, Field(ge=1)] = 4
    timeout_seconds: Seconds = 0.0
    cleanup_grace_seconds: Seconds = 30.0
    requests: Annotated[list[NamedRequest], Field(min_length=1)]

    def run_requests(self) -> list[RunRequest]:
        """The requests as their runs record them, named in their metadata."""
        return [request.by_itself(self.task_concurrency) for request in self.requests]


def refuse_contradictions(suite: Suite, results_dir: Path) -> None:
    """Raise UsageError for requests of one name, of one output, or of which one might mean another.

    The last is R1's ambiguous reuse: the newest run is asked for where two requests have the same
    benchmark and model. Looks at nothing but the requests.
    """
    _refuse_same_names(suite.requests)
    _refuse_same_outputs(suite.requests, results_dir)
    _refuse_ambiguous_reuse(suite.requests)


def _refuse_same_names(requests: Sequence[NamedRequest]) -> None:
    positions: dict[str, int] = {}
    for position, request in enumerate(requests):
        first = positions.setdefault(request.name, position)
        if first != position:
            raise UsageError(
                f"requests {first} and {position} have the same name {request.name!r}",
                hint="give every request a name of its own; positions count from 0",
            )


def _refuse_same_outputs(requests: Sequence[NamedRequest], results_dir: Path) -> None:
    takers: dict[Path, str] = {}
    for request in requests:
        output = request.output
        if not output.run_id:
            continue
        try:
            root = run_root(results_dir, output.run_name, request.benchmark.id, request.model.id)
            place = root / directory_name(output.run_id, "run id")
        except UsageError:
            continue  # no name for a directory: that request fails when it comes to it
        first = takers.setdefault(place, request.name)
        if first != request.name:
            raise UsageError(
                f"requests {first!r} and {request.name!r} have the same output {place}",
                hint="give each a run_id or run_name of its own",
            )


def _refuse_ambiguous_reuse(requests: Sequence[NamedRequest]) -> None:
    alike: dict[tuple[str, str], list[NamedRequest]] = defaultdict(list)
    for request in requests:
        alike[request.benchmark.id, _normalized(request.model.id)].append(request)
    for group in alike.values():
        for request in group:
            if len(group) > 1 and request.runtime.reuse and not request.runtime.reuse_run_id:
                other = next(one.name for one in group if one is not request)
                raise UsageError(
                    f"request {request.name!r} reuses the newest run, but request {other!r} has"
                    " the same benchmark and model",
                    hint="name the run to be reused: reuse_run_id",
                )


def _normalized(model_id: str) -> str:
    try:
        return directory_name(model_id, "model id")
    except UsageError:
        return model_id
