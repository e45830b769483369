"""Names of jobs and trials."""

import re
from pathlib import Path

import pytest

from exporters.jobs.names import job_name, second_name, task_names, trial_names
from ledger import events as ev
from ledger.errors import UsageError
from tests import job_runs as say


def name_of(tmp_path: Path, wanted: str | None = None, **sections: object) -> str:
    with say.opened(say.write(tmp_path / "run", *say.opening("t1", **sections))) as (state, _):
        return job_name(state, wanted)


def test_a_job_is_named_for_benchmark_harness_model_and_the_start_of_the_run(
    tmp_path: Path,
) -> None:
    assert name_of(tmp_path) == "bench-agent-model-1-20250615150640"


def test_parts_have_only_plain_characters_and_no_punctuation_at_their_ends(tmp_path: Path) -> None:
    sections = {"harness": {"id": "..my agent/2__"}, "model": {"id": "org/m\u00f6del:1 -"}}
    assert name_of(tmp_path, **sections) == "bench-my_agent_2-org_m_del_1-20250615150640"


def test_parts_are_cut_and_the_whole_leaves_room_for_a_staging_directory(tmp_path: Path) -> None:
    sections = {part: {"id": "x" * 300} for part in ("benchmark", "harness", "model")}
    name = name_of(tmp_path, **sections)
    assert name.startswith("x" * 80 + "-" + "x" * 80 + "-")
    assert name.endswith("-20250615150640")
    assert len(f".tmp.{name}.{2**22}.old".encode()) <= 255


def test_an_id_of_which_nothing_is_left_is_left_out(tmp_path: Path) -> None:
    assert name_of(tmp_path, harness={"id": "\u2603"}) == "bench-model-1-20250615150640"


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("nightly", "nightly"), ("../up one", "up_one"), ("a" * 100, "a" * 80), (".tmp.x", "tmp.x")],
)
def test_a_name_that_is_asked_for_is_made_fit_for_a_directory(
    tmp_path: Path, wanted: str, name: str
) -> None:
    assert name_of(tmp_path, wanted) == name


@pytest.mark.parametrize("wanted", ["", "..", "/", "\u2603"])
def test_a_name_of_which_nothing_is_left_is_refused(tmp_path: Path, wanted: str) -> None:
    with pytest.raises(UsageError):
        name_of(tmp_path, wanted)


def test_the_second_name_keeps_the_time_at_its_end(tmp_path: Path) -> None:
    with say.opened(say.write(tmp_path, *say.opening("t1"))) as (state, _):
        expected = f"bench-agent-model-1-{state.ledger_id[:8]}-20250615150640"
        assert second_name(state) == expected


@pytest.mark.parametrize(
    "task_id",
    ["analysis", "Analysis", "result.json", "CONFIG.yaml", "config.json", "MANIFEST.json"],
)
def test_no_task_gets_a_name_that_stands_beside_the_trials(tmp_path: Path, task_id: str) -> None:
    with say.opened(say.write(tmp_path, *say.opening(task_id))) as (state, _):
        name = task_names(state)[task_id]
    assert re.fullmatch(re.escape(task_id) + "--[0-9a-f]{12}", name)


def test_odd_ids_have_short_plain_names_that_differ_without_case(tmp_path: Path) -> None:
    ids = (
        "a/b",
        "a b",
        "Case",
        "case",
        "caf\u00e9",
        "x" * 300,
        "\ud83d",
        "\ud83d\ude00",
        "..",
        "a",
    )
    with say.opened(say.write(tmp_path, *say.opening(*ids))) as (state, _):
        names = task_names(state)
    assert len({name.lower() for name in names.values()}) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,119}", n) for n in names.values())


def test_a_category_is_not_part_of_the_name(tmp_path: Path) -> None:
    refs = ev.TaskRef(task_id="t1", category="math")
    with say.opened(say.write(tmp_path, *say.opening(refs))) as (state, _):
        assert task_names(state) == {"t1": "t1"}


def directories(path: Path) -> dict[tuple[str, int], str]:
    with say.opened(path) as (state, _):
        return trial_names(state)


def test_one_attempt_a_task_has_the_tasks_name_whatever_was_retried(tmp_path: Path) -> None:
    during = [*say.call("t1", 1, 0), say.retried("t1", 1, 1)]
    events = say.whole("t1", say.attempt("t1", 1, *during, retries=1))
    assert directories(say.write(tmp_path, *say.opening("t1"), *events)) == {("t1", 1): "t1"}


def test_each_countable_attempt_of_several_has_a_directory_with_its_number(tmp_path: Path) -> None:
    events = [
        *say.opening("a__1", "b", execution={"k": 3}),
        *say.whole("a__1", say.attempt("a__1"), say.broken("a__1", 2), say.attempt("a__1", 3)),
        ev.TaskStarted(task="b"),
        *say.attempt("b", 1, correct=False),
        *say.cancelled("b", 2),
        ev.TaskCancelled(task="b", reason="SIGINT"),
        *say.ending("cancelled", 130),
    ]
    assert directories(say.write(tmp_path, *events)) == {
        ("a__1", 1): "a__1__1",
        ("a__1", 2): "a__1__2",
        ("a__1", 3): "a__1__3",
        ("b", 1): "b__1",
    }


def test_the_only_attempt_of_a_task_has_its_directory_also_if_it_was_cancelled(
    tmp_path: Path,
) -> None:
    events = [
        *say.opening("a", "b"),
        ev.TaskStarted(task="a"),
        *say.cancelled("a"),
        ev.TaskCancelled(task="a", reason="SIGINT"),
    ]
    assert directories(say.write(tmp_path, *events)) == {("a", 1): "a"}


def test_an_attempt_that_did_not_end_has_no_directory(tmp_path: Path) -> None:
    events = [*say.opening("a"), ev.TaskStarted(task="a"), *say.attempt("a")[:-1]]
    assert directories(say.write(tmp_path, *events)) == {}
