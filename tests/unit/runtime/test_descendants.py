"""Where erased events stand besides: in runs that copied them, and where they came from."""

import shutil
from pathlib import Path

import pytest

from ledger import LedgerView
from runtime import descendants
from runtime.descendants import find_holders
from tests.reuse_runs import Agent, reusing, source


def result_of(run: Path, task: str) -> int:
    with LedgerView.open(run) as view:
        return next(e.seq for e in view.events() if (e.type, e.task) == ("result.recorded", task))


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    first = source(tmp_path).outcome.path
    second = reusing(tmp_path, Agent(), output={"run_id": "second"}).outcome.path
    assert first is not None
    assert second is not None
    return first, second


def test_copies_are_found_with_their_numbers(runs: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = runs
    with LedgerView.open(first) as view:
        found = find_holders(view, [result_of(first, "a"), result_of(first, "b")], tmp_path)
    (holder,) = found.copied
    assert holder.run_id == "second"
    assert holder.events == (result_of(second, "a"), result_of(second, "b"))
    assert not found.sources
    assert not found.many


def test_sources_are_named_as_the_reuse_names_them(runs: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = runs
    with LedgerView.open(second) as view:
        found = find_holders(view, [result_of(second, "b")], tmp_path)
    (holder,) = found.sources
    assert (holder.run_id, holder.events) == ("first", (result_of(first, "b"),))
    assert not found.copied


def test_what_was_not_copied_is_not_found(runs: tuple[Path, Path], tmp_path: Path) -> None:
    first, _ = runs
    with LedgerView.open(first) as view:
        # Task `c` ended in an error, so it ran again.
        assert not find_holders(view, [0, result_of(first, "c")], tmp_path).copied


def test_ledgers_that_cannot_be_read_are_named_and_staged_ones_left_out(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    first, second = runs
    shutil.copytree(second, tmp_path / ".staged")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "ledger.sqlite").write_bytes(b"no ledger")
    with LedgerView.open(first) as view:
        found = find_holders(view, [result_of(first, "a")], tmp_path)
    assert len(found.copied) == 1
    assert found.unread == [str(tmp_path / "other" / "ledger.sqlite")]


def test_how_many_are_looked_at_is_bounded(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = runs
    monkeypatch.setattr(descendants, "MOST_LEDGERS", 1)
    with LedgerView.open(first) as view:
        assert find_holders(view, [result_of(first, "a")], tmp_path).many
