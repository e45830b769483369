"""What a job needs to know of each of its trials: small, so that those of all are kept."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from runtime.importers.atif.counting import count, number
from runtime.importers.jobs.rewards import Rewards, rewards_of
from runtime.importers.times import utc

ADHOC: Final = "adhoc"
"""Harbor's dataset name for tasks of none."""
MAX_NUMBER: Final = 2**32
"""Attempts of events have smaller numbers."""
CUT_AT: Final = 32
"""Characters of a task's name that Harbor puts into a trial's."""

# Harbor adds seven random characters, we the number of the attempt.
_ADDED: Final = re.compile(r"(.+)__(?:[A-Za-z0-9]{7}|[1-9][0-9]{0,8})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Kind:
    """What is measured apart: an agent with a model on a dataset. None: nothing says."""

    agent: str | None
    model: str | None
    source: str | None

    @property
    def key(self) -> str:
        """The key of Harbor's `stats.evals`."""
        parts = (self.agent or "unknown", self.model, self.source or ADHOC)
        return "__".join(part for part in parts if part)

    @property
    def player(self) -> str:
        """The agent with its model."""
        return "__".join(part for part in (self.agent or "unknown", self.model) if part)


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and dollars as `agent_result` tells them; None is unknown. Input holds the cached."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | int | None = None

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Self:
        """The sums over the agent's results of a trial: its own, or those of its steps."""
        contexts = [result.get("agent_result")]
        if not isinstance(contexts[0], dict):
            steps = result.get("step_results")
            contexts = [
                step.get("agent_result")
                for step in (steps if isinstance(steps, list) else [])
                if isinstance(step, dict)
            ]
        seen = [context for context in contexts if isinstance(context, dict)]
        return cls(
            input_tokens=_total([count(one.get("n_input_tokens")) for one in seen]),
            cached_tokens=_total([count(one.get("n_cache_tokens")) for one in seen]),
            output_tokens=_total([count(one.get("n_output_tokens")) for one in seen]),
            cost_usd=_total([number(one.get("cost_usd")) for one in seen]),
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """One trial. `ended` is False where it has no `result.json` that can be read.

    Times are in UTC, or as they were told; `number` is the attempt's where an export of ours
    says it, and `resolved` whether a score was enough there. `configured` is what the trial was
    asked to be: agents call themselves otherwise. `exception` is the name of a type.
    """

    name: str
    task_name: str | None
    task_id: str | None
    kind: Kind
    checksum: str | None
    started_at: str | None
    finished_at: str | None
    ended: bool
    rewards: Rewards | None
    exception: str | None
    spent: Spent
    number: int | None = None
    resolved: bool | None = None
    configured: Kind | None = None
    provider: str | None = None


def facts_of(name: str, result: Mapping[str, Any] | None, config: Mapping[str, Any]) -> Facts:
    """What the result of a trial says, or, without one, what it was configured to do."""
    if result is None:
        return _planned(name, config)
    info = _object(result.get("agent_info"))
    model = _object(info.get("model_info"))
    exception = _object(result.get("exception_info")).get("exception_type")
    kind = Kind(
        agent=_text(info.get("name")),
        model=_text(model.get("name")),
        source=_text(result.get("source")),
    )
    ours = _object(result.get("acl"))
    attempt, resolved = ours.get("attempt"), ours.get("resolved")
    task = result.get("task_id")
    return Facts(
        name=name,
        task_name=_text(result.get("task_name")),
        task_id=_words(task),
        kind=kind,
        checksum=_text(result.get("task_checksum")),
        started_at=_time(result.get("started_at")),
        finished_at=_time(result.get("finished_at")),
        ended=True,
        rewards=rewards_of(result.get("verifier_result"))[0],
        exception=exception if isinstance(exception, str) else None,
        spent=Spent.of(result),
        number=attempt if type(attempt) is int and 0 < attempt < MAX_NUMBER else None,
        resolved=resolved if isinstance(resolved, bool) and ours.get("correct") is None else None,
        configured=kind_of(_object(result.get("config"))),
        provider=_text(model.get("provider")),
    )


def kind_of(config: Mapping[str, Any]) -> Kind:
    """The agent, model and dataset that a trial was configured with."""
    agent, task = _object(config.get("agent")), _object(config.get("task"))
    return Kind(
        agent=_text(agent.get("name")) or _text(agent.get("import_path")),
        model=plain_model(_text(agent.get("model_name"))),
        source=_text(task.get("source")),
    )


def plain_model(name: str | None) -> str | None:
    """The name of a model without its provider, as Harbor divides it."""
    return None if name is None else name.partition("/")[2] or name


def task_name_of(task: Mapping[str, Any]) -> str | None:
    """The name of a configured task: its own, or the last part of its path."""
    name, path = _text(task.get("name")), _text(task.get("path"))
    return name or (path.rstrip("/").rpartition("/")[2] if path else None)


def name_in(trial: str) -> str:
    """What a trial's directory says of its task: the beginning of its name."""
    match = _ADDED.fullmatch(trial)
    return match[1] if match else trial


def _planned(name: str, config: Mapping[str, Any]) -> Facts:
    task = _object(config.get("task"))
    return Facts(
        name=name,
        task_name=task_name_of(task),
        task_id=None,
        kind=kind_of(config),
        checksum=None,
        started_at=None,
        finished_at=None,
        ended=False,
        rewards=None,
        exception=None,
        spent=Spent(),
    )


def _words(task: Any) -> str | None:
    """The id of a task in one line: what tells tasks of one name apart."""
    if not isinstance(task, dict):
        return None
    parts = ("git_url", "git_commit_id", "org", "name", "ref", "path")
    return " ".join(task[part] for part in parts if isinstance(task.get(part), str)) or None


def _time(value: Any) -> str | None:
    return utc(value) or _text(value)


def _total(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
