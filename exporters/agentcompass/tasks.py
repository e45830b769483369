"""The files of one task that this program ran."""

from collections.abc import Iterator

from exporters import OutFile
from exporters.agentcompass.issues import error_issue, severities
from exporters.agentcompass.places import State, retry_name, task_directory
from exporters.agentcompass.report import AttemptScore, TaskScore, category_of
from exporters.agentcompass.result import AttemptTold, issues_of, tell_attempt
from exporters.agentcompass.scoring import Scoring
from exporters.identity import Identity
from exporters.jsontext import JsonText
from exporters.reading import Reading
from exporters.record import has_record
from ledger.events import AttemptRetried
from ledger.state import AttemptState, RunState, TaskState
from ledger.view import Blobs

TASK_SCHEMA = "agentcompass.task.v3"
RETRY_SCHEMA = "agentcompass.retry.v1"


def is_published(task: TaskState) -> bool:
    """Whether the task has a result there; without one it is told as running."""
    return has_record(task) and bool(task.attempts)


class TaskFiles:
    """Tells one task; `score` says, once its files were made, what it gives to the report."""

    def __init__(self, task: TaskState, scoring: Scoring, state: RunState, blobs: Blobs) -> None:
        self.score: TaskScore | None = None
        self._task = task
        self._scoring = scoring
        self._state = state
        self._blobs = blobs

    def make(self) -> Iterator[OutFile]:
        """The files, `task.json` last, for where they stand depends on all attempts."""
        task = self._task
        ended = [a for _, a in sorted(task.attempts.items()) if a.status is not None]
        scores = [self._scored(attempt) for attempt in ended]
        directory = f"details/{self._place(scores)}/{task_directory(task.id)}"
        truths: list[object] = []
        for attempt in ended:
            reading = Reading(self._state, self._blobs)
            here = f"{directory}/attempt-{attempt.number}"
            told = tell_attempt(attempt, self._scoring, reading, here)
            truths.append(told.ground_truth)
            yield OutFile(f"{here}/result.json", JsonText(told.document))
            yield from _artifacts(told, here)
        for number in sorted(task.attempts):
            yield from self._retries(task.attempts[number], directory)
        yield OutFile(f"{directory}/task.json", JsonText(self._index(truths)))
        if is_published(task):
            self.score = TaskScore(category_of(task.category), tuple(scores))

    def _scored(self, attempt: AttemptState) -> AttemptScore:
        issues = issues_of(attempt, Reading(self._state, self._blobs))
        return AttemptScore(
            attempt.number,
            str(attempt.status),
            self._scoring.measures(attempt),
            frozenset(severities(issues)),
        )

    def _place(self, scores: list[AttemptScore]) -> State:
        if not is_published(self._task):
            return "running"
        found = frozenset[str]().union(*(score.severities for score in scores))
        return "fatal" if "fatal" in found else "error" if "error" in found else "normal"

    def _index(self, truths: list[object]) -> dict[str, object]:
        task = self._task
        return {
            "schema_version": TASK_SCHEMA,
            "task_id": task.id,
            "attempts": {str(n): f"attempt-{n}" for n in sorted(task.attempts)},
            "category": task.category or None,
            "ground_truth": next((truth for truth in truths if truth is not None), None),
            "attempt_plan": self._scoring.plan(),
            "acl": Identity.of(self._state).trailer(),
        }

    def _retries(self, attempt: AttemptState, directory: str) -> Iterator[OutFile]:
        for seq in attempt.retries:
            reading = Reading(self._state, self._blobs)
            event = reading.event(seq, AttemptRetried)
            if event is None:
                continue
            phase = "evaluate" if event.scope == "evaluate" else "run"
            document: dict[str, object] = {
                "schema_version": RETRY_SCHEMA,
                "task_id": self._task.id,
                "category": self._task.category or "",
                "attempt": attempt.number,
                "retry": event.retry,
                "max_retries": event.max_retries,
                "retry_delay_seconds": event.retry_delay_seconds,
                "stage": event.stage,
                "scope": event.scope,
                "matched_pattern": event.matched_pattern,
                "issues": [error_issue(event.error, phase)],
                "discarded_result": reading.value(seq, event.discarded_result),
                "acl": Identity.of(self._state).trailer(event=seq),
            }
            name = retry_name(self._task.id, attempt.number, event.retry, event.stage)
            path = f"{directory}/attempt-{attempt.number}/retries/{name}"
            yield OutFile(path, JsonText(document))


def _artifacts(told: AttemptTold, directory: str) -> Iterator[OutFile]:
    for path, data in sorted(told.contents.items()):
        yield OutFile(f"{directory}/artifacts/{path}", data)
