"""Runs in the layout of AgentCompass for tests: imports, exports, and runs of our own of all sorts."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from exporters.agentcompass.export import LAYOUT, export_agentcompass
from exporters.check import check_tree
from exporters.identity import Identity
from exporters.write import write_tree
from ledger import events as ev
from ledger.fold import fold
from ledger.state import RunState
from ledger.verify.finding import Finding
from ledger.view import LedgerView
from tests.golden.runs import attempt, create, ending, opening, plan, ref


@contextmanager
def opened(run: Path) -> Iterator[tuple[RunState, LedgerView]]:
    with LedgerView.open(run) as view:
        yield fold(view.events()), view


def exported(run: Path, target: Path) -> Path:
    """The export of a ledger, through the one writer."""
    with opened(run) as (state, view):
        files = export_agentcompass(state, view)
        write_tree(files, target, identity=Identity.of(state), layout=LAYOUT)
    return target


def findings(run: Path, tree: Path) -> list[Finding]:
    """What is found of a tree against a ledger."""
    with opened(run) as (state, view):

        def state_at(size: int) -> RunState:
            return fold(view.events(until=size))

        told = check_tree(state_at, view, tree, ledger_id=state.ledger_id, size=state.size)
        return list(told)


def documents(tree: Path) -> dict[str, Any]:
    """Every JSON file of a tree by its path."""
    return {
        path.relative_to(tree).as_posix(): json.loads(path.read_text())
        for path in tree.rglob("*.json")
    }


def several(path: Path) -> None:
    """Two attempts a task, of all sorts: right and wrong, failed, fatal, retried, with artifacts."""
    refs = (ref("right", "math"), ref("half"), ref("broken", "code"), ref("fatal"), ref("files"))
    with create(path, "several") as ledger:
        ledger.append(*opening("several", *refs, k=2))
        fault = ev.ErrorInfo(code="agent_died", message="it died", phase="run_harness")
        grave = ev.ErrorInfo(code="no_room", message=" ", phase="prepare_task", fatal=True)
        for task in ("right", "half", "broken", "fatal", "files"):
            ledger.append(ev.TaskStarted(task=task))
        ledger.append(*attempt("right"), *attempt("right", 2))
        ledger.append(*attempt("half"), *attempt("half", 2, correct=False))
        ledger.append(*attempt("broken"), *_failed("broken", 2, fault))
        ledger.append(*_retried("fatal", 1, fault), *_failed("fatal", 2, grave))
        ledger.append(*_with_files("files"), *attempt("files", 2))
        for task, error in (
            ("right", False),
            ("half", False),
            ("broken", True),
            ("fatal", True),
            ("files", False),
        ):
            ledger.append(ev.TaskFinished(task=task, reason="all_attempts", error=error))
        ending(ledger, total=5, evaluated=4, error=1)


def _failed(task: str, number: int, error: ev.ErrorInfo) -> list[ev.AnyEvent]:
    at: dict[str, Any] = {"task": task, "attempt": number}
    return [
        ev.AttemptStarted(**at),
        plan(task, number),
        ev.AttemptFinished(**at, status="run_error", error=error),
    ]


def _retried(task: str, number: int, error: ev.ErrorInfo) -> list[ev.AnyEvent]:
    first, *rest = attempt(task, number)
    again = ev.AttemptRetried(
        task=task,
        attempt=number,
        retry=1,
        max_retries=2,
        retry_delay_seconds=0.5,
        stage="run/harness",
        scope="attempt",
        matched_pattern="died",
        error=error,
        discarded_result={"status": "run_error"},
    )
    end = rest[-1]
    assert isinstance(end, ev.AttemptFinished)
    return [first, again, *rest[:-1], end.model_copy(update={"retries": 1})]


def _with_files(task: str) -> list[ev.AnyEvent]:
    told = attempt(task)
    place = next(n for n, event in enumerate(told) if isinstance(event, ev.EvaluationFinished))
    names = ("log.txt", "deep/a b é.txt", "../up", "ctrl\x01")
    files = ev.ArtifactsCollected(
        task=task,
        attempt=1,
        artifacts=tuple(ev.Artifact(path=name, bytes=3) for name in names),
        contents=dict.fromkeys(names, "abc"),
    )
    return [*told[:place], files, *told[place:]]


__all__ = ["documents", "exported", "findings", "opened", "several"]
