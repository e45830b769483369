"""Difficulty tiers by their sources, and what other runs count for."""

from pathlib import Path
from typing import Any

import pytest

from exporters.job_analysis import AnalysisConfig, EmpiricalSource, empirical_source
from ledger.state import RunState
from tests.analysis_runs import Job, broken, cancelled, options, right, wrong


def tier(path: Path, config: AnalysisConfig | None = None, **metadata: Any) -> tuple[str, str]:
    one = Job().add("t", right("t"), **metadata).analyze(path, config).instance("t")
    return one["difficulty_tier"], one["difficulty_source"]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("easy", "easy"),
        ("very_hard", "very_hard"),
        ("<15 min fix", "easy"),
        ("15 min - 1 hour", "medium"),
        ("1-4 hours", "hard"),
        (">4 hours", "very_hard"),
    ],
)
def test_a_declared_difficulty_comes_first(tmp_path: Path, label: str, name: str) -> None:
    assert tier(tmp_path, difficulty=label, patch=patch()) == (name, "declared")


def test_a_label_that_is_not_known_is_no_tier_and_is_shown_as_given(tmp_path: Path) -> None:
    job = Job().add("t", right("t"), difficulty="nightmare")
    found = job.analyze(tmp_path)
    assert found.instance("t")["difficulty_tier"] == "unknown"
    assert found.tasks["swebench_difficulty_distribution"]["nightmare"]["count"] == 1


def patch(lines: int = 1, hunks: int = 1, files: tuple[str, ...] = ("a/x.py",)) -> str:
    text = ""
    for file in files:
        text += f"--- a/{file}\n+++ b/{file}\n"
        for hunk in range(hunks):
            text += f"@@ -{hunk * 100 + 1},0 +{hunk * 100 + 1},{lines} @@\n" + "+x\n" * lines
    return text


@pytest.mark.parametrize(
    ("gold", "tests", "name"),
    [
        (patch(), 1, "easy"),  # 2
        (patch(lines=6), 1, "medium"),  # 2 + 1
        (patch(), 4, "medium"),  # 2 + 1
        (patch(files=("a/x.py", "a/y.py")), 1, "medium"),  # 2 + 1
        (patch(lines=21, files=("a/x.py", "b/y.py")), 0, "hard"),  # 2 + 2 + 2
        (patch(hunks=11, files=("a/x.py", "b/y.py")), 3, "hard"),  # 2 + 3 + 2
        (patch(lines=51, files=("a/x.py", "b/y.py")), 4, "hard"),  # 2 + 3 + 2 + 1
    ],
)
def test_a_gold_patch_has_a_difficulty_by_its_points(
    tmp_path: Path, gold: str, tests: int, name: str
) -> None:
    mended = [f"test_{n}" for n in range(tests)]
    assert tier(tmp_path, patch=gold, fail_to_pass=mended) == (name, "structural")


def source(n: int, k: int, pairs: int) -> AnalysisConfig:
    return options(empirical_source={"runs": [], "tasks": {"t": {"n": n, "k": k, "pairs": pairs}}})


@pytest.mark.parametrize(
    ("n", "k", "name"),
    [
        (10, 8, "easy"),
        (10, 7, "medium"),
        (10, 5, "medium"),
        (10, 2, "hard"),
        (10, 1, "very_hard"),
        (10, 0, "unsolved"),
    ],
)
def test_the_success_of_others_is_an_empirical_difficulty(
    tmp_path: Path, n: int, k: int, name: str
) -> None:
    assert tier(tmp_path, source(n, k, 2)) == (name, "empirical")


@pytest.mark.parametrize(("n", "pairs"), [(4, 2), (50, 1)])
def test_few_attempts_or_one_kind_of_agent_tell_nothing(tmp_path: Path, n: int, pairs: int) -> None:
    assert tier(tmp_path, source(n, 0, pairs)) == ("unknown", "unknown")


def test_a_tier_is_certain_where_its_interval_is_inside_one_band(tmp_path: Path) -> None:
    job = Job().add("t", right("t"))
    assert job.analyze(tmp_path / "a", source(5, 5, 2)).instance("t")["tier_certain"] is False
    assert job.analyze(tmp_path / "b", source(200, 200, 2)).instance("t")["tier_certain"] is True


def peer(path: Path, run_id: str, *attempts: Any, **fields: Any) -> RunState:
    checksum = fields.pop("checksum", "c1")
    job = Job(run_id=run_id, k=len(attempts), **fields)
    return job.add("t", *attempts, checksum=checksum).state(path / run_id)


def ours(path: Path) -> RunState:
    return Job().add("t", right("t"), checksum="c1").state(path / "ours")


def test_other_runs_are_counted_by_their_evaluated_attempts(tmp_path: Path) -> None:
    first = peer(tmp_path, "p1", right("t"), wrong("t", 2), broken("t", 3), model="m1")
    second = peer(tmp_path, "p2", wrong("t"), wrong("t", 2), right("t", 3), model="m2")
    found = empirical_source(ours(tmp_path), [second, first])
    told = found.tasks["t"]
    assert (told.n, told.k, told.pairs) == (5, 2, 2)
    assert [run.run_id for run in found.runs] == ["p1", "p2"]
    assert found.runs[0].root == first.root.hex()


def test_a_run_says_nothing_of_itself(tmp_path: Path) -> None:
    state = ours(tmp_path)
    assert empirical_source(state, [state]) == EmpiricalSource(runs=[], tasks={})


def test_attempts_at_another_input_are_left_out(tmp_path: Path) -> None:
    other = peer(tmp_path, "p", right("t"), checksum="c2")
    assert empirical_source(ours(tmp_path), [other]).tasks == {}


def test_cancelled_attempts_are_left_out(tmp_path: Path) -> None:
    other = peer(tmp_path, "p", cancelled("t"))
    assert empirical_source(ours(tmp_path), [other]).tasks == {}


def test_copies_of_one_attempt_count_once(tmp_path: Path) -> None:
    one = peer(tmp_path, "p", right("t"))
    copy = peer(tmp_path / "copy", "p", right("t"))
    copy.ledger_id = "00" * 16
    assert empirical_source(ours(tmp_path), [one, copy]).tasks["t"].n == 1


def test_the_numbers_of_others_are_kept_so_that_they_need_not_be_asked_again(
    tmp_path: Path,
) -> None:
    peers = [
        peer(tmp_path, "p1", right("t"), right("t", 2), right("t", 3), model="m1"),
        peer(tmp_path, "p2", right("t"), wrong("t", 2), right("t", 3), model="m2"),
    ]
    config = AnalysisConfig(empirical_source=empirical_source(ours(tmp_path), peers))
    job = Job().add("t", right("t"), checksum="c1")
    first = job.analyze(tmp_path / "first", config)
    assert first.instance("t")["difficulty_tier"] == "easy"
    kept = AnalysisConfig.parse(first.text("analysis_config.yaml"))
    assert job.analyze(tmp_path / "again", kept).files == first.files
