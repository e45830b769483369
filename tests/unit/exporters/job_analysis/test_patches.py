"""The agent's patch beside the gold patch."""

from pathlib import Path
from typing import Any

import pytest

from exporters.job_analysis.patches import parse_patch
from ledger import events as ev
from tests.analysis_runs import Job, attempt, tool

GOLD = """\
diff --git a/src/app.py b/src/app.py
--- a/src/app.py
+++ b/src/app.py
@@ -10,3 +10,3 @@ def start(port):
 one
-two
+2
 three
@@ -40,2 +40,3 @@ def stop():
 four
+five
 six
"""


def patch(file: str, start: int, function: str = "start") -> str:
    return (
        f"--- a/{file}\n+++ b/{file}\n"
        f"@@ -{start},2 +{start},2 @@ def {function}():\n one\n-two\n+2\n"
    )


def judged(
    path: Path, *tools: ev.AnyEvent, answer: str | None = None, correct: bool = False
) -> Any:
    made = attempt("t", correct=correct, during=list(tools), answer=answer)
    return Job().add("t", made, patch=GOLD).analyze(path).instance("t")


def test_a_patch_is_read_with_its_files_hunks_and_lines() -> None:
    found = parse_patch(GOLD)
    assert found is not None
    assert found.files == ["src/app.py"]
    assert [(hunk.start, hunk.stop) for hunk in found.hunks] == [(10, 13), (40, 42)]
    assert (found.lines, found.functions) == (3, {"start", "stop"})


@pytest.mark.parametrize("text", [None, 3, "", "no patch", "@@ -1 +1 @@\n-a\n+b\n"])
def test_what_is_no_patch_is_none(text: object) -> None:
    assert parse_patch(text) is None


def test_lines_that_look_like_headers_inside_a_hunk_are_lines() -> None:
    text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n"
    found = parse_patch(text)
    assert found is not None
    assert (found.files, found.lines) == (["x"], 2)


def test_a_new_file_is_named_by_its_new_name() -> None:
    found = parse_patch("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n")
    assert found is not None
    assert found.files == ["new.py"]


def test_reading_the_right_place_and_mending_it_wrongly_is_wrong_logic(tmp_path: Path) -> None:
    look = tool("t", "read_file", {"path": "/repo/src/app.py"})
    wanted = GOLD.replace("+2", "+3")
    one = judged(tmp_path, look, answer=wanted)
    assert (one["axes"]["localization"], one["axes"]["diagnosis"]) == ("hit", "correct")
    assert one["axes"]["implementation"] == "wrong_logic"
    assert one["primary"] == "implementation"
    told = one["deterministic_features"]
    assert (told["C1_file_read"], told["C2_func_read"]) == (True, True)
    assert (told["C3_file_alignment"], told["C4_func_alignment"]) == (1.0, 1.0)
    assert (told["diff_hunk_overlap"], told["diff_line_delta"]) == (1.0, 0)
    assert told["diff_file_delta"] == 0


def test_another_file_is_a_wrong_location(tmp_path: Path) -> None:
    one = judged(
        tmp_path, tool("t", "read_file", {"path": "src/other.py"}), answer=patch("x.py", 1)
    )
    assert one["axes"]["localization"] == "miss"
    assert one["axes"]["diagnosis"] == "wrong"
    assert one["axes"]["implementation"] == "wrong_location"
    assert one["primary"] == "localization"
    assert one["secondary_failures"] == ["diagnosis", "implementation"]


def test_part_of_the_functions_is_a_partial_fix(tmp_path: Path) -> None:
    look = tool("t", "view", {"path": "src/app.py", "view_range": [1, 20]})
    one = judged(tmp_path, look, answer=patch("src/app.py", 11))
    # The range names no function of the gold patch.
    assert one["axes"]["localization"] == "partial"
    assert one["axes"]["implementation"] == "partial_fix"
    assert one["deterministic_features"]["C4_func_alignment"] == 0.5
    assert one["deterministic_features"]["diff_hunk_overlap"] == 0.5


def test_nothing_changed_is_no_edit(tmp_path: Path) -> None:
    one = judged(tmp_path, answer="I give up")
    assert one["axes"]["implementation"] == "no_edit"
    assert one["deterministic_features"]["diff_hunk_overlap"] is None


def test_edits_count_where_the_answer_is_no_patch(tmp_path: Path) -> None:
    edit = tool("t", "edit_file", {"path": "/work/src/app.py", "text": "x"})
    one = judged(tmp_path, edit, answer="done")
    assert one["deterministic_features"]["C3_file_alignment"] == 1.0
    assert one["axes"]["implementation"] == "wrong_logic"


def test_a_name_inside_another_name_is_not_the_file(tmp_path: Path) -> None:
    one = judged(tmp_path, tool("t", "read_file", {"path": "my_src/app.pyc"}), answer="x")
    assert one["deterministic_features"]["C1_file_read"] is False


def test_a_resolved_attempt_elsewhere_is_an_alternative_fix(tmp_path: Path) -> None:
    one = judged(tmp_path, answer=patch("src/app.py", 100), correct=True)
    assert one["flags"] == ["alternative_fix"]
    assert one["axes"]["implementation"] == one["axes"]["diagnosis"] == "correct"


def test_a_patch_may_be_among_the_collected_files(tmp_path: Path) -> None:
    made = attempt("t", correct=False)
    place = next(i for i, event in enumerate(made) if isinstance(event, ev.ResultRecorded))
    made.insert(
        place + 1,
        ev.ArtifactsCollected(
            task="t",
            attempt=1,
            artifacts=(ev.Artifact(path="out/fix.patch", bytes=len(GOLD)),),
            contents={"out/fix.patch": GOLD},
        ),
    )
    one = Job().add("t", made, patch=GOLD).analyze(tmp_path).instance("t")
    assert one["deterministic_features"]["diff_hunk_overlap"] == 1.0


def test_without_a_gold_patch_nothing_is_compared(tmp_path: Path) -> None:
    made = attempt("t", correct=False, answer=GOLD)
    one = Job().add("t", made).analyze(tmp_path).instance("t")
    assert one["deterministic_features"]["C3_file_alignment"] is None


def test_a_missing_newline_at_the_end_of_a_file_is_no_line_of_it() -> None:
    end = "\\ No newline at end of file\n"
    text = f"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-one\n{end}+two\n same\n{end}--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    found = parse_patch(text)
    assert found is not None
    assert (found.files, found.lines) == (["x", "y"], 4)


def test_whether_tests_ran_is_unknown_where_nothing_was_observed(tmp_path: Path) -> None:
    assert judged(tmp_path / "a")["deterministic_features"]["C5_test_executed"] is None
    ran = judged(tmp_path / "b", tool("t", "run_tests"))
    assert ran["deterministic_features"]["C5_test_executed"] is True
    idle = judged(tmp_path / "c", tool("t", "ls"))
    assert idle["deterministic_features"]["C5_test_executed"] is False
