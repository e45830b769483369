import json
import shutil
import sys
from pathlib import Path

import pytest

from runtime.importers.samples import unpack_sample
from tests.cli.conftest import Acl


@pytest.fixture
def source(tmp_path: Path) -> Path:
    unpack_sample(tmp_path / "source")
    return tmp_path / "source"


def test_an_imported_run_shows_the_numbers_of_its_source(acl: Acl, source: Path) -> None:
    said = acl("import", source, "--json")
    document = said.document()
    assert said.status == 0
    assert document["in"] == document["out"] == 94
    assert document["unplaced"] == []
    replayed = acl("replay", document["path"], "--json")
    metrics = replayed.document()["metrics"]["metrics"]
    assert replayed.status == 0
    assert metrics["correct.avg@3"] == pytest.approx(0.7037, abs=5e-5)
    assert metrics["correct.pass@3"] == pytest.approx(0.7778, abs=5e-5)
    assert any("count_as_zero" in name for name in metrics)


def test_importing_again_changes_nothing(acl: Acl, source: Path, tmp_path: Path) -> None:
    first = acl("import", source, "--json").document()
    shutil.copytree(source, tmp_path / "copy under another name")
    again = acl("import", tmp_path / "copy under another name", "--json")
    assert again.status == 0
    assert again.document()["already"] is True
    assert again.document()["path"] == first["path"]
    assert len(acl("ls", "--json").lines()) == 1


def test_a_dry_run_writes_nothing(acl: Acl, source: Path, tmp_path: Path) -> None:
    said = acl("import", source, "--dry-run", "--json")
    assert said.status == 0
    assert said.document()["in"] == 94
    assert not (tmp_path / "results").exists()


def test_what_cannot_be_placed_is_named_and_exits_1(acl: Acl, source: Path) -> None:
    victim = next((source / "details" / "normal").glob("*/attempt-1/result.json"))
    victim.write_text("[]")
    said = acl("import", source, "--json")
    assert said.status == 1
    named = [one["source"] for one in said.document()["unplaced"]]
    assert named == [str(victim.relative_to(source))]
    assert victim.parent.name in acl("import", source, "--dry-run").out


@pytest.mark.parametrize("what", ["missing", "empty", "file", "foreign"])
def test_what_no_importer_takes_is_refused_by_name(acl: Acl, tmp_path: Path, what: str) -> None:
    path = tmp_path / "x"
    if what in ("empty", "foreign"):
        path.mkdir()
    if what == "foreign":
        (path / "notes.txt").write_text("hello")
    if what == "file":
        path.write_text("hello")
    said = acl("import", path)
    assert said.status == 2
    assert said.err.count("\n") == 1
    assert str(path) in said.err


def test_an_unknown_format_names_the_known_ones(acl: Acl, source: Path) -> None:
    said = acl("import", source, "-f", "nope")
    assert said.status == 2
    assert "agentcompass" in said.err


def test_the_archive_of_an_import_names_the_whole_command(
    acl: Acl, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/acl", "import", "source"])
    imported = acl("import", source, "--json").document()
    assert acl("export", "-f", "jobs", imported["path"], "artifacts").status == 0
    script = tmp_path / "artifacts" / "archives" / "run_001" / "scripts" / "command.sh"
    assert script.read_text() == "#!/bin/sh\nacl import source\n"


def test_a_number_whose_denominator_the_source_does_not_tell_is_listed_alone(
    acl: Acl, tmp_path: Path
) -> None:
    line = {"doc_id": 0, "resps": [["4"]], "filtered_resps": ["4"], "target": "4", "accuracy": 1.0}
    table = {"results": {"t": {"accuracy,none": 1.0}}, "configs": {"t": {}}}
    source = tmp_path / "evaluation"
    source.mkdir()
    (source / "samples_t_2026-01-21T03-44-18.458309.jsonl").write_text(json.dumps(line) + "\n")
    (source / "results_2026-01-21T03-44-18.458309.json").write_text(json.dumps(table))
    assert acl("import", source).status == 0
    assert acl("ls", "--json").lines()[0]["headline"] == "t/accuracy,none=1.0000"


def test_what_was_imported_in_one_format_is_not_shown_as_another(acl: Acl, tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    (source / "a.jsonl").write_text('{"acl.generic": 1}\n{"task_id": "a", "correct": true}\n')
    (source / "run.json").write_text('[{"task_id": 1, "reward": 1.0, "trial": 0}]')
    assert acl("import", source, "-f", "generic").status == 1
    said = acl("import", source, "-f", "tau_bench")
    assert said.status == 2
    assert "were imported as generic" in said.err
    assert acl("import", source, "-f", "generic").status == 0
    assert acl("import", source / "run.json").status == 0
