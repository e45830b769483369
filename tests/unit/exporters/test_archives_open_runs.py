import json
from pathlib import Path

import pytest

from exporters.archives import forget, open_runs, register
from exporters.archives.open_runs import portable, relative
from ledger.errors import ExportRefused


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def test_a_run_is_found_until_it_is_forgotten(artifacts: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "results" / "r1" / "ledger.sqlite"
    assert open_runs(artifacts) == []
    register(artifacts, ledger)
    register(artifacts, ledger, {"name": "mine"})
    assert [(one.ledger, one.options) for one in open_runs(artifacts)] == [
        (ledger, {"name": "mine"})
    ]
    forget(artifacts, ledger)
    forget(artifacts, ledger)
    assert open_runs(artifacts) == []


def test_no_note_names_the_machine(artifacts: Path, tmp_path: Path) -> None:
    note = register(artifacts, tmp_path / "results" / "r1" / "ledger.sqlite").note
    assert json.loads(note.read_text()) == {
        "ledger": "../results/r1/ledger.sqlite",
        "options": {},
    }


def test_both_may_be_moved_together(artifacts: Path, tmp_path: Path) -> None:
    register(artifacts, tmp_path / "results" / "ledger.sqlite")
    (tmp_path / "moved").mkdir()
    artifacts.rename(tmp_path / "moved" / "artifacts")
    (found,) = open_runs(tmp_path / "moved" / "artifacts")
    assert found.ledger == tmp_path / "moved" / "results" / "ledger.sqlite"


def test_what_is_no_note_of_ours_is_passed_over(artifacts: Path, tmp_path: Path) -> None:
    note = register(artifacts, tmp_path / "ledger.sqlite").note
    for name, text in {
        "a.json": note.read_text(),
        "b.json": "[]",
        "c.json": "{",
        "d.json": '{"ledger": 3}',
    }.items():
        (note.parent / name).write_text(text)
    (note.parent / "e.json").mkdir()
    (note.parent / "f.json").symlink_to(note)
    assert len(open_runs(artifacts)) == 1


def test_a_path_over_the_root_of_the_machine_is_not_told(artifacts: Path, tmp_path: Path) -> None:
    assert portable(artifacts, tmp_path / "r" / "ledger.sqlite") == "../r/ledger.sqlite"
    elsewhere = Path("/opt/elsewhere/ledger.sqlite")
    assert portable(artifacts, elsewhere) is None
    assert relative(artifacts, elsewhere).endswith("/opt/elsewhere/ledger.sqlite")


def test_where_nothing_can_be_written_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportRefused):
        register(tmp_path / "file", tmp_path / "ledger.sqlite")
