"""`acl run` with reuse: what it takes, what it refuses, and what it says on stderr."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Acl

ROOT = Path("results/acl-arith/none")
ARITH = ("run", "--benchmark", "acl-arith", "--harness", "calculator", "--limit", "6")


def counts(said: Any) -> dict[str, int]:
    found: dict[str, int] = said.document()["counts"]
    return found


@pytest.fixture
def first(acl: Acl, tmp_path: Path) -> Path:
    assert acl(*ARITH, "--run-id", "first").status == 0
    return tmp_path / ROOT / "first"


def test_the_newest_run_is_reused(acl: Acl, first: Path) -> None:
    said = acl(*ARITH, "--reuse", "--run-id", "second", "--json")
    assert said.status == 0
    assert counts(said)["reused"] == 6
    assert said.err == ""
    second = Path(said.document()["path"])
    assert acl("verify", second, "--tree", second).status == 0
    assert acl("replay", second).status == 0
    info = json.loads((second / "run_info.json").read_bytes())
    assert info["reused_from"]["run_id"] == "first"
    assert info["reused_from"]["path"] == "acl-arith/none/first"


def test_where_there_is_nothing_to_reuse_that_is_said_and_all_tasks_run(acl: Acl) -> None:
    said = acl(*ARITH, "--reuse", "--json")
    assert said.status == 0
    assert counts(said)["reused"] == 0
    assert said.err == "acl: there is no run to reuse in acl-arith/none: all tasks run\n"


def test_a_run_that_does_not_exist_is_wrong_use(acl: Acl, tmp_path: Path) -> None:
    said = acl(*ARITH, "--reuse-run-id", "never")
    assert said.status == 2
    assert "no run 'never' in acl-arith/none" in said.err
    assert not (tmp_path / "results").exists()


def test_an_id_that_leads_elsewhere_is_wrong_use(acl: Acl, first: Path) -> None:
    assert acl(*ARITH, "--reuse-run-id", "../none/first").status == 2


def test_other_settings_are_said_and_refused_where_that_is_asked_for(acl: Acl, first: Path) -> None:
    other = [word if word != "calculator" else "noop" for word in ARITH]
    refused = acl(*other, "--reuse-run-id", "first", "--reuse-require-equal")
    assert refused.status == 2
    assert "other settings: harness.id" in refused.err
    assert sorted(path.name for path in first.parent.iterdir()) == ["first"]
    said = acl(*other, "--reuse-run-id", "first", "--json")
    assert said.status == 0
    assert counts(said)["reused"] == 6
    assert 'harness.id was "calculator", is "noop"' in said.err


def test_changed_tasks_run_again_unless_they_are_asked_for(acl: Acl, first: Path) -> None:
    changed = (*ARITH, "--benchmark-param", "seed=2", "--reuse-run-id", "first", "--json")
    said = acl(*changed)
    assert counts(said)["reused"] == 0
    assert "6 tasks changed since run 'first', run again: " in said.err
    taken = acl(*changed, "--reuse-changed")
    assert counts(taken)["reused"] == 6
    assert "6 tasks changed since run 'first', reused all the same: " in taken.err


def test_exported_files_are_reused_once_the_ledger_is_gone(acl: Acl, first: Path) -> None:
    assert acl("export", first, first.parent / "files").status == 0
    shutil.rmtree(first)
    said = acl(*ARITH, "--reuse", "--json")
    assert counts(said)["reused"] == 6
    assert "is reused from exported files in acl-arith/none/files" in said.err
    path = said.document()["path"]
    assert acl("verify", path).status == 0
    shown = acl("show", path, "--lineage")
    assert "said by the import to be from run first: 6 tasks" in shown.out


def test_a_chain_is_shown_when_its_sources_are_gone(acl: Acl, first: Path) -> None:
    assert acl(*ARITH, "--reuse", "--run-id", "second").status == 0
    assert acl(*ARITH, "--reuse-run-id", "second", "--run-id", "third").status == 0
    for name in ("first", "second"):
        shutil.rmtree(first.parent / name)
    third = first.parent / "third"
    shown = acl("show", third, "--lineage").out
    assert shown.index("from run second: 6 tasks") < shown.index("from run first: 6 tasks")
    verified = acl("verify", third, "--json")
    assert verified.status == 0
    origins = [f for f in verified.document()["findings"] if f["code"] == "origin_claim"]
    assert sum("(run 'first')" in f["message"] for f in origins) == 6
    assert sum("(run 'second')" in f["message"] for f in origins) == 6


def test_a_read_only_source_is_reused_and_stays_as_it_is(acl: Acl, first: Path) -> None:
    def everything() -> dict[str, tuple[bytes, int, int]]:
        found = sorted(path for path in first.rglob("*") if path.is_file())
        return {
            str(path): (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
            for path in found
        }

    for place, directories, files in os.walk(first):
        for name in files:
            (Path(place) / name).chmod(0o444)
        for name in directories:
            (Path(place) / name).chmod(0o555)
    first.chmod(0o555)
    before = everything()
    try:
        assert counts(acl(*ARITH, "--reuse", "--json"))["reused"] == 6
        assert everything() == before
    finally:
        for place, _, _ in os.walk(first):
            Path(place).chmod(0o755)


def test_reused_numbers_are_those_of_the_source_in_any_order_of_steps(
    acl: Acl, first: Path, tmp_path: Path
) -> None:
    """Run, reuse, export, import, reuse the import: one set of numbers."""
    assert acl(*ARITH, "--reuse", "--run-id", "second").status == 0
    assert acl("export", first.parent / "second", tmp_path / "files").status == 0
    imported = acl("import", tmp_path / "files", "--results-dir", "other", "--json").document()
    again = acl(*ARITH, "--results-dir", "other", "--reuse-run-id", imported["run_id"], "--json")
    assert counts(again)["reused"] == 6
    runs = [first, first.parent / "second", imported["path"], again.document()["path"]]
    metrics = [acl("replay", run, "--json").document()["metrics"]["metrics"] for run in runs]
    assert metrics == [metrics[0]] * 4
