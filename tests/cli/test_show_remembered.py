"""What `acl show RUN TASK` remembers of large ledgers changes its speed and not a byte it says."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from acl import one_task, task_rows
from exporters.identity import Identity
from ledger import LedgerView, RunState, fold
from ledger import events as ev
from ledger.store import Ledger
from tests.cli.conftest import Acl, Said, write_run
from tests.golden.runs import RUNS

TASKS = ("right", "wrong", "broken")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Remember small ledgers too, as if all had been at rest for long, in a folder of this test."""
    monkeypatch.setenv("ACL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(task_rows, "LEAST_EVENTS", 1)
    monkeypatch.setattr(task_rows, "_SETTLED_NS", 0)
    return tmp_path / "cache" / "tasks"


@pytest.fixture
def read_whole(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills up with the sizes of the ledgers that were read whole."""
    seen: list[int] = []
    keep = task_rows.Watch.keep

    def noticed(self: task_rows.Watch, state: RunState) -> None:
        seen.append(state.size)
        keep(self, state)

    monkeypatch.setattr(task_rows.Watch, "keep", noticed)
    return seen


def shown(acl: Acl, run: Path, tasks: tuple[str, ...] = TASKS) -> list[Said]:
    return [acl("show", run, task, *json) for task in tasks for json in ((), ("--json",))]


def files(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.exists() else []


@pytest.mark.parametrize("seal", [True, False])
def test_a_task_is_shown_as_before_and_the_rest_is_not_read_again(
    acl: Acl, tmp_path: Path, read_whole: list[int], seal: bool
) -> None:
    run = write_run(tmp_path / "run", seal=seal)
    first = shown(acl, run)
    assert len(read_whole) == 1
    assert {said.status for said in first} == {0}
    again = shown(acl, run)
    assert len(read_whole) == 1
    assert first == again


@pytest.mark.parametrize("name", RUNS)
def test_every_kind_of_run_is_remembered_rightly(
    tmp_path: Path, read_whole: list[int], name: str
) -> None:
    RUNS[name](tmp_path / name)
    with LedgerView.open(tmp_path / name) as view:
        state = fold(view.events())
        one_task.state_with(view, "no such task")
        for task in state.tasks.values():
            partly = one_task.state_with(view, task.id)
            assert partly.tasks == {task.id: task}
            assert Identity.of(partly) == Identity.of(state)
            assert (partly.k, partly.erasures, partly.last_at) == (
                state.k,
                state.erasures,
                state.last_at,
            )
    assert len(read_whole) == 1


def test_without_a_cache_the_same_is_said(
    acl: Acl, sealed: Path, cache: Path, read_whole: list[int]
) -> None:
    with_it = shown(acl, sealed), shown(acl, sealed)
    shutil.rmtree(cache)
    cache.parent.rmdir()
    cache.parent.write_text("no directory")
    assert (shown(acl, sealed), shown(acl, sealed)) == with_it
    assert len(read_whole) == 1 + 12


def test_a_ledger_that_grew_is_read_again(acl: Acl, killed: Path, read_whole: list[int]) -> None:
    before = shown(acl, killed)
    with Ledger.open(killed) as ledger:
        ledger.append(ev.RunFinished(status="failed", exit_code=1))
    after = shown(acl, killed)
    assert len(read_whole) == 2
    assert [said.out for said in after[::2]] == [said.out for said in before[::2]]
    assert after[1].document()["acl"]["size"] == before[1].document()["acl"]["size"] + 1


def test_what_was_erased_since_is_not_shown(acl: Acl, sealed: Path) -> None:
    shown(acl, sealed)
    retried = next(e["seq"] for e in acl("log", sealed, "--json").lines() if "retried" in e["type"])
    assert acl("erase", sealed, retried, "--reason", "private").status == 0
    assert "try later" not in acl("show", sealed, "wrong").out
    remembered = shown(acl, sealed)
    assert remembered == shown(acl, sealed)
    assert remembered[3].document()["acl"]["erased"]


def test_another_ledger_in_its_place_is_another_ledger(
    acl: Acl, tmp_path: Path, read_whole: list[int]
) -> None:
    run = write_run(tmp_path / "run")
    shown(acl, run)
    other = write_run(tmp_path / "other", run_id="other")
    shutil.rmtree(run)
    other.rename(run)
    told = shown(acl, run)
    assert len(read_whole) == 2
    with LedgerView.open(run) as view:
        assert told[1].document()["acl"]["root"] == view.root().hex()


def damages(data: bytes) -> Iterator[bytes]:
    yield b""
    yield data[:100]
    yield data[:-1]
    yield os.urandom(len(data))
    for at in range(len(data)):
        yield data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_changed_cache_cannot_lie(acl: Acl, sealed: Path, cache: Path) -> None:
    honest = shown(acl, sealed)
    (file,) = files(cache)
    data = file.read_bytes()
    with LedgerView.open(sealed) as view:
        whole = task_rows.look_up(view, "wrong")
        assert whole is not None
        for changed in damages(data):
            file.write_bytes(changed)
            assert task_rows.look_up(view, "wrong") in (None, whole)
    file.write_bytes(data[:-8] + bytes(8))
    assert shown(acl, sealed) == honest


def test_a_cache_of_somebody_else_is_not_believed(
    acl: Acl, sealed: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(acl, sealed)
    monkeypatch.setenv("ACL_STATE_DIR", str(tmp_path / "mine"))
    with LedgerView.open(sealed) as view:
        assert task_rows.look_up(view, "wrong") is None


def test_numbers_that_lead_to_other_events_are_not_followed(
    acl: Acl, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LedgerView.open(sealed) as view:
        state = one_task.state_with(view, "wrong")
        honest = task_rows.look_up(view, "wrong")
        assert honest is not None
        for rows in ((0,), (*honest.task.rows[:-1], 99), (*honest.task.rows, 3)):
            lie = task_rows.Remembered(
                task_rows.Rows(1, honest.task.selected, rows), honest.run, 1, (bytes(32),), 0
            )
            monkeypatch.setattr(one_task, "look_up", lambda *_, lie=lie: lie)
            assert one_task.state_with(view, "wrong") == state


def test_the_oldest_files_make_room(acl: Acl, tmp_path: Path, cache: Path) -> None:
    for number in range(10):
        acl("show", write_run(tmp_path / f"r{number}"), "right")
    assert len(files(cache)) == 8


def test_small_ledgers_and_ledgers_in_work_leave_nothing(
    acl: Acl, killed: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(killed):
        shown(acl, killed)
    assert not files(cache)
    monkeypatch.setattr(task_rows, "LEAST_EVENTS", 20_000)
    shown(acl, killed)
    assert not files(cache)


def test_what_was_written_a_moment_ago_is_not_taken_for_at_rest(
    acl: Acl, killed: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_rows, "_SETTLED_NS", 60 * 10**9)
    shown(acl, killed)
    assert not files(cache)


def test_a_task_that_there_is_not_is_told_with_and_without(acl: Acl, sealed: Path) -> None:
    first = acl("show", sealed, "nope")
    assert first.status != 0
    assert acl("show", sealed, "nope") == first
    shown(acl, sealed)
    assert acl("show", sealed, "nope") == first
