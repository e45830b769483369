"""With which settings reused tasks ran: told along a chain, and refused where they must be equal."""

from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView, fold
from tests.cli.conftest import Acl

ROOT = Path("results/acl-arith/none")
ARITH = ("run", "--benchmark", "acl-arith", "--limit", "4", "--json")
SEARCHED = (*ARITH, "--harness", "calculator")
NOTHING = (*ARITH, "--harness", "noop")
EQUAL = "--reuse-require-equal"


@pytest.fixture
def chain(acl: Acl, tmp_path: Path) -> Path:
    """Run `first` with the calculator, and `third`, asked for another harness, all from it."""
    assert acl(*SEARCHED, "--run-id", "first").status == 0
    assert acl(*NOTHING, "--reuse-run-id", "first", "--run-id", "third").status == 0
    return tmp_path / ROOT


def frozen(run: Path) -> Any:
    with LedgerView.open(run) as view:
        event = fold(view.events()).frozen
    assert event is not None
    return [(one.path, one.before, one.now, one.run_id) for one in event.differences or ()]


def test_what_a_source_reused_is_compared_with_the_settings_of_its_maker(
    acl: Acl, chain: Path
) -> None:
    refused = acl(*NOTHING, "--reuse-run-id", "third", EQUAL)
    assert refused.status == 2
    assert "other settings: harness.id (tasks of run 'first')" in refused.err
    assert sorted(path.name for path in chain.iterdir()) == ["first", "third"]


def test_a_request_equal_to_that_of_the_maker_is_accepted(acl: Acl, chain: Path) -> None:
    said = acl(*SEARCHED, "--reuse-run-id", "third", EQUAL, "--run-id", "same")
    assert said.status == 0
    assert said.document()["counts"]["reused"] == 4
    assert frozen(chain / "same") == []


def test_the_differences_are_carried_along_the_chain(acl: Acl, chain: Path) -> None:
    said = acl(*NOTHING, "--reuse-run-id", "third", "--run-id", "fourth")
    assert 'harness.id was "calculator", is "noop" (tasks of run \'first\')' in said.err
    assert frozen(chain / "fourth") == [("harness.id", "calculator", "noop", "first")]
    acl(*NOTHING, "--reuse-run-id", "fourth", "--run-id", "fifth")
    assert frozen(chain / "fifth") == [("harness.id", "calculator", "noop", "first")]
    assert acl(*NOTHING, "--reuse-run-id", "fifth", EQUAL).status == 2
    assert acl(*SEARCHED, "--reuse-run-id", "fifth", EQUAL).status == 0


def test_a_source_with_tasks_of_two_configurations_equals_neither(acl: Acl, chain: Path) -> None:
    six = ("--limit", "6", "--run-id", "mixed")
    assert acl(*NOTHING, "--reuse-run-id", "first", *six).status == 0
    assert acl(*NOTHING, "--reuse-run-id", "mixed", EQUAL).status == 2
    assert acl(*SEARCHED, "--reuse-run-id", "mixed", EQUAL).status == 2


def test_show_log_and_lineage_tell_the_differences(acl: Acl, chain: Path) -> None:
    third = chain / "third"
    told = 'run otherwise in run first: harness.id, there "calculator", here "noop"'
    recorded = [
        {"run_id": "first", "path": "harness.id", "there": "calculator", "here": "noop"},
    ]
    assert told in acl("show", third).out
    assert acl("show", third, "--json").document()["reuse_differences"] == recorded
    assert told in acl("show", third, "--lineage").out
    assert acl("show", third, "--lineage", "--json").document()["differences"] == recorded
    assert "run_id=first differs=harness.id" in acl("log", third).out


def test_show_names_tasks_that_were_reused_although_their_input_changed(
    acl: Acl, chain: Path
) -> None:
    changed = (*SEARCHED, "--benchmark-param", "seed=2", "--reuse-changed", "--run-id", "changed")
    assert acl(*changed, "--reuse-run-id", "first").status == 0
    shown = acl("show", chain / "changed", "--json").document()
    assert len(shown["reused_changed"]) == 4
    name = shown["reused_changed"][0]
    assert f"input changed since: {name}, " in acl("show", chain / "changed").out
    assert "it was " in acl("show", chain / "changed", name).out


@pytest.mark.parametrize("condition", ["--reuse-changed", EQUAL])
def test_conditions_of_a_reuse_that_is_not_asked_for_are_wrong_use(
    acl: Acl, tmp_path: Path, condition: str
) -> None:
    said = acl(*SEARCHED, condition)
    assert said.status == 2
    assert f"{condition} says how to reuse a run, and none is to be reused" in said.err
    assert not (tmp_path / ROOT).exists()


def test_the_differences_come_back_from_exported_files(
    acl: Acl, chain: Path, tmp_path: Path
) -> None:
    assert acl("export", chain / "third", tmp_path / "files").status == 0
    imported = acl("import", tmp_path / "files", "--results-dir", "other", "--json").document()
    assert frozen(Path(imported["path"])) == frozen(chain / "third")
    assert acl("export", imported["path"], tmp_path / "again").status == 0
    assert acl("diff", "--trees", tmp_path / "files", tmp_path / "again").status == 0


def test_a_run_with_changed_inputs_comes_back_from_its_files(
    acl: Acl, chain: Path, tmp_path: Path
) -> None:
    changed = (*SEARCHED, "--benchmark-param", "seed=2", "--reuse-changed", "--run-id", "changed")
    assert acl(*changed, "--reuse-run-id", "first").status == 0
    assert acl("export", chain / "changed", tmp_path / "files").status == 0
    imported = acl("import", tmp_path / "files", "--results-dir", "other", "--json").document()
    assert acl("export", imported["path"], tmp_path / "again").status == 0
    assert acl("diff", "--trees", tmp_path / "files", tmp_path / "again").status == 0
