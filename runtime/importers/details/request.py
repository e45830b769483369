"""The request of a run in this layout: ours as it is, another program's made complete."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from runtime.models import Strategy

UNKNOWN: Final = "unknown"
_SECTIONS: Final = ("benchmark", "harness", "model")
_PARAMS: Final = ("benchmark", "model", "output")
_STRATEGIES: Final = get_args(Strategy)


def completed(given: Mapping[str, Any], k: int | None) -> tuple[dict[str, Any], bool]:
    """The request with what every reader relies on, and whether anything had to be replaced.

    `k` is used where it says nothing of attempts: what records say.
    """
    request = dict(given)
    for name in _SECTIONS:
        section = section_of(request, name)
        if not isinstance(section.get("id"), str):
            request[name] = {**section, "id": UNKNOWN}
    execution = section_of(request, "execution")
    if type(execution.get("k")) is not int or execution["k"] < 1:
        execution = {**execution, "k": k or 1}
    if execution.get("strategy") not in _STRATEGIES:
        execution = {**execution, "strategy": _STRATEGIES[0]}
    if execution != request.get("execution"):
        request["execution"] = execution
    return request, any(name in given and given[name] != request[name] for name in request)


def persistence_params(params: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """What `params.json` says, and from the request what it leaves out."""
    told = {name: section_of(params if name in params else request, name) for name in _PARAMS}
    more = {"reuse": section_of(request, "runtime"), "metadata": section_of(request, "metadata")}
    return {**more, **params, **told}


def section_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section that is an object, or an empty one."""
    section = value.get(name)
    return section if isinstance(section, dict) else {}


def text(value: Any) -> str:
    """A text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def text_or_none(value: Any) -> str | None:
    """A text, or None for anything else."""
    return value if isinstance(value, str) else None
