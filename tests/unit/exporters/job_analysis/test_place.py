"""Putting an analysis into its directory."""

import shutil
from pathlib import Path

import pytest

from exporters.folder import Folder
from exporters.identity import Identity
from exporters.job_analysis import analyze_job, place
from exporters.job_analysis.place import place_analysis
from ledger import LedgerView, fold
from tests import archive_runs


def put(run: Path, target: Path) -> None:
    with LedgerView.open(run) as view:
        state = fold(view.events())
        place_analysis(target, analyze_job(state, view), Identity.of(state))


def test_what_a_killed_analysis_left_goes_with_the_next_one_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = archive_runs.write(tmp_path / "run")
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    with monkeypatch.context() as patch:
        patch.setattr(place, "_swap", _killed)
        with pytest.raises(KeyboardInterrupt):
            put(run, tmp_path / "out" / "analysis")
    monkeypatch.undo()
    (left,) = (tmp_path / "out").iterdir()
    for name in ("living", "another"):
        (tmp_path / "out" / f"{place.TEMPORARY}{name}").mkdir()
    (tmp_path / "out" / f"{place.TEMPORARY}living" / left.name).mkdir()
    with Folder.open(left.rename(tmp_path / "out" / f"{place.TEMPORARY}stopped")) as alive:
        assert alive.try_lock()
        put(run, tmp_path / "out" / "analysis")
        assert (tmp_path / "out" / f"{place.TEMPORARY}stopped").exists()
    put(run, tmp_path / "out" / "analysis")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "analysis",
        f"{place.TEMPORARY}living",
        f"{place.TEMPORARY}another",
    }


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
