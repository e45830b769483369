"""Putting a job below an artifacts directory."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from exporters import OutFile
from exporters.check import check_tree
from exporters.folder import Folder
from exporters.jobs.job import JobOptions
from exporters.jobs.place import Placed, settled, write_job
from ledger import events as ev
from ledger.errors import ExportRefused
from ledger.fold import fold
from ledger.verify import Finding
from tests import job_runs as say

JOB = "bench-agent-model-1-20250615150640"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    events = [*say.whole("a", say.attempt("a", 1, *say.call("a", 1, 0))), *say.ending()]
    return say.write(tmp_path / "run", *say.opening("a"), *events)


def place(run: Path, artifacts: Path, *, size: int | None = None, **fields: Any) -> Placed:
    options = fields.pop("options", JobOptions())
    with say.opened(run, size) as (state, view):
        return write_job(artifacts, state, view, options, **fields)


def tree(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def check(run: Path, directory: Path) -> list[Finding]:
    with say.opened(run) as (state, view):
        return list(
            check_tree(
                lambda size: fold(view.events(until=size)),
                view,
                directory,
                ledger_id=view.ledger_id.hex(),
                size=state.size,
            )
        )


def test_a_job_stands_below_jobs_under_its_name_and_nothing_beside_it(
    run: Path, tmp_path: Path
) -> None:
    placed = place(run, tmp_path / "artifacts")
    assert placed == Placed(tmp_path / "artifacts" / "jobs" / JOB, is_new=True, files=10)
    assert [entry.name for entry in (tmp_path / "artifacts" / "jobs").iterdir()] == [JOB]
    files = say.exported(run)
    found = tree(placed.directory)
    manifest = json.loads(found.pop("MANIFEST.json"))
    assert found == files
    assert sorted(file["path"] for file in manifest["files"]) == sorted(files)


def test_the_same_ledger_gives_the_same_bytes_wherever_it_stands(run: Path, tmp_path: Path) -> None:
    first = place(run, tmp_path / "1").directory
    copy = tmp_path / "elsewhere" / "deep"
    shutil.copytree(run, copy)
    second = place(copy, tmp_path / "2").directory
    assert tree(first) == tree(second)
    assert str(tmp_path).encode() not in b"".join(tree(first).values())


def test_the_same_job_again_is_left_as_it_is(run: Path, tmp_path: Path) -> None:
    directory = place(run, tmp_path).directory
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    assert place(run, tmp_path) == Placed(directory, is_new=False, files=10)
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


def test_another_state_of_the_run_is_refused_unless_it_is_forced(run: Path, tmp_path: Path) -> None:
    directory = place(run, tmp_path, size=6).directory
    before = tree(directory)
    with pytest.raises(ExportRefused, match="another state of this run") as caught:
        place(run, tmp_path)
    assert caught.value.exit_status == 5
    assert tree(directory) == before
    assert place(run, tmp_path, force=True).is_new
    assert json.loads((directory / "result.json").read_text())["acl"]["status"] == "completed"
    assert [entry.name for entry in (tmp_path / "jobs").iterdir()] == [JOB]


def test_another_runs_job_is_refused_unless_it_is_forced(run: Path, tmp_path: Path) -> None:
    other = say.write(tmp_path / "other", *say.opening("b"), seed="other")
    directory = place(other, tmp_path).directory
    with pytest.raises(ExportRefused, match="another run's"):
        place(run, tmp_path)
    place(run, tmp_path, force=True)
    assert (directory / "a" / "result.json").exists()


def test_the_same_run_with_other_options_is_another_job(run: Path, tmp_path: Path) -> None:
    place(run, tmp_path)
    with pytest.raises(ExportRefused, match="other options"):
        place(run, tmp_path, options=JobOptions(trajectory="delta"))
    named = place(run, tmp_path, options=JobOptions("second", "delta"))
    assert named.directory.name == "second"
    assert check(run, named.directory) == []


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("what", ["file", "link", "pictures", "foreign manifest"])
def test_nothing_takes_the_place_of_what_is_no_job(
    run: Path, tmp_path: Path, what: str, force: bool
) -> None:
    jobs = tmp_path / "artifacts" / "jobs"
    jobs.mkdir(parents=True)
    if what == "file":
        (jobs / JOB).write_text("mine")
    elif what == "link":
        (tmp_path / "elsewhere").mkdir()
        (jobs / JOB).symlink_to(tmp_path / "elsewhere")
    else:
        (jobs / JOB).mkdir()
        name = "holiday.jpg" if what == "pictures" else "MANIFEST.json"
        (jobs / JOB / name).write_text("mine")
    with pytest.raises(ExportRefused, match="not a job"):
        place(run, tmp_path / "artifacts", force=force)
    assert [entry.name for entry in jobs.iterdir()] == [JOB]
    if what == "link":
        assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_job_of_harbors_own_is_refused_unless_it_is_forced(run: Path, tmp_path: Path) -> None:
    directory = tmp_path / "jobs" / JOB
    directory.mkdir(parents=True)
    (directory / "result.json").write_text('{"id": "x", "stats": {}}')
    with pytest.raises(ExportRefused, match="another run's"):
        place(run, tmp_path)
    assert place(run, tmp_path, force=True).is_new


def test_an_empty_directory_makes_way(run: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs" / JOB).mkdir(parents=True)
    assert place(run, tmp_path).is_new


def test_further_files_are_put_in_with_the_same_rename_and_not_listed(
    run: Path, tmp_path: Path
) -> None:
    more = [OutFile("analysis/report.json", b"{}\n")]
    directory = place(run, tmp_path, more=more).directory
    assert (directory / "analysis" / "report.json").read_bytes() == b"{}\n"
    manifest = json.loads((directory / "MANIFEST.json").read_text())
    assert not any("analysis" in file["path"] for file in manifest["files"])


def test_an_export_that_fails_leaves_what_stood_there_and_nothing_else(
    run: Path, tmp_path: Path
) -> None:
    directory = place(run, tmp_path, size=6).directory
    before = tree(directory)

    def failing() -> Any:
        yield OutFile("analysis/report.json", b"{}")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        place(run, tmp_path, force=True, more=failing())
    assert tree(directory) == before
    assert [entry.name for entry in (tmp_path / "jobs").iterdir()] == [JOB]


def test_what_a_killed_export_left_under_this_number_is_cleared(run: Path, tmp_path: Path) -> None:
    stale = tmp_path / "jobs" / f".tmp.{JOB}.{os.getpid()}"
    stale.mkdir(parents=True)
    (stale / "half").write_text("x")
    place(run, tmp_path)
    assert [entry.name for entry in (tmp_path / "jobs").iterdir()] == [JOB]


def test_what_killed_exports_left_of_this_job_is_cleared_and_of_living_ones_and_others_not(
    run: Path, tmp_path: Path
) -> None:
    names = [f".tmp.{JOB}.1", f".tmp.{JOB}.2.old", f".tmp.{JOB}.3", ".tmp.other.1", f".tmp.{JOB}.x"]
    for name in names:
        (tmp_path / "jobs" / name / "trial").mkdir(parents=True)
    with Folder.open(tmp_path / "jobs" / names[2]) as alive:
        assert alive.try_lock()
        place(run, tmp_path)
    assert {path.name for path in (tmp_path / "jobs").iterdir()} == {JOB, *names[2:]}


def test_while_it_is_built_the_staging_directory_is_locked(run: Path, tmp_path: Path) -> None:
    stage = tmp_path / "jobs" / f".tmp.{JOB}.{os.getpid()}"
    seen: list[bool] = []

    def looking() -> Any:
        with Folder.open(stage) as other:
            seen.append(other.try_lock())
        yield from ()

    place(run, tmp_path, more=looking())
    assert seen == [False]


def test_verify_finds_every_file_that_is_not_what_the_ledger_says(
    run: Path, tmp_path: Path
) -> None:
    directory = place(run, tmp_path, options=JobOptions(trajectory="delta")).directory
    assert check(run, directory) == []
    (directory / "analysis").mkdir()
    (directory / "analysis" / "notes.txt").write_text("has a manifest of its own")
    (directory / "a" / "result.json").write_text("{}")
    (directory / "extra.txt").write_text("x")
    (directory / "a" / "verifier" / "reward.txt").unlink()
    told = sorted((finding.code, finding.message.split()[0]) for finding in check(run, directory))
    assert [one for one in told if one[0] != "tree_analysis"] == [
        ("tree_differs", "a/result.json"),
        ("tree_extra", "extra.txt"),
        ("tree_missing", "a/verifier/reward.txt"),
    ]


def test_the_job_of_a_prefix_is_checked_against_that_prefix(run: Path, tmp_path: Path) -> None:
    directory = place(run, tmp_path, size=6).directory
    assert [finding.code for finding in check(run, directory)] == ["tree_older"]


def test_a_run_has_its_second_name_where_the_usual_one_is_another_runs(
    run: Path, tmp_path: Path
) -> None:
    with say.opened(run) as (state, _):
        assert settled(tmp_path, state) == JobOptions()
        other = say.write(tmp_path / "other", *say.opening("b"), seed="other")
        place(other, tmp_path)
        second = settled(tmp_path, state)
        assert second.name == f"bench-agent-model-1-{state.ledger_id[:8]}-20250615150640"
        assert settled(tmp_path, state, JobOptions("given")) == JobOptions("given")
    place(run, tmp_path, options=second)
    with say.opened(run) as (state, _):
        assert settled(tmp_path, state) == second


def test_a_job_that_cannot_be_written_is_refused_in_one_sentence(run: Path, tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    with pytest.raises(ExportRefused, match="cannot be made"):
        place(run, tmp_path / "artifacts")


def test_erased_bodies_are_named_and_all_else_is_told(tmp_path: Path) -> None:
    from tests.golden.erasing import Erased

    events = [*say.opening("a"), *say.whole("a", say.attempt("a", 1, *say.call("a", 1, 0)))]
    run = say.write(tmp_path / "run", *events)
    with say.opened(run) as (whole, view):
        attempt = whole.tasks["a"].attempts[1]
        assert attempt.evaluation is not None
        gone = Erased(view, attempt.evaluation, attempt.calls[0])
        state = fold(gone.events())
        placed = write_job(tmp_path, state, gone)
    found = json.loads((placed.directory / "a" / "result.json").read_text())
    erased = [gap["type"] for gap in found["acl"]["erased"]]
    assert erased == ["call.started", "evaluation.finished"]
    assert found["verifier_result"] is None
    (line,) = (placed.directory / "a/agent/litellm-trajectory.jsonl").read_text().splitlines()
    told = json.loads(line)
    assert (told["request_body"], told["response_body"]["id"]) == (None, "chatcmpl-1")


def test_a_run_that_was_reused_is_told_with_its_calls_and_its_source(tmp_path: Path) -> None:
    from tests.golden.runs import reused

    reused(tmp_path / "golden")
    files = say.exported(tmp_path / "golden")
    found = say.document(files, "math-3/result.json")["acl"]["reused_from"]
    assert (found["run_id"], list(found)) == ("source-1", ["run_id", "ledger_id", "root"])
    assert len(say.lines(files, "math-3")) == 3
    assert say.document(files, "t2/result.json")["acl"]["reused_from"] is None


def test_a_task_taken_over_with_more_attempts_than_are_planned_keeps_them(tmp_path: Path) -> None:
    claim = ev.Claim(run_id="earlier", ledger_id="ab" * 16, size=9, root="cd" * 32)
    start, *rest = say.whole("a", say.attempt("a", 1, correct=False), say.attempt("a", 2))
    assert isinstance(start, ev.TaskStarted)
    events = [*say.opening("a"), ev.TaskStarted(task="a", claim=claim), *rest, *say.ending()]
    files = say.exported(say.write(tmp_path, *events))
    assert say.document(files)["n_total_trials"] == 2
    assert say.document(files, "a__2/result.json")["acl"]["reused_from"]["run_id"] == "earlier"


def test_the_layout_itself_tells_paths_from_the_artifacts_directory_on(
    run: Path, tmp_path: Path
) -> None:
    from exporters import find_exporter

    with say.opened(run) as (state, view):
        paths = {file.path for file in find_exporter("jobs")(state, view)}
    assert paths == {f"jobs/{JOB}/{path}" for path in say.exported(run)}


@pytest.mark.parametrize("told", [{"trajectory": "half"}, {"colour": "red"}])
def test_options_that_there_are_not_are_a_fault_of_the_manifest(told: dict[str, str]) -> None:
    with pytest.raises(ExportRefused):
        JobOptions.of(told)


def test_a_manifest_tells_the_options_that_are_not_the_usual_ones() -> None:
    for options in (JobOptions(), JobOptions("x"), JobOptions("x", "delta")):
        assert JobOptions.of(options.told()) == options
    assert JobOptions().told() == {}


def test_where_the_rename_fails_what_stood_there_is_back(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = place(run, tmp_path, size=6).directory
    before = tree(directory)
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name.startswith(".tmp.") and not path.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(ExportRefused, match="No space left on device"):
        place(run, tmp_path, force=True)
    assert tree(directory) == before
    assert [entry.name for entry in (tmp_path / "jobs").iterdir()] == [JOB]


def test_of_two_exports_at_once_one_is_refused_and_the_other_stands(
    run: Path, tmp_path: Path
) -> None:
    """Another program puts another state there while this one builds."""

    def meanwhile() -> Any:
        copy = shutil.copytree(run, tmp_path / "copy")
        with say.opened(copy, 6) as (state, view):
            other = write_job(tmp_path / "other", state, view)
        other.directory.rename(tmp_path / "jobs" / JOB)
        yield from ()

    with pytest.raises(ExportRefused, match="another state of this run"):
        place(run, tmp_path, more=meanwhile())
    told = json.loads((tmp_path / "jobs" / JOB / "result.json").read_text())
    assert told["acl"]["size"] == 6


def test_the_same_job_that_somebody_put_there_meanwhile_is_left_as_it_is(
    run: Path, tmp_path: Path
) -> None:
    """Two programs finish one run at once; the first of them goes on to its analysis."""

    def meanwhile() -> Any:
        other = place(run, tmp_path / "other")
        (other.directory / "analysis").mkdir()
        other.directory.rename(tmp_path / "jobs" / JOB)
        yield from ()

    placed = place(run, tmp_path, more=meanwhile(), force=True)
    assert not placed.is_new
    assert (placed.directory / "analysis").is_dir()
    assert [entry.name for entry in placed.directory.parent.iterdir()] == [JOB]
