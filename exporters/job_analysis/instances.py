"""The instances of an analysis: one for each task, or for each attempt; `instances.jsonl`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from exporters import OutFile
from exporters.job_analysis.components import Pathologies, component_scores
from exporters.job_analysis.config import AnalysisConfig
from exporters.job_analysis.difficulty import Tier, tier_of
from exporters.job_analysis.facts import Facts, read_facts
from exporters.job_analysis.features import Found, features_of
from exporters.job_analysis.patches import Feature
from exporters.job_analysis.rules import Diagnosis, diagnose
from exporters.jobs.names import trial_names
from exporters.jobs.numbers import rounded
from exporters.jobs.resolution import (
    countable_attempts,
    is_resolved,
    selected_attempt,
    trials,
)
from exporters.jobs.trial import harness_id, model_id
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import Blobs

Group = Literal["resolved", "unresolved", "error", "cancelled"]

INSTANCES: Final = "instances.jsonl"
_DESCRIBING: Final = ("difficulty", "domain", "bug_type", "tags", "patch", "gold_patch")
_TAGS: Final = 4


@dataclass(frozen=True, slots=True)
class Instance:
    """One row. `group`: unresolved has a verdict, error has none, cancelled was given up.

    `features` and `scores` are numbers or None; `numbers` are those of the task's metadata.
    """

    id: str
    task_id: str
    attempt: int
    group: Group
    status: str | None
    score: float | None
    attempts_tried: int
    resolved_attempts: int
    first_resolved_attempt: int | None
    retries: int
    category: str | None
    label: str | None
    tier: Tier
    domain: str | None
    bug_type: str | None
    tags: tuple[str, ...]
    numbers: dict[str, float]
    trial: str
    calls: int
    calls_lost: int
    is_observed: bool
    features: dict[str, Feature]
    scores: dict[str, float | None]
    diagnosis: Diagnosis
    flags: tuple[str, ...]
    finished: int | None
    finished_hash: str | None
    plan_hash: str | None

    @property
    def resolved(self) -> bool:
        """Whether it was solved."""
        return self.group == "resolved"

    @property
    def lacks_metadata(self) -> bool:
        """Whether nothing is known of its task but its name."""
        return "missing_metadata" in self.flags

    def tag(self, number: int) -> str | None:
        """Tag `number` of the task, from 1."""
        return self.tags[number - 1] if number <= len(self.tags) else None


def read_instances(state: RunState, blobs: Blobs, config: AnalysisConfig) -> list[Instance]:
    """All instances, sorted by id, the events of each read one at a time.

    An instance is the selected attempt of a task, or with the unit `attempt` each that counts.
    Tasks of which no attempt ended have none.
    """
    names = trial_names(state)
    found = [
        _Row(state, blobs, config, task, attempt, names).read()
        for task, attempt in _chosen(state, config)
    ]
    kept = (one for one in found if _is_in_scope(one, config))
    return sorted(kept, key=lambda one: (one.id, one.attempt))


def _chosen(state: RunState, config: AnalysisConfig) -> Iterator[tuple[TaskState, AttemptState]]:
    if config.analysis.unit == "attempt":
        yield from trials(state)
        return
    for task in state.tasks.values():
        attempt = selected_attempt(task)
        if attempt is not None:
            yield task, attempt


def _is_in_scope(one: Instance, config: AnalysisConfig) -> bool:
    scope = config.analysis
    if one.resolved and not scope.include_resolved:
        return False
    if one.group == "error" and not scope.include_errors:
        return False
    return scope.include_empty_patch or one.diagnosis.axes["answer"] != "empty"


@dataclass(frozen=True, slots=True)
class _Row:
    """What one instance is made of."""

    state: RunState
    blobs: Blobs
    config: AnalysisConfig
    task: TaskState
    attempt: AttemptState
    names: dict[tuple[str, int], str]

    def read(self) -> Instance:
        task, attempt = self.task, self.attempt
        facts = read_facts(
            self.state,
            task,
            attempt,
            self.blobs,
            max_iterations_default=self.config.data.max_iterations_default,
        )
        found = features_of(facts, self.config.features)
        each = self.config.analysis.unit == "attempt"
        countable = countable_attempts(task)
        resolved = [one.number for one in countable if is_resolved(task, one)]
        tags = _tags(task.metadata)
        address = attempt.finished_address
        return Instance(
            id=f"{task.id}#{attempt.number}" if each else task.id,
            task_id=task.id,
            attempt=attempt.number,
            group=_group(facts),
            status=attempt.status,
            score=rounded(attempt.score),
            attempts_tried=len(countable),
            resolved_attempts=len(resolved),
            first_resolved_attempt=min(resolved, default=None),
            retries=len(attempt.retries),
            category=task.category,
            label=_text(task.metadata, "difficulty"),
            tier=tier_of(task, self.config),
            domain=_text(task.metadata, "domain") or _at(tags, 1),
            bug_type=_text(task.metadata, "bug_type") or _at(tags, 3),
            tags=tags,
            numbers=_numbers(task.metadata),
            trial=self.names.get((task.id, attempt.number), task.id),
            calls=len(facts.actions.calls),
            calls_lost=sum(one.call.lost for one in facts.actions.calls),
            is_observed=facts.actions.is_known,
            features=found.values,
            scores=self._scores(facts, found),
            diagnosis=diagnose(facts, found),
            flags=_flags(task, attempt, facts, found),
            finished=attempt.finished,
            finished_hash=None if address is None else address.hex(),
            plan_hash=facts.plan_hash,
        )

    def _scores(self, facts: Facts, found: Found) -> dict[str, float | None]:
        turns = found.values["assistant_turns"]
        scores = component_scores(
            facts.actions,
            delivered=facts.answered,
            turns=None if turns is None else int(turns),
            pathologies=Pathologies(
                loop=_truth(found.values["loop_detected"]),
                storm=_truth(found.values["tool_error_storm"]),
                truncated=_truth(found.values["context_truncation"]),
            ),
            weights=self.config.traj_analysis.weights,
            stp=self.config.traj_analysis.stp,
        )
        return {name: rounded(score) for name, score in scores.items()}


def _truth(value: Feature) -> bool | None:
    return value if isinstance(value, bool) else None


def _group(facts: Facts) -> Group:
    if facts.resolved:
        return "resolved"
    if facts.attempt.status == "cancelled":
        return "cancelled"
    return "unresolved" if facts.attempt.verdict else "error"


def _text(metadata: dict[str, Any], name: str) -> str | None:
    value = metadata.get(name)
    return value if isinstance(value, str) and value else None


def _tags(metadata: dict[str, Any]) -> tuple[str, ...]:
    """The tags by place: what is no text is told as its JSON."""
    given = metadata.get("tags")
    if not isinstance(given, list | tuple):
        return ()
    return tuple(tag if isinstance(tag, str) else json.dumps(tag) for tag in given)


def _at(tags: tuple[str, ...], place: int) -> str | None:
    return tags[place] or None if place < len(tags) else None


def _numbers(metadata: dict[str, Any]) -> dict[str, float]:
    """The numbers of the metadata by name; truth values, and what is no finite float, are none."""
    found: dict[str, float] = {}
    for name, value in metadata.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = rounded(value, 12)
            if number is not None:
                found[name] = number
    return found


def _flags(task: TaskState, attempt: AttemptState, facts: Facts, found: Found) -> tuple[str, ...]:
    calls = [one.call for one in facts.actions.calls]
    ends = [call.end for call in calls if call.end is not None and call.end.success]
    overlap = found.values["diff_hunk_overlap"]
    raised = {
        "alternative_fix": facts.resolved and overlap is not None and overlap < 0.5,
        "cost_unknown": any(end.cost_usd is None for end in ends),
        "erased": facts.erased,
        "llm_calls_lost": any(call.lost for call in calls),
        "missing_metadata": not any(task.metadata.get(name) for name in _DESCRIBING),
        "redacted_output": facts.redacted,
        "reused": task.reused or attempt.reused,
        "usage_estimated": any(end.usage is not None and end.usage.estimated for end in ends),
    }
    return tuple(name for name, is_raised in sorted(raised.items()) if is_raised)


# -- the file -------------------------------------------------------------------------------------


def instances_file(state: RunState, instances: list[Instance]) -> OutFile:
    """One compact JSON object a line."""
    scaffold, model = harness_id(state), model_id(state)
    lines = (_line(_document(one, state, scaffold, model)) for one in instances)
    return OutFile(INSTANCES, b"".join(lines))


def _line(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _document(one: Instance, state: RunState, scaffold: str, model: str | None) -> dict[str, Any]:
    diagnosis = one.diagnosis
    return {
        "instance_id": one.id,
        "task_id": one.task_id,
        "attempt": one.attempt,
        "resolved": one.resolved,
        "status": one.status,
        "score": one.score,
        "attempts_tried": one.attempts_tried,
        "resolved_attempts": one.resolved_attempts,
        "first_resolved_attempt": one.first_resolved_attempt,
        "retries": one.retries,
        "scaffold": scaffold,
        "model": model,
        "taxonomy_version": "acl-1",
        "judge_version": "none",
        "category": one.category,
        "difficulty_tier": one.tier.name,
        "difficulty_source": one.tier.source,
        **({} if one.tier.certain is None else {"tier_certain": one.tier.certain}),
        "domain": one.domain,
        "bug_type": one.bug_type,
        "tags": list(one.tags),
        "trajectory_metadata": {
            "trial_name": one.trial,
            "trajectory_layout": "acl_ledger",
            "n_llm_calls": one.calls,
            "n_llm_calls_lost": one.calls_lost,
        },
        "deterministic_features": one.features,
        "component_scores": one.scores,
        "axes": diagnosis.axes,
        "primary_failure": diagnosis.primary_failure,
        "primary": diagnosis.primary,
        "secondary_failures": list(diagnosis.secondary),
        "flags": list(one.flags),
        "correctness_verdict": diagnosis.verdict,
        "evidence_step_ids": list(diagnosis.steps),
        "evidence_events": list(diagnosis.evidence),
        "acl": {
            "run_id": state.run_id,
            "attempt.finished_seq": one.finished,
            "attempt.finished_hash": one.finished_hash,
            "plan_hash": one.plan_hash,
        },
    }
