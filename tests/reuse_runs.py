"""Runs that are reused in tests, and the runs that reuse them."""

from pathlib import Path
from typing import Any

from exporters.details import LAYOUT, export_details
from exporters.identity import Identity
from exporters.write import write_tree
from ledger.fold import fold
from ledger.view import LedgerView
from runtime.contracts import AttemptContext, Task
from tests.fake_plugins import Ran, evaluate, task

TASKS = [task(name) for name in "abcd"]


class Agent:
    """Answers right but for `wrong`, fails on `broken`, and counts what it was asked."""

    def __init__(self, *, wrong: str = "", broken: str = "") -> None:
        self.wrong = wrong
        self.broken = broken
        self.asked: list[str] = []

    def __call__(self, t: Task, context: AttemptContext) -> Any:
        self.asked.append(t.task_id)
        if t.task_id in self.broken:
            raise RuntimeError("no")
        return "no" if t.task_id in self.wrong else {"text": "right", "long": "x" * 9000}


def source(results: Path, tasks: list[Task] = TASKS, **how: Any) -> Ran:
    return evaluate(results, Agent(wrong="b", broken="c"), tasks, output={"run_id": "first"}, **how)


def reusing(results: Path, agent: Agent, tasks: list[Task] = TASKS, **how: Any) -> Ran:
    runtime = how.pop("runtime", {"reuse_run_id": "first"})
    return evaluate(results, agent, tasks, runtime=runtime, **how)


def exported(ran: Ran, target: Path) -> None:
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, target, identity=Identity.of(state), layout=LAYOUT)
