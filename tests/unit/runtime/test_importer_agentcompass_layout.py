from pathlib import Path

import pytest

from runtime.importers import Source
from runtime.importers.agentcompass.layout import Layout, arrange

TASK = "details/normal/t--0"
HEX = "0123456789abcdef" * 2


def arranged(root: Path, *names: str) -> Layout:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    return arrange(Source.open(root))


def test_every_file_has_one_place(tmp_path):
    layout = arranged(
        tmp_path,
        "run.log",
        "other.log",
        "details/x",
        f"{TASK}/task.json",
        f"{TASK}/readme",
        f"{TASK}/attempt-2/result.json",
        f"{TASK}/attempt-2/checkpoint.json",
        f"{TASK}/attempt-2/artifacts/a/.b.tmp",
        f"{TASK}/attempt-2/retries/x.json",
        f"{TASK}/attempt-2/retries/{HEX}/artifacts/y",
        f"{TASK}/attempt-2/retries/short/y",
        f"{TASK}/attempt-2/.result.json.1.tmp",
    )
    assert list(layout.run) == ["run.log"]
    assert [file.path for file in layout.foreign] == ["details/x", "other.log"]
    assert [file.path for file in layout.unfinished] == [f"{TASK}/attempt-2/.result.json.1.tmp"]
    (task,) = layout.tasks
    assert (task.path, task.state) == (TASK, "normal")
    assert [file.path for file in task.foreign] == [f"{TASK}/readme"]
    attempt = task.attempts[2]
    assert attempt.result is not None
    assert attempt.checkpoint is not None
    assert len(attempt.artifacts) == len(attempt.retries) == len(attempt.archived) == 1
    assert [file.path for file in attempt.foreign] == [f"{TASK}/attempt-2/retries/short/y"]
    placed = [*layout.run.values(), *layout.foreign, *layout.unfinished, *task.all()]
    assert {file.path for file in placed} == {file.path for file in Source.open(tmp_path).files}


@pytest.mark.parametrize("name", ["attempt-0", "attempt-01", "attempt--1", "attempt-1234567890"])
def test_a_directory_that_numbers_no_attempt_is_foreign(tmp_path, name):
    (task,) = arranged(tmp_path, f"{TASK}/{name}/result.json").tasks
    assert not task.attempts
    assert len(task.foreign) == 1


def test_a_name_with_a_line_end_is_a_name(tmp_path):
    (task,) = arranged(tmp_path, f"{TASK}/attempt-1/artifacts/a\nb").tasks
    assert len(task.attempts[1].artifacts) == 1
