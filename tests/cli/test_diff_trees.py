"""`acl diff --trees`: exported trees compared, and the way back through an import."""

import json
from pathlib import Path

from tests.cli.conftest import Acl


def test_an_import_of_an_export_gives_the_same_tree(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    assert acl("export", sealed, "a").status == 0
    imported = acl("import", "a", "--json")
    assert imported.status == 0
    assert imported.document()["format"] == "details"
    assert acl("export", imported.document()["path"], "b").status == 0
    said = acl("diff", "--trees", "a", "b")
    assert said.status == 0
    assert said.out.splitlines()[-1] == "equal"
    assert "set aside: run_info.json: $.run_id, $.started_at" in said.out
    assert acl("replay", imported.document()["path"]).status == 0


def test_an_interrupted_run_comes_back_as_one(acl: Acl, killed: Path) -> None:
    acl("export", killed, "a")
    imported = acl("import", "a", "--json").document()
    said = acl("export", imported["path"], "b", "--json").document()
    assert said["status"] == "interrupted"
    assert acl("diff", "--trees", "a", "b").status == 0


def test_a_difference_is_named_with_its_path(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        acl("export", sealed, name)
    path = tmp_path / "b" / "details" / "right_math.json"
    record = json.loads(path.read_text())
    record["attempts"]["1"]["correct"] = False
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    (tmp_path / "b" / "summary.md").unlink()
    said = acl("diff", "--trees", "a", "b")
    assert said.status == 1
    assert (
        'differs: details/right_math.json at $.attempts["1"].correct: true in A, false' in said.out
    )
    assert "only in A: summary.md" in said.out


def test_json_is_one_document(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        acl("export", sealed, name)
    (tmp_path / "b" / "summary.md").unlink()
    said = acl("diff", "--trees", "a", "b", "--json")
    assert said.status == 1
    assert said.document() == {
        "equal": False,
        "differences": [
            {"path": "summary.md", "kind": "missing", "at": None, "first": None, "second": None}
        ],
        "set_aside": ["MANIFEST.json"],
    }


def test_what_is_no_directory_is_wrong_use(acl: Acl, sealed: Path) -> None:
    said = acl("diff", "--trees", sealed, "nowhere")
    assert (said.status, said.out) == (2, "")
    assert "nowhere is no directory" in said.err


def test_without_trees_two_runs_are_compared(acl: Acl, sealed: Path, killed: Path) -> None:
    said = acl("diff", sealed, killed)
    assert said.status == 0
    assert "equal verdicts" in said.out
