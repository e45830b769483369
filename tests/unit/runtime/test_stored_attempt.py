"""An attempt put back from a ledger into what an evaluator takes."""

import asyncio
from pathlib import Path

import pytest

from ledger import events as ev
from ledger.canonical import Binary
from ledger.fold import fold
from ledger.store import Ledger
from ledger.view import LedgerView
from runtime.contracts import StageError
from runtime.stored_attempt import StoredAttempt, StoredFiles, stored_attempt, stored_request
from tests import events_of as say
from tests.fake_plugins import request
from tests.metric_states import run_of

PLAN = ev.PlanResolved(
    task="t",
    attempt=1,
    plan={"benchmark": {"depth": 2}, "harness": {"budget": 3}},
    plan_hash="h",
    applied_recipes=("quick",),
    timeouts={"evaluation": 7.0, "run": 9.0},
)


def stored(path: Path, *, redacted: str = "") -> StoredAttempt:
    started, result, verdict, end = say.attempt("t", answer="x" * 9000)
    files = ev.ArtifactsCollected(
        task="t",
        attempt=1,
        artifacts=(ev.Artifact(path="a.txt", bytes=5), ev.Artifact(path="b.bin", bytes=1)),
        contents={"a.txt": "h\u00e9 " * 3000, "b.bin": Binary(b"\xff" * 70_000)},
        redactions=1 if redacted == "files" else None,
    )
    if redacted == "result":
        result = result.model_copy(update={"redactions": 2})
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t", category="math"))
        ledger.append(*say.whole_task("t", [started, PLAN, result, files, verdict, end]))
    with LedgerView.open(path) as view:
        state = fold(view.events())
        found = stored_attempt(view, state, "t", state.tasks["t"].attempts[1])
        assert found is not None
        if not redacted:
            asyncio.run(read(found.context.session, path))  # type: ignore[arg-type]
        return found


async def read(files: StoredFiles, directory: Path) -> None:
    assert await files.files() == ["a.txt", "b.bin"]
    assert await files.read_text("a.txt") == "h\u00e9 " * 3000
    assert await files.read_bytes("b.bin") == b"\xff" * 70_000
    await files.download("b.bin", directory / "copy")
    assert (directory / "copy").read_bytes() == b"\xff" * 70_000
    with pytest.raises(FileNotFoundError):
        await files.read_text("c.txt")
    with pytest.raises(StageError, match="changed"):
        await files.write_text("a.txt", "")
    with pytest.raises(StageError, match="changed"):
        await files.upload(directory / "copy", "c")
    with pytest.raises(StageError, match="no command"):
        await files.exec(["true"])
    await files.close()


def test_answer_files_plan_and_limit_are_those_that_were_recorded(tmp_path: Path) -> None:
    found = stored(tmp_path)
    assert found.result.final_answer == "x" * 9000
    assert (found.result.category, found.result.status) == ("math", "completed")
    assert (found.context.attempt, found.context.retry) == (1, 0)
    assert found.context.plan.benchmark == {"depth": 2}
    assert found.context.plan.harness == {"budget": 3}
    assert found.context.plan.applied_recipes == ["quick"]
    assert (found.time_limit, found.replaced) == (7.0, False)
    assert found.verdict.correct is True


@pytest.mark.parametrize("where", ["result", "files"])
def test_a_replacement_in_what_the_evaluator_sees_is_told(tmp_path: Path, where: str) -> None:
    assert stored(tmp_path, redacted=where).replaced


def test_the_request_is_the_recorded_one() -> None:
    asked = request(k=3)
    state = run_of([True])
    state.created = say.created().model_copy(update={"request": asked.to_task_payload()})
    assert stored_request(state) == asked


def test_of_a_request_of_another_program_only_the_benchmark_is_taken() -> None:
    state = run_of([True])
    foreign = {"benchmark": {"id": "b", "params": {"n": 1}}, "somewhere": "else"}
    state.created = say.created().model_copy(update={"request": foreign})
    found = stored_request(state)
    assert (found.benchmark.id, found.benchmark.params) == ("b", {"n": 1})
