"""The request of an AgentCompass run in our words, its own words kept beside them.

Strategy `avg` makes all k attempts, `pass` stops at the first correct one: our `all` and
`stop_on_correct`. Every other option goes where ours has the same name; what has no place, and
what our models refuse, stands below `source`.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from runtime.models import RunRequest

STRATEGIES: Final = {"avg": "all", "pass": "stop_on_correct"}
_MEGABYTE: Final = 1024 * 1024
_LISTS: Final = frozenset({"enabled_recipes", "exclude_analyzers", "recipe_dirs"})


def our_request(source: Mapping[str, Any], run_id: str) -> RunRequest:
    """Our request for the `request` of run_info.json (or for params.json, which has less)."""
    sections: dict[str, dict[str, Any]] = {
        name: _object(source.get(name)) for name in RunRequest.model_fields
    }
    sections["execution"] = _execution(sections["execution"])
    sections["output"]["run_id"] = run_id
    # Keys never come here: where the source had one, it is masked or named.
    sections["model"].pop("api_key", None)
    fitting = {
        name: _fitting(field.annotation, sections[name])
        for name, field in RunRequest.model_fields.items()
    }
    for name in ("benchmark", "model"):
        fitting[name].setdefault("id", "unknown")
    return RunRequest.model_validate(fitting)


def payload(request: RunRequest) -> dict[str, Any]:
    """The request as plain values, each as it was read: JSON mode would turn NaN into null."""
    return request.model_dump(mode="python")


def persistence_params(values: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a payload that `RunRequest.to_persistence_params` gives."""
    return {
        "benchmark": values["benchmark"],
        "model": values["model"],
        "output": values["output"],
        "reuse": values["runtime"],
        "metadata": values["metadata"],
    }


def strategy_of(execution: Mapping[str, Any]) -> str | None:
    """The strategy in the source's word."""
    word = _object(execution.get("attempts")).get("strategy")
    return word if isinstance(word, str) else None


def _execution(source: dict[str, Any]) -> dict[str, Any]:
    ours = dict(source)
    attempts = _object(source.get("attempts"))
    ours["k"] = attempts.get("k", 1)
    ours["strategy"] = STRATEGIES.get(strategy_of(source) or "", "all")
    analysis = _object(source.get("analysis_params"))
    ours |= {key: analysis[key] for key in ("analyzers", "exclude_analyzers") if key in analysis}
    limits = _object(source.get("artifact_limits"))
    if type(limits.get("max_mb")) is int:
        ours["artifact_limits"] = {
            "max_files": limits.get("max_files", 0),
            "max_bytes": limits["max_mb"] * _MEGABYTE,
        }
    return ours


def _fitting(model: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The values that a section of our request has a field for and does not refuse."""
    assert issubclass(model, BaseModel)
    known = {
        key: value
        for key, value in values.items()
        if key in model.model_fields and not (value is None and key in _LISTS)
    }
    try:
        model.model_validate(known)
    except ValidationError as error:
        refused = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
        return {key: value for key, value in known.items() if key not in refused}
    return known


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
