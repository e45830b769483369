"""What the events of one attempt say, gathered for its features and rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from exporters.job_analysis.actions import Actions, read_actions
from exporters.job_analysis.patches import Patch, agent_patch, gold_patch
from exporters.jobs.resolution import is_resolved
from exporters.reading import Reading
from ledger import canonical
from ledger import events as ev
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import Blobs

RUN_PHASES: Final = frozenset({"run_harness", "run_task"})
EVALUATION_PHASES: Final = frozenset({"evaluate"})
_LIMITS: Final = ("max_iterations", "max_turns", "max_steps")


@dataclass(frozen=True, slots=True)
class Facts:
    """One attempt. `answered` and `answer_chars` are None where the answer is not known."""

    task: TaskState
    attempt: AttemptState
    imported: bool
    resolved: bool
    actions: Actions
    run_error: ev.ErrorInfo | None
    evaluation_error: ev.ErrorInfo | None
    answered: bool | None
    answer_chars: int | None
    run_seconds: float | None
    evaluation_seconds: float | None
    max_iterations: int | None
    run_timeout: float | None
    plan_hash: str | None
    redacted: bool
    erased: bool
    gold: Patch | None
    given: Patch | None


def read_facts(
    state: RunState,
    task: TaskState,
    attempt: AttemptState,
    blobs: Blobs,
    *,
    max_iterations_default: int | None = None,
) -> Facts:
    """Read the events of an attempt, one at a time; nothing large is kept."""
    reading = Reading(state, blobs)
    for seq in attempt.erased:
        reading.note(seq)
    result = reading.event(attempt.result, ev.ResultRecorded)
    verdict = reading.event(attempt.evaluation, ev.EvaluationFinished)
    end = reading.event(attempt.finished, ev.AttemptFinished)
    plan = reading.event(attempt.plan, ev.PlanResolved)
    actions = read_actions(attempt, reading, blobs)
    gold = gold_patch(task.metadata)
    answer = None if result is None else reading.value(attempt.result or 0, result.final_answer)
    given = None if gold is None else agent_patch(answer, _contents(attempt, reading))
    lost_answer = result is None and attempt.result is not None
    seconds = _Clock(attempt, blobs, imported=state.imported is not None)
    return Facts(
        task=task,
        attempt=attempt,
        imported=state.imported is not None,
        resolved=is_resolved(task, attempt),
        actions=actions,
        run_error=_run_error(attempt, result, end),
        evaluation_error=_evaluation_error(verdict, end),
        answered=None if lost_answer else _is_answer(answer),
        answer_chars=None if result is None else _characters(answer),
        run_seconds=seconds.of(RUN_PHASES),
        evaluation_seconds=seconds.of(EVALUATION_PHASES),
        max_iterations=_limit(plan, max_iterations_default),
        run_timeout=None if plan is None else plan.timeouts.get("run"),
        plan_hash=None if plan is None else plan.plan_hash,
        redacted=any(event is not None and event.redactions for event in (result, verdict)),
        erased=bool(reading.gaps),
        gold=gold,
        given=given,
    )


def _contents(attempt: AttemptState, reading: Reading) -> object:
    collected = reading.event(attempt.artifacts, ev.ArtifactsCollected)
    if collected is None or attempt.artifacts is None:
        return None
    return reading.value(attempt.artifacts, collected.contents)


def _run_error(
    attempt: AttemptState, result: ev.ResultRecorded | None, end: ev.AttemptFinished | None
) -> ev.ErrorInfo | None:
    if result is not None and result.error is not None:
        return result.error
    if end is not None and attempt.status != "eval_error":
        return end.error
    return None


def _evaluation_error(
    verdict: ev.EvaluationFinished | None, end: ev.AttemptFinished | None
) -> ev.ErrorInfo | None:
    if verdict is not None and verdict.evaluation_error is not None:
        return verdict.evaluation_error
    return end.error if end is not None and end.status == "eval_error" else None


def _is_answer(answer: object) -> bool:
    """Whether something was delivered: blank texts and empty values are nothing."""
    if isinstance(answer, str):
        return bool(answer.strip())
    return answer is not None and answer not in ({}, [])


def _characters(answer: object) -> int:
    """Characters of a text, or of the JSON of anything else; none for no answer."""
    if answer is None:
        return 0
    if isinstance(answer, str):
        return len(answer)
    return len(canonical.encode(answer).decode("utf-8", "replace"))


def _limit(plan: ev.PlanResolved | None, default: int | None) -> int | None:
    """How many iterations the agent had, by the parameters of the harness in its plan."""
    params = plan.plan.get("harness") if plan is not None else None
    given = [params.get(name) for name in _LIMITS] if isinstance(params, Mapping) else []
    return next((found for found in given if _is_limit(found)), default)


def _is_limit(value: Any) -> bool:
    return type(value) is int and value > 0


class _Clock:
    """How long the phases of the counted try took, in seconds."""

    def __init__(self, attempt: AttemptState, blobs: Blobs, *, imported: bool) -> None:
        self._attempt = attempt
        self._blobs = blobs
        self._imported = imported

    def of(self, names: frozenset[str]) -> float | None:
        """The sum over these phases; None where none was entered, or its end is not known.

        By the monotonic clock where the next phase tells it, else by the times of recording,
        which say nothing of an imported run.
        """
        phases = self._attempt.phases
        known: list[float | None] = []
        for place, seq in enumerate(phases):
            event = self._blobs.event(seq).event
            if isinstance(event, ev.PhaseEntered) and event.phase in names:
                following = phases[place + 1] if place + 1 < len(phases) else None
                known.append(self._duration(seq, event.phase, following))
        seconds = [one for one in known if one is not None]
        return sum(seconds) if seconds and len(seconds) == len(known) else None

    def _duration(self, seq: int, phase: str, following: int | None) -> float | None:
        after = None if following is None else self._blobs.event(following).event
        told = after if isinstance(after, ev.PhaseEntered) and after.previous == phase else None
        if told is not None and told.duration_ms is not None:
            return told.duration_ms / 1000
        ends = [*self._attempt.retries, self._attempt.finished, following]
        later = [end for end in ends if end is not None and end > seq]
        if not later or self._imported:
            return None
        begun, ended = (self._blobs.event(one).wall_ns for one in (seq, min(later)))
        return max(0, ended - begun) / 1e9
