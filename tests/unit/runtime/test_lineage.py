"""Where reused tasks come from."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.canonical import Binary
from ledger.errors import RunNotFound
from ledger.store import Copy, Ledger
from ledger.view import LedgerView, Recorded
from runtime.contracts import AttemptContext, Task
from runtime.lineage import Lineage, lineage
from tests import events_of as say
from tests.fake_plugins import Ran, evaluate, task
from tests.importer_runs import do_import, sample

TASKS = [task(name) for name in "abc"]


def read(ran: Ran | Path) -> Lineage:
    path = ran if isinstance(ran, Path) else ran.outcome.path
    assert path is not None
    with LedgerView.open(path) as view:
        return lineage(view)


def make(results: Path, run_id: str, before: str = "", *, broken: str = "") -> Ran:
    def act(t: Task, context: AttemptContext) -> Any:
        if t.task_id in broken:
            raise RuntimeError("no")
        return "right" * 2000

    how = {"runtime": {"reuse_run_id": before}} if before else {}
    return evaluate(results, act, TASKS, output={"run_id": run_id}, **how)


def test_a_run_that_reused_nothing_stands_alone(tmp_path: Path) -> None:
    found = read(make(tmp_path, "first"))
    assert (found.tasks, found.reused, found.sources) == (3, 0, [])


def test_each_source_is_named_as_it_was_with_its_own_sources_below(tmp_path: Path) -> None:
    first = make(tmp_path, "first", broken="bc")
    second = make(tmp_path, "second", "first", broken="c")
    third = make(tmp_path, "third", "second")
    found = read(third)
    assert (found.run_id, found.tasks, found.reused) == ("third", 3, 2)
    (nearest,) = found.sources
    (farthest,) = nearest.sources
    for source, ran, tasks in ((nearest, second, 2), (farthest, first, 1)):
        state = ran.state
        assert source.run_id == state.run_id
        assert (source.ledger_id, source.size) == (state.ledger_id, state.size)
        assert (source.root, source.tasks) == (state.root.hex(), tasks)
        assert source.checkpoint == f"acl/unsigned/{state.ledger_id}"
        assert source.path == f"listed/none/{state.run_id}"
        assert (source.kind, source.attempts) == ("copied", 0)
    assert farthest.sources == []


def test_sources_need_not_be_there_any_more(tmp_path: Path) -> None:
    first = make(tmp_path, "first")
    second = make(tmp_path, "second", "first")
    assert first.outcome.path is not None
    for file in first.outcome.path.rglob("*"):
        if file.is_file():
            file.unlink()
    assert [source.run_id for source in read(second).sources] == ["first"]


REUSED: dict[str, Any] = {
    "source_run_id": "elsewhere",
    "source_ledger_id": "ab" * 16,
    "size": 9,
    "root": "cd" * 32,
    "leaves": Binary(b"\0" * 32 * 9),
    "sequence": (3, 4),
}


def test_an_attempt_that_came_alone_is_counted_apart(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        ledger.append(ev.AttemptReused(task="t", attempt=1, **REUSED))
    (source,) = read(tmp_path).sources
    assert (source.run_id, source.tasks, source.attempts) == ("elsewhere", 0, 1)
    assert source.checkpoint is None


class Given:
    """A view of events that no ledger takes in this order yet."""

    def __init__(self, view: LedgerView, events: list[Recorded]) -> None:
        self._events = events
        self.resolve = view.resolve

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Recorded]:
        return iter(self._events[since:until])


def test_an_attempt_that_came_alone_to_the_source_stands_below_the_source(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t", "u"))
        ledger.append(ev.TaskReused(task="t", **REUSED), ev.TaskStarted(task="u"))
        ledger.append(ev.AttemptReused(task="u", attempt=1, **REUSED | {"source_run_id": "first"}))
    with LedgerView.open(tmp_path) as view:
        *events, alone = view.events()
        copy = replace(alone, header=alone.header._replace(task="t", copied=True))
        found = lineage(Given(view, [*events, copy]))  # type: ignore[arg-type]
    (source,) = found.sources
    (below,) = source.sources
    assert (source.run_id, source.tasks, source.attempts) == ("elsewhere", 1, 0)
    assert (below.run_id, below.tasks, below.attempts) == ("first", 0, 1)


def test_what_an_import_was_told_is_a_claim(tmp_path: Path) -> None:
    claim = ev.Claim(run_id="told", ledger_id="ab" * 16, size=5, root="cd" * 32)
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t", "u"))
        ledger.append(ev.TaskStarted(task="t", claim=claim))
        ledger.append(ev.TaskStarted(task="u"))
        ledger.append(ev.AttemptStarted(task="u", attempt=1, claim=claim))
    (source,) = read(tmp_path).sources
    assert (source.kind, source.run_id, source.size) == ("claimed", "told", 5)
    assert (source.tasks, source.attempts) == (1, 1)


def test_files_that_were_reused_stand_above_the_run_that_they_say_they_come_from(
    tmp_path: Path,
) -> None:
    told = {"run_id": "told", "ledger_id": "ab" * 16, "size": 5, "root": "cd" * 32}
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t", "u"))
        ledger.append(ev.TaskReused(task="t", claim=ev.Claim(**told), **REUSED))
        nearer_id = {"source_run_id": "nearer", "source_ledger_id": "ef" * 16}
        chained = REUSED | nearer_id | {"chained": True}
        lineage = {"ef" * 16: {**REUSED, "sequence": [3, 4], "claim": told}}
        ledger.append(ev.TaskReused(task="u", lineage=lineage, **chained))
    direct, nearer = read(tmp_path).sources
    for source in (direct, nearer.sources[0]):
        assert (source.kind, source.run_id, source.tasks) == ("imported", "elsewhere", 1)
        (claimed,) = source.sources
        assert (claimed.kind, claimed.run_id, claimed.tasks) == ("claimed", "told", 1)


def test_what_a_copied_import_was_told_stands_below_the_import(tmp_path: Path) -> None:
    claim = ev.Claim(run_id="told", ledger_id="ab" * 16, size=5, root="cd" * 32)
    with Ledger.create(tmp_path / "source.sqlite") as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t", claim=claim))
        ledger.append(*say.attempt("t"))
        ledger.append(ev.TaskFinished(task="t", reason="all_attempts", error=False))
    with LedgerView.open(tmp_path / "source.sqlite") as view:
        events = [r for r in view.events() if r.task == "t"]
        copies = [Copy(r.header, view.raw(r.seq)[1], view.blob) for r in events]
        with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
            ledger.append(*say.opening("t"))
            ledger.append(ev.TaskReused(task="t", **REUSED), *copies)
    (source,) = read(tmp_path).sources
    assert (source.kind, source.tasks) == ("copied", 1)
    (claimed,) = source.sources
    assert (claimed.kind, claimed.run_id, claimed.tasks) == ("claimed", "told", 1)


def test_an_imported_run_names_what_its_source_said_it_reused(tmp_path: Path) -> None:
    foreign = do_import(sample(tmp_path, "k3-reuse"), tmp_path / "results")
    found = read(foreign.path)
    assert (found.told, found.sources) == ("k3-avg", [])
    alone = do_import(sample(tmp_path, "k3-avg"), tmp_path / "results")
    assert read(alone.path).told is None


def test_a_ledger_without_a_run_has_no_lineage(tmp_path: Path) -> None:
    with Ledger.create(tmp_path):
        pass
    with pytest.raises(RunNotFound):
        read(tmp_path)
