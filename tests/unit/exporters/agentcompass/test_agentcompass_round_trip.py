"""Real runs of AgentCompass 1.0.1, imported and exported again."""

import json
from pathlib import Path

import pytest

from acl.main import call
from runtime.importers import ImportReport, Source
from runtime.importers.agentcompass import AgentCompass
from runtime.redact import Redactor
from tests.agentcompass_runs import documents, exported, findings, opened
from tests.importer_runs import do_import, sample

NAMES = ("k3-avg", "k3-fatal", "k3-reuse", "k3-sigkill")
NOT_GIVEN_BACK = {"progress.json", "progress.jsonl", "run.log"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("agentcompass")


@pytest.fixture(scope="module")
def sources(directory) -> dict[str, Path]:
    return {name: sample(directory / "sources", name) for name in NAMES}


@pytest.fixture(scope="module")
def reports(directory, sources) -> dict[str, ImportReport]:
    return {name: do_import(sources[name], directory / "results") for name in NAMES}


@pytest.fixture(scope="module")
def trees(directory, reports) -> dict[str, Path]:
    return {name: exported(reports[name].path, directory / "out" / name) for name in NAMES}


def files_of(tree: Path) -> set[str]:
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_comes_back_but_logs_and_progress(sources, trees, name):
    there = files_of(sources[name])
    assert there >= NOT_GIVEN_BACK
    assert files_of(trees[name]) == there - NOT_GIVEN_BACK | {"MANIFEST.json"}


@pytest.mark.parametrize("name", NAMES)
def test_every_json_value_is_the_same_but_for_what_redaction_took(sources, trees, name):
    gate = Redactor({})
    before, after = documents(sources[name]), documents(trees[name])
    compared = after.keys() - {"MANIFEST.json"}
    assert len(compared) > 80
    for path in compared:
        assert after[path] == gate.redact(before[path])[0], path


def test_with_the_originals_kept_every_byte_is_the_same(sources, tmp_path):
    report = do_import(sources["k3-fatal"], tmp_path / "results", keep_originals=True)
    tree = exported(report.path, tmp_path / "out")
    for path in files_of(tree) - {"MANIFEST.json"}:
        assert (tree / path).read_bytes() == (sources["k3-fatal"] / path).read_bytes(), path


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_is_what_the_ledger_says(reports, trees, name):
    assert findings(reports[name].path, trees[name]) == []


def test_a_second_export_has_the_same_bytes(reports, trees, tmp_path):
    again = exported(reports["k3-fatal"].path, tmp_path / "again")
    for path in files_of(again):
        assert (again / path).read_bytes() == (trees["k3-fatal"] / path).read_bytes()


def test_an_export_can_be_imported_and_gives_the_same_again(trees, tmp_path):
    assert AgentCompass().recognises(Source.open(trees["k3-fatal"]))
    report = do_import(trees["k3-fatal"], tmp_path / "results")
    assert not report.damaged
    again = exported(report.path, tmp_path / "again")
    before, after = documents(trees["k3-fatal"]), documents(again)
    del before["MANIFEST.json"], after["MANIFEST.json"]
    assert before == after


@pytest.mark.parametrize("name", NAMES)
def test_the_source_itself_is_what_the_ledger_says(sources, reports, name):
    found = findings(reports[name].path, sources[name])
    assert {one.code for one in found} <= {"tree_redacted"}
    assert all(one.severity != "broken" for one in found)


def test_a_file_of_the_source_that_was_edited_is_found(sources, reports, tmp_path):
    edited = sample(tmp_path, "k3-fatal")
    target = next(iter(sorted(edited.glob("details/normal/*/attempt-1/result.json"))))
    document = json.loads(target.read_text())
    document["metrics"]["correct"] = not document["metrics"]["correct"]
    target.write_text(json.dumps(document))
    gone = next(iter(sorted(edited.glob("details/normal/*/attempt-2/result.json"))))
    gone.unlink()
    more = target.parent / "artifacts" / "planted.txt"
    more.parent.mkdir(exist_ok=True)
    more.write_text("planted")
    found = {(one.code, one.message) for one in findings(reports["k3-fatal"].path, edited)}
    path = target.relative_to(edited).as_posix()
    assert ("tree_differs", f"{path} is not what the ledger says") in found
    assert ("tree_missing", f"{gone.relative_to(edited).as_posix()} is missing") in found
    assert (
        "tree_extra",
        f"{more.relative_to(edited).as_posix()} is not part of the run",
    ) in found


def test_a_file_that_was_erased_is_not_checkable_and_nothing_else_changes(tmp_path):
    run = sample(tmp_path / "source", "k3-fatal")
    report = do_import(run, tmp_path / "results")
    before = exported(report.path, tmp_path / "before")
    with opened(report.path) as (state, view):
        seq = next(s for s in state.originals if view.event(s).event.path == "summary.md")
    assert call(["erase", str(report.path), str(seq), "--reason", "asked for"]) == 0
    for tree in (before, run):
        found = findings(report.path, tree)
        assert {one.severity for one in found} <= {"unproven", "note"}
        assert any("summary.md" in one.message for one in found)
    after = exported(report.path, tmp_path / "after")
    assert files_of(before) - files_of(after) == {"summary.md"}
    assert findings(report.path, after) == []


def test_artifacts_come_back_under_whatever_name_they_had(tmp_path):
    run = sample(tmp_path, "k3-fatal")
    attempt = next(iter(sorted(run.glob("details/normal/*/attempt-1"))))
    kept = {"a b/ü.txt": b"text", "bin": bytes(range(256)), "empty": b""}
    for name, data in kept.items():
        file = attempt / "artifacts" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    tree = exported(do_import(run, tmp_path / "results").path, tmp_path / "out")
    for name, data in kept.items():
        place = attempt.relative_to(run) / "artifacts" / name
        assert (tree / place).read_bytes() == data
