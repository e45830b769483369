"""Parameters of the built-in benchmarks: which tasks, and no name that nobody reads."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from ledger.errors import UsageError
from runtime.models import Model


class TaskParams(Model):
    """`tasks` is how many there are; the rest is applied by `Benchmark.select_tasks`."""

    tasks: int = Field(default=60, ge=0)
    seed: int = 1
    task_ids: list[str] | None = None
    category: str | None = None
    limit: int | None = Field(default=None, ge=0)


def read_params(params: Mapping[str, Any], *, seeded: bool) -> TaskParams:
    """Parse the parameters of a benchmark; UsageError names the wrong one."""
    if not seeded and "seed" in params:
        raise UsageError("benchmark parameter seed: these tasks are fixed")
    try:
        return TaskParams.model_validate(dict(params))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = ".".join(map(str, fault["loc"]))
        raise UsageError(f"benchmark parameter {name}: {fault['msg']}") from None
