"""What `acl run` is asked for: a request or a suite, from a file and the flags that override it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ledger.errors import UsageError
from runtime.models import RunRequest
from runtime.suite import Suite

# Flags of `acl run` and the place of each in a request.
FLAGS = {
    "benchmark": ("benchmark", "id"),
    "harness": ("harness", "id"),
    "model": ("model", "id"),
    "base_url": ("model", "base_url"),
    "k": ("execution", "k"),
    "strategy": ("execution", "strategy"),
    "max_retries": ("execution", "max_retries"),
    "retry_min_delay": ("execution", "retry_min_delay_seconds"),
    "concurrency": ("execution", "task_concurrency"),
    "limit": ("benchmark", "params", "limit"),
    "run_name": ("output", "run_name"),
    "run_id": ("output", "run_id"),
    "reuse": ("runtime", "reuse"),
    "reuse_run_id": ("runtime", "reuse_run_id"),
    "reuse_changed": ("runtime", "reuse_changed"),
    "reuse_require_equal": ("runtime", "reuse_require_equal"),
}


def read_requested(file: Path | None, flags: Mapping[str, Any]) -> RunRequest | Suite:
    """The request or suite of `file` (YAML or JSON; none: empty), `flags` that are not None on top.

    `benchmark_param`, `harness_param` and `model_param` are lists of NAME=VALUE, VALUE in YAML.
    In a suite flags are for every request, but `concurrency` is for all together, and `run_id` is
    refused. Raises UsageError that names the file and field of whatever is wrong.
    """
    data = _read(file) if file else {}
    is_suite = "requests" in data
    if is_suite:
        _override_suite(data, flags, file)
    else:
        _override(data, flags, file)
        if not data.get("benchmark"):
            raise UsageError("no benchmark", hint="give --benchmark ID or a request file with -f")
    try:
        return Suite.model_validate(data) if is_suite else RunRequest.model_validate(data)
    except ValidationError as error:
        raise UsageError(_first(error, file)) from error


def _read(file: Path) -> dict[str, Any]:
    try:
        data = yaml.load(file.read_text(encoding="utf-8"), Loader=_StrictLoader)  # noqa: S506 - safe
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text") from error
    except RecursionError as error:
        raise UsageError(f"{file} is nested too deeply") from error
    except yaml.YAMLError as error:
        # Only where it is and what is wrong: the line itself may hold a key.
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise UsageError(f"{file}{where} is neither YAML nor JSON: {problem}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{file} does not hold a request", hint="it is a mapping with `benchmark`")
    return data


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML would silently take the last."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """The mapping of `node`."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _override_suite(data: dict[str, Any], flags: Mapping[str, Any], file: Path | None) -> None:
    if flags.get("run_id") is not None:
        raise UsageError(
            f"--run-id names one run, and {file} has several requests",
            hint="give each its output.run_id in the file, or --run-name to keep them together",
        )
    if flags.get("concurrency") is not None:
        data["task_concurrency"] = flags["concurrency"]
    each = {name: value for name, value in flags.items() if name != "concurrency"}
    requests = data["requests"]
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, dict):
            _override(request, each, file)


def _override(data: dict[str, Any], flags: Mapping[str, Any], file: Path | None) -> None:
    """Put what the flags say into one request."""
    for flag, where in FLAGS.items():
        if flags.get(flag) is not None:
            _put(data, where, flags[flag])
    for part in ("benchmark", "harness", "model"):
        for assignment in flags.get(f"{part}_param") or ():
            name, value = _assignment(assignment)
            _put(data, (part, "params", name), value)
    if flags.get("api_key_env"):
        _put(data, ("model", "api_key"), {"env": flags["api_key_env"]})
    if file:
        _put(data, ("metadata", "config_path"), file.name)


def _put(data: dict[str, Any], where: tuple[str, ...], value: Any) -> None:
    for key in where[:-1]:
        data = data.setdefault(key, {})
        if not isinstance(data, dict):
            return  # the model tells of it, with the place
    data[where[-1]] = value


def _assignment(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{text!r} is not NAME=VALUE")
    return name, yaml.safe_load(value)


def _first(error: ValidationError, file: Path | None) -> str:
    """One line of the faults: where each is and what is wrong with it; values are not told."""
    faults = []
    for fault in error.errors(include_url=False, include_input=False):
        where = ".".join(str(part) for part in fault["loc"])
        words = "unknown field" if fault["type"] == "extra_forbidden" else fault["msg"]
        faults.append(f"{where}: {words}")
    return f"{file or 'request'}: " + "; ".join(dict.fromkeys(faults))


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What `--fail-under` asks of the metrics: the least value of each name."""

    least: Mapping[str, float]

    def missed(self, metrics: Mapping[str, float]) -> list[str]:
        """A sentence for each metric that is lower, or has no value."""
        sentences = []
        for name, least in self.least.items():
            if name not in metrics:
                known = ", ".join(metrics) or "none"
                sentences.append(f"{name} has no value, {least} is wanted; metrics: {known}")
            elif metrics[name] < least:
                sentences.append(f"{name} is {metrics[name]}, below {least}")
        return sentences


def read_thresholds(assignments: Iterable[str]) -> Thresholds:
    """Parse METRIC=X of `--fail-under`; UsageError for what is no number."""
    least: dict[str, float] = {}
    for assignment in assignments:
        name, value = _assignment(assignment)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"--fail-under {assignment}: {value!r} is not a number")
        least[name] = value
    return Thresholds(least)
