"""The layout `agentcompass`: what AgentCompass 1.0.1 itself would have written of the run.

Content and names of the files: `docs/agentcompass.md`.
"""

from collections.abc import Iterator
from typing import Final

from exporters import OutFile
from exporters.agentcompass.kept import is_kept_run, kept_files
from exporters.agentcompass.places import why_unnameable
from exporters.agentcompass.report import TaskScore, metric_report
from exporters.agentcompass.run_files import params, run_info, summary
from exporters.agentcompass.scoring import Scoring
from exporters.agentcompass.tasks import TaskFiles
from exporters.identity import Identity
from exporters.jsontext import json_bytes
from ledger.state import RunState
from ledger.view import Blobs

LAYOUT: Final = "agentcompass"
METRICS: Final = "metrics.json"


def export_agentcompass(state: RunState, blobs: Blobs) -> Iterator[OutFile]:
    """Project a run into the files of the layout, one after another, each made when asked for.

    A run of AgentCompass that was imported, or recorded live, gives back its own files. Memory is
    bounded by the largest file. Raises RunNotFound where the ledger holds no run, and LedgerDamaged
    where a stored byte that a file needs is not what was stored.
    """
    if state.creation and is_kept_run(state, blobs):
        yield from kept_files(state, blobs)
        return
    scoring = Scoring.of(state)
    scores: list[TaskScore] = []
    left_out: list[dict[str, object]] = []
    yield params(state, scoring)
    for task in state.tasks.values():
        reason = why_unnameable(task.id)
        if reason is not None:
            left_out.append({"task_id": task.id, "reason": reason})
        elif task.first is not None:
            files = TaskFiles(task, scoring, state, blobs)
            yield from files.make()
            if files.score is not None:
                scores.append(files.score)
    if state.metrics:
        report = metric_report(scores, scoring, {"acl": Identity.of(state).trailer()})
        yield OutFile(METRICS, json_bytes(report))
        yield summary(state, report)
    yield run_info(state, blobs, scoring, left_out)
