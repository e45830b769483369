"""What a reused run was asked for otherwise than the run that reuses it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from ledger import canonical
from ledger.events import Differing
from ledger.state import RunState
from runtime.comparison import request_differences
from runtime.models import BenchmarkSpec, EnvironmentSpec, HarnessSpec, ModelSpec, RunRequest
from runtime.redact import Redactor
from runtime.reuse_makers import Makers, put_back

_SECTIONS: Final[dict[str, type[BaseModel]]] = {
    "benchmark": BenchmarkSpec,
    "harness": HarnessSpec,
    "environment": EnvironmentSpec,
    "model": ModelSpec,
}
_SELECTION: Final = frozenset({"limit", "task_ids", "category"})
_ATTEMPTS: Final = ("execution.k", "execution.strategy")
_LONGEST: Final = 80
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Settings:
    """What is compared: `before` of the source, `now` of the request; k and strategy of both."""

    before: dict[str, Any]
    now: dict[str, Any]
    attempts_before: tuple[Any, ...]
    attempts_now: tuple[Any, ...]

    def differences(self) -> tuple[Differing, ...]:
        """What the source was asked for otherwise, in order."""
        found = [
            Differing(path=setting.path, before=setting.before, now=setting.after)
            for setting in request_differences(self.before, self.now)
        ]
        attempts = zip(_ATTEMPTS, self.attempts_before, self.attempts_now, strict=True)
        found += [Differing(path=path, before=a, now=b) for path, a, b in attempts if a != b]
        return tuple(found)


def differing_settings(
    source: RunState, request: RunRequest, version: str | None, redactor: Redactor
) -> tuple[Differing, ...]:
    """Name every setting that the source had otherwise, in order, as the source recorded it.

    Compared are version and parameters of the benchmark (but for which tasks were selected),
    harness, environment and model, then k and strategy. Secrets are masked on both sides, so that
    two of them are never told apart.
    """
    return settings_of(source, request, version, redactor).differences()


def settings_of(
    source: RunState, request: RunRequest, version: str | None, redactor: Redactor
) -> Settings:
    """The settings of both, as far as they are compared, with secrets masked."""
    payload, _ = redactor.redact({"request": request.to_task_payload()})
    now = {name: _section(payload["request"], name) for name in _SECTIONS}
    before = {name: _section(source.request, name) for name in _SECTIONS}
    if version is not None and source.benchmark is not None:
        before["benchmark"]["version"] = source.benchmark_version
        now["benchmark"]["version"] = version
    execution = request.execution
    return Settings(before, now, (source.k, source.strategy), (execution.k, execution.strategy))


def differing_makers(settings: Settings, makers: Makers) -> tuple[Differing, ...]:
    """Name what the tasks of a source ran with otherwise, whoever ran them.

    What another run than the source ran has its `run_id`. What the source was asked for does not
    matter, but for k and strategy, where none of its tasks ran with that.
    """
    direct = settings.differences()
    found = list(direct if makers.itself else of_attempts(direct))
    for run_id, differences in makers.others.items():
        before = put_back(settings.before, tuple(of_configuration(differences)))
        found += [
            Differing(path=one.path, before=one.before, now=one.after, run_id=run_id)
            for one in request_differences(before, settings.now)
        ]
    return tuple(found)


def _section(request: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of a request with what it leaves out filled in; as it stands if it is foreign."""
    given = request.get(name)
    section = dict(given) if isinstance(given, Mapping) else {}
    with suppress(ValidationError):
        section = _SECTIONS[name].model_validate(section).model_dump()
    # A key says nothing of the model that it opens, and a selection changes no task.
    section.pop("api_key", None)
    if name == "benchmark" and isinstance(section.get("params"), Mapping):
        params = section["params"].items()
        section["params"] = {key: value for key, value in params if key not in _SELECTION}
    return section


def of_configuration(differences: Sequence[Differing]) -> list[Differing]:
    """Those that make it another configuration; with another k or strategy it is still the same."""
    return [one for one in differences if one.path not in _ATTEMPTS]


def of_attempts(differences: Sequence[Differing]) -> list[Differing]:
    """Those of k and strategy."""
    return [one for one in differences if one.path in _ATTEMPTS]


def spoken(differences: Sequence[Differing]) -> Iterator[str]:
    """A line for each, the values as JSON; long ones are cut, and of many the first are told."""
    for one in differences[:_SHOWN]:
        of = f" (tasks of run {one.run_id!r})" if one.run_id is not None else ""
        yield f"{one.path} was {_value(one.before)}, is {_value(one.now)}{of}"
    if len(differences) > _SHOWN:
        yield f"and {len(differences) - _SHOWN} more"


def _value(value: Any) -> str:
    text = canonical.encode(value).decode()
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
