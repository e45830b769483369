"""The request of a job in our words: an export of ours has it whole, Harbor's is put together."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from runtime.importers.details.request import completed, persistence_params
from runtime.importers.foreign import UNKNOWN, foreign_request
from runtime.importers.jobs.facts import Kind

__all__ = ["Asked", "asked", "our_own", "persistence_params"]

_SEVERAL: Final = "+"
_MAX_NAME: Final = 80


class Asked:
    """What stands for all kinds of a job: its dataset, agent and model."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.benchmark = _joined([kind.source or "adhoc" for kind in kinds])
        self.harness = _joined([kind.agent or UNKNOWN for kind in kinds])
        self.model = _joined([kind.model or "none" for kind in kinds])


def asked(
    kinds: Sequence[Kind], *, k: int, name: str, config: Mapping[str, Any], lock: Mapping[str, Any]
) -> dict[str, Any]:
    """The request of a job of Harbor's; its own configuration stands below `source`."""
    of = Asked(kinds)
    rest = {key: value for key, value in lock.items() if key != "trials"}
    return foreign_request(
        benchmark=of.benchmark,
        harness=of.harness,
        model=of.model,
        run_id=name,
        k=k,
        source={
            "format": "jobs",
            "evals": [kind.key for kind in kinds],
            "config": dict(config),
            "lock": rest,
        },
    )


def our_own(data: bytes, k: int) -> dict[str, Any] | None:
    """The request in the `config.yaml` of an export of ours; None if there is none."""
    try:
        document = yaml.safe_load(data.decode("utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return None
    value: Any = document
    for name in ("runtime_info", "input", "request"):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return None
    request, _ = completed(value, k)
    return request


def _joined(names: Sequence[str]) -> str:
    whole = _SEVERAL.join(dict.fromkeys(names)) or UNKNOWN
    return whole if len(whole) <= _MAX_NAME else "several"
