"""Two exported trees compared."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exporters.compare import TreeDifference, compare_trees
from ledger.errors import UsageError
from tests.golden.regenerate import TREES


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """The same golden tree twice."""
    for name in ("a", "b"):
        shutil.copytree(TREES / "full", tmp_path / name)
    return tmp_path / "a", tmp_path / "b"


def edit(path: Path, change: Callable[[Any], object]) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_tree_equals_itself(trees: tuple[Path, Path]) -> None:
    found = compare_trees(*trees)
    assert found.equal
    assert found.set_aside == ("MANIFEST.json",)


def test_what_makes_an_import_another_run_is_set_aside_and_named(trees: tuple[Path, Path]) -> None:
    _, b = trees
    for path in b.rglob("*.json"):
        edit(path, lambda value: value["acl"].update(run_id="r2", ledger_id="ff" * 16, size=9))
    edit(b / "run_info.json", lambda info: info.update(run_id="r2", started_at=None))
    edit(b / "run_info.json", lambda info: info.update(finished_at="2026-01-01T00:00:00Z"))
    edit(b / "run_info.json", lambda info: info["metric_artifacts"].update(generated_at="now"))
    edit(b / "params.json", lambda params: params["output"].update(run_id="r2"))
    replace(b / "summary.md", "**Run:** full-1", "**Run:** r2")
    replace(b / "summary.md", "- Ledger: `", "- Imported from: details\n- Ledger: `ff")
    found = compare_trees(*trees)
    assert found.differences == ()
    told = "\n".join(found.set_aside)
    for name in (
        "MANIFEST.json",
        "acl of",
        "run_info.json: $.run_id, $.started_at, $.finished_at, $.metric_artifacts.generated_at",
        "params.json: $.output.run_id",
        "summary.md: ",
    ):
        assert name in told


def test_a_file_that_is_in_one_tree_only_is_named(trees: tuple[Path, Path]) -> None:
    a, b = trees
    (b / "details" / "loose.json").unlink()
    (b / "details" / "more.json").write_text("{}\n")
    assert compare_trees(a, b).differences == (
        TreeDifference("details/loose.json", "missing"),
        TreeDifference("details/more.json", "extra"),
    )


def test_the_first_difference_of_a_file_is_named_by_its_path(trees: tuple[Path, Path]) -> None:
    a, b = trees
    edit(b / "details" / "loose.json", lambda value: value["attempts"]["1"].update(score=1.0))
    assert compare_trees(a, b).differences == (
        TreeDifference("details/loose.json", "differs", '$.attempts["1"].score', "0.5", "1.0"),
    )


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("run_info.json", lambda value: value.update(status="failed")),
        ("run_info.json", lambda value: value.pop("finished_at")),
        ("run_info.json", lambda value: value["request"].update(acl=1)),
        ("params.json", lambda value: value["output"].update(run_name="other")),
        (".summary_counts.json", lambda value: value.update(total=7)),
        ("details/loose.json", lambda value: value.update(run_id="x")),
        ("analysis_summary.json", lambda value: value["rows"].pop()),
    ],
)
def test_nothing_else_is_set_aside(
    trees: tuple[Path, Path], path: str, change: Callable[[Any], object]
) -> None:
    a, b = trees
    edit(b / path, change)
    (found,) = compare_trees(a, b).differences
    assert (found.path, found.kind) == (path, "differs")


def test_a_line_of_a_text_file_is_named(trees: tuple[Path, Path]) -> None:
    a, b = trees
    replace(b / "summary.md", "**Total:** 6", "**Total:** 7")
    (found,) = compare_trees(a, b).differences
    assert (found.path, found.first, found.second) == (
        "summary.md",
        "**Total:** 6  ",
        "**Total:** 7  ",
    )
    assert found.at is not None
    assert found.at.startswith("line ")


def test_a_text_that_ends_earlier_is_named(trees: tuple[Path, Path]) -> None:
    a, b = trees
    with (b / "analysis_summary.md").open("a") as file:
        file.write("more\n")
    (found,) = compare_trees(a, b).differences
    assert (found.path, found.second) == ("analysis_summary.md", "more")


def test_the_same_values_in_another_spelling_differ(trees: tuple[Path, Path]) -> None:
    a, b = trees
    path = b / "details" / "loose.json"
    path.write_text(json.dumps(json.loads(path.read_text())) + "\n")
    (found,) = compare_trees(a, b).differences
    assert (found.path, found.at) == ("details/loose.json", "spelling")


def test_a_file_that_is_no_json_is_compared_as_bytes(trees: tuple[Path, Path]) -> None:
    a, b = trees
    (b / "params.json").write_text("{")
    (found,) = compare_trees(a, b).differences
    assert (found.path, found.kind) == ("params.json", "differs")


def test_what_belongs_to_the_run_itself_is_set_aside(trees: tuple[Path, Path]) -> None:
    a, b = trees
    (a / "run.log").write_text("log")
    (b / "progress.json").write_text("{}")
    (b / "ledger.sqlite").write_bytes(b"x")
    found = compare_trees(a, b)
    assert found.equal
    assert {"run.log", "progress.json", "ledger.sqlite"} <= set(found.set_aside)


def test_a_link_is_no_file_of_a_tree(trees: tuple[Path, Path]) -> None:
    a, b = trees
    path = b / "details" / "loose.json"
    path.unlink()
    path.symlink_to(a / "details" / "loose.json")
    (found,) = compare_trees(a, b).differences
    assert found.path == "details/loose.json"


def test_what_is_no_directory_is_refused(trees: tuple[Path, Path]) -> None:
    a, _ = trees
    for wrong in (a / "nothing", a / "params.json"):
        with pytest.raises(UsageError, match="no directory"):
            compare_trees(a, wrong)
