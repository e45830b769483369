"""Component scores by the arithmetic of their definitions."""

from pathlib import Path
from typing import Any

import pytest

from exporters.job_analysis.components import COMPOSITE
from ledger import events as ev
from tests.analysis_runs import Job, attempt, call, options, right, tool, wrong


def scores(path: Path, during: list[ev.AnyEvent] = (), **fields: Any) -> dict[str, Any]:
    made = attempt("t", during=during, **fields)
    return Job().add("t", made).analyze(path).instance("t")["component_scores"]


def edit(path: str) -> ev.ToolFinished:
    return tool("t", "write_file", {"path": path, "content": "x"})


def test_an_answer_without_late_errors_is_a_whole_submission(tmp_path: Path) -> None:
    during = [tool("t", is_error=True), *[tool("t") for _ in range(9)]]
    assert scores(tmp_path, during)["sub_score"] == 1.0


def test_an_error_in_the_last_steps_halves_a_submission(tmp_path: Path) -> None:
    # The last 30 % of ten steps are three.
    during = [*[tool("t") for _ in range(7)], tool("t", is_error=True), tool("t"), tool("t")]
    assert scores(tmp_path, during)["sub_score"] == 0.5


def test_verifying_at_the_end_adds_to_a_submission(tmp_path: Path) -> None:
    during = [
        *[tool("t") for _ in range(8)],
        tool("t", "bash", {"command": "pytest -q"}, is_error=True),
        tool("t"),
    ]
    assert scores(tmp_path, during)["sub_score"] == 0.65
    assert scores(tmp_path / "none", during, answer=None, correct=False)["sub_score"] == 0.15


def test_nothing_delivered_is_no_submission(tmp_path: Path) -> None:
    assert scores(tmp_path, answer=None, correct=False)["sub_score"] == 0.0


@pytest.mark.parametrize(
    ("turns", "score"), [(1, 0.5), (2, 1.0), (4, 1.0), (6, 0.666667), (10, 0.0), (12, 0.0)]
)
def test_turns_fit_between_two_bounds(tmp_path: Path, turns: int, score: float) -> None:
    during = [event for i in range(turns) for event in call("t", index=i)]
    asked = options(traj_analysis={"stp": {"lo": 2, "hi": 4, "zero": 10}})
    found = Job().add("t", right("t", during=during)).analyze(tmp_path, asked)
    assert found.instance("t")["component_scores"]["stp_score"] == score


@pytest.mark.parametrize(
    ("during", "score"),
    [
        ([tool("t", "ls")], 0.0),
        ([edit("tests/test_a.py")], 0.3),
        ([tool("t", "bash", {"command": "make test"}, exit_code=0)], 0.7),
        ([tool("t", "bash", {"command": "make test"}, exit_code=1)], 0.42),
        ([tool("t", "run_tests", {})], 0.54),
        (
            [
                edit("a_test.go"),
                tool("t", "bash", {"command": ["go", "x"]}),
                tool("t", "run_tests", exit_code=0),
            ],
            1.0,
        ),
    ],
)
def test_testing_is_writing_running_and_passing(
    tmp_path: Path, during: list[ev.AnyEvent], score: float
) -> None:
    assert scores(tmp_path, during)["tvr_score"] == pytest.approx(score)


def test_a_text_that_mentions_a_test_runs_none(tmp_path: Path) -> None:
    during = [tool("t", "write_file", {"path": "a.md", "content": "use pytest"})]
    assert scores(tmp_path, during)["tvr_score"] == 0.0


@pytest.mark.parametrize(
    ("paths", "score"), [(["a", "b"], 1.0), (["a"] * 3, 0.5), (["a"] * 5, 0.0), (["a"] * 9, 0.0)]
)
def test_few_edits_a_file_are_better(tmp_path: Path, paths: list[str], score: float) -> None:
    assert scores(tmp_path, [edit(path) for path in paths])["fec_score"] == score


def test_looking_at_a_file_with_an_editor_is_no_edit(tmp_path: Path) -> None:
    looked = tool("t", "str_replace_based_edit_tool", {"command": "view", "path": "a"})
    assert scores(tmp_path, [looked])["fec_score"] is None


def test_pathologies_cost_discipline(tmp_path: Path) -> None:
    storm = [tool("t", "x", {"n": n}, is_error=True) for n in range(5)]
    loop = [tool("t", "y", {}) for _ in range(3)]
    assert scores(tmp_path / "a", storm)["dpi_score"] == 0.7
    assert scores(tmp_path / "b", [*storm, *loop])["dpi_score"] == 0.3
    assert scores(tmp_path / "c", [*storm, *loop, *call("t", finish="length")])["dpi_score"] == 0.0


def test_without_anything_observed_only_the_submission_has_a_score(tmp_path: Path) -> None:
    found = scores(tmp_path)
    assert [name for name, score in found.items() if score is not None] == ["sub_score", COMPOSITE]
    assert found[COMPOSITE] == 1.0


def test_the_composite_is_the_weighted_mean_of_what_there_is(tmp_path: Path) -> None:
    during = [*call("t"), edit("a"), edit("a"), edit("a")]
    found = scores(tmp_path, during)
    # sub 1, stp 1, tvr 0, fec 0.5 (to the fifth), dpi 1: the three edits are a loop, 0.6 (cubed).
    assert (found["tvr_score"], found["fec_score"], found["dpi_score"]) == (0.0, 0.5, 0.6)
    expected = 0.33 + 0.27 + 0.23 * 0 + 0.10 * 0.5**5 + 0.07 * 0.6**3
    assert found[COMPOSITE] == pytest.approx(expected, abs=1e-6)


def test_weights_come_from_the_configuration(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("sub_score", "stp_score", "fec_score", "dpi_score"), 0)
    asked = options(traj_analysis={"weights": {**nothing, "tvr_score": 1}})
    job = Job().add("t", wrong("t", during=[tool("t", "run_tests")]))
    found = job.analyze(tmp_path, asked).instance("t")["component_scores"]
    assert found[COMPOSITE] == found["tvr_score"] == 0.54


def test_buckets_count_composite_scores(tmp_path: Path) -> None:
    job = Job()
    job.add("a", right("a", during=call("a"))).add("b", right("b", during=call("b"), answer=""))
    resolved = job.analyze(tmp_path).trajectories["resolved"]
    assert sum(resolved["buckets"].values()) == resolved["n"] == 2
    assert resolved["buckets"][">=0.8"] == 1
