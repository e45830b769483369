import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporters.archives import open_runs, register
from ledger import events as ev
from ledger.errors import ExportRefused
from ledger.lock import WriterLock
from ledger.store import Ledger
from tests.archive_runs import write
from tests.cli.conftest import Acl, write_run

ARITH = ("run", "--benchmark", "acl-arith", "--harness", "calculator", "--limit", "3")


def index(artifacts: Path) -> list[dict[str, Any]]:
    return yaml.safe_load((artifacts / "index.yaml").read_text())["runs"]


def tree(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def test_a_run_leaves_a_job_its_analysis_and_an_archive(acl: Acl, artifacts: Path) -> None:
    said = acl(*ARITH, "--run-id", "one", "--artifacts", "artifacts", "--json")
    assert (said.status, said.err) == (0, "")
    made = said.document()["artifacts"]
    assert made["archive"] == "artifacts/archives/run_001"
    assert made["analysis"] is True
    job = Path(made["job"])
    assert job.parent == Path("artifacts/jobs")
    assert json.loads((job / "result.json").read_text())["acl"]["status"] == "completed"
    assert {path.name for path in (job / "analysis").iterdir()} >= {
        *("report_failed.json", "report_resolved.json", "report_task_analysis.json"),
        *("traj_analysis", "instance_analysis", "instances.jsonl", "analysis_config.yaml"),
    }
    path = said.document()["path"]
    assert acl("verify", path, "--tree", job).status == 0
    assert acl("verify", path, "--tree", job / "analysis").status == 0
    (entry,) = index(artifacts)
    assert (entry["id"], entry["status"]) == ("run_001", "completed")
    assert entry["job_dir"] == str(job)


def test_the_archive_holds_what_ran(acl: Acl, artifacts: Path) -> None:
    job = Path(acl(*ARITH, "--artifacts", "artifacts", "--json").document()["artifacts"]["job"])
    kept = tree(artifacts / "archives" / "run_001")
    assert kept["config.yaml"] == (job / "config.yaml").read_bytes()
    root = Path(__file__).resolve().parents[2]
    for path in ("runtime/benchmarks/arith/benchmark.py", "runtime/benchmarks/arith/problems.py"):
        assert kept[f"scripts/benchmark/{path}"] == (root / path).read_bytes()
    assert "scripts/harness/runtime/harnesses/calculator.py" in kept
    told = yaml.safe_load(kept["metadata.yaml"])
    assert told["exit_code"] == 0
    assert all(len(sha) == 40 for sha in told["repos"].values())
    assert set(told["repos"]) == set(told["acl"]["repos_dirty"])


def test_nothing_in_it_names_the_machine(acl: Acl, artifacts: Path, tmp_path: Path) -> None:
    assert acl(*ARITH, "--artifacts", "artifacts").status == 0
    for path, data in tree(artifacts).items():
        if not path.endswith(".py"):
            assert str(tmp_path).encode() not in data, path


def test_people_are_told_where_it_is(acl: Acl) -> None:
    said = acl(*ARITH, "--artifacts", "artifacts")
    assert "archive: artifacts/archives/run_001" in said.out.splitlines()
    assert any(line.startswith("job: artifacts/jobs/acl-arith-") for line in said.out.splitlines())


def test_exporting_a_run_again_adds_nothing(acl: Acl, artifacts: Path) -> None:
    path = acl(*ARITH, "--artifacts", "artifacts", "--json").document()["path"]
    before = tree(artifacts)
    for _ in range(2):
        said = acl("export", "-f", "jobs", path, "artifacts", "--json")
        assert (said.status, said.err) == (0, "")
        assert said.document()["archive"] == "artifacts/archives/run_001"
    assert tree(artifacts) == before


def test_an_export_gives_what_the_run_gave(acl: Acl, artifacts: Path, tmp_path: Path) -> None:
    path = acl(*ARITH, "--artifacts", "artifacts", "--json").document()["path"]
    assert acl("export", "-f", "jobs", path, "other").status == 0
    mine, other = tree(artifacts), tree(tmp_path / "other")
    assert mine == other


def test_each_request_of_a_suite_has_a_job_and_an_archive(
    acl: Acl, artifacts: Path, tmp_path: Path
) -> None:
    one = {"benchmark": {"id": "acl-arith", "params": {"limit": 2}}, "harness": {"id": "noop"}}
    requests = [{"name": name, **one} for name in ("a", "b", "c")]
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump({"requests": requests}))
    document = acl("run", "-f", "suite.yaml", "--artifacts", "artifacts", "--json").document()
    made = [request["artifacts"] for request in document["requests"]]
    assert len({one["job"] for one in made}) == 3
    assert [one["archive"][-7:] for one in made] == ["run_001", "run_002", "run_003"]
    assert len(index(artifacts)) == 3
    assert acl("run", "-f", "suite.yaml", "--artifacts", "a", "--job-name", "x").status == 2


def test_a_run_that_failed_is_archived_as_failed(acl: Acl, artifacts: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "run", status="failed", exit_code=1)
    assert acl("export", "-f", "jobs", run, "artifacts").status == 0
    assert index(artifacts)[0]["status"] == "failed"


def test_a_run_that_goes_on_has_a_job_and_no_archive(
    acl: Acl, artifacts: Path, tmp_path: Path
) -> None:
    run = write(tmp_path / "run", status=None)
    held = WriterLock(run / "ledger.sqlite")
    said = acl("export", "-f", "jobs", run, "artifacts", "--json")
    held.release()
    assert said.document()["archive"] is None
    assert not (artifacts / "index.yaml").exists()
    said = acl("export", "-f", "jobs", run, "artifacts", "--json")
    assert said.document()["archive"] == "artifacts/archives/run_001"
    assert index(artifacts)[0]["status"] == "interrupted"


def test_an_earlier_state_is_not_archived(acl: Acl, artifacts: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "run")
    said = acl("export", "-f", "jobs", run, "artifacts", "--at", "5", "--json")
    assert (said.status, said.document()["archive"]) == (0, None)


def test_another_state_of_an_archived_run_is_refused_in_one_line(
    acl: Acl, artifacts: Path, tmp_path: Path
) -> None:
    run = write(tmp_path / "run", seal=False)
    assert acl("export", "-f", "jobs", run, "artifacts").status == 0
    before = tree(artifacts)
    with Ledger.open(run) as ledger:
        ledger.append(ev.AnnotationAdded(text="later", author="a"))
    said = acl("export", "-f", "jobs", run, "artifacts")
    assert said.status == 5
    assert len(said.err.splitlines()) == 1
    assert tree(artifacts) == before
    said = acl("export", "-f", "jobs", run, "artifacts", "--force")
    assert said.status == 5
    assert "archived as run_001" in said.err
    assert tree(artifacts / "archives") == {
        path.removeprefix("archives/"): data
        for path, data in before.items()
        if path.startswith("archives/")
    }


def test_an_imported_run_is_archived_without_sources(acl: Acl, artifacts: Path) -> None:
    source = acl(*ARITH, "--run-id", "one", "--json").document()["path"]
    assert acl("export", source, "exported").status == 0
    path = acl("import", "exported", "--results-dir", "imported", "--json").document()["path"]
    assert acl("export", "-f", "jobs", path, "artifacts").status == 0
    kept = tree(artifacts / "archives" / "run_001")
    assert set(kept) == {"metadata.yaml", "config.yaml", "scripts/command.sh"}
    told = yaml.safe_load(kept["metadata.yaml"])
    assert (told["status"], told["notes"]) == ("completed", "imported from details files")


# -- what fails beside the run ----------------------------------------------------------------


def test_an_analysis_that_fails_is_told_and_logged_and_fails_nothing(
    acl: Acl, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("no such\nfeature")

    monkeypatch.setattr("acl.artifacts.analyze_job", breaks)
    said = acl(*ARITH, "--artifacts", "artifacts", "--json")
    document = said.document()
    assert (said.status, document["exit"]) == (0, 0)
    (line,) = said.err.splitlines()
    assert line.endswith("has no analysis: RuntimeError: no such feature")
    assert "RuntimeError: no such feature" in Path(document["path"], "run.log").read_text()
    assert document["artifacts"]["analysis"] is False
    assert not Path(document["artifacts"]["job"], "analysis").exists()
    assert len(index(artifacts)) == 1
    monkeypatch.undo()
    # The next export makes up for it.
    again = acl("export", "-f", "jobs", artifacts.parent / document["path"], artifacts, "--json")
    assert again.document()["analysis"] is True


def test_an_archive_that_fails_leaves_the_exit_status_and_is_made_up_for(
    acl: Acl, artifacts: Path
) -> None:
    artifacts.mkdir()
    (artifacts / "index.yaml").write_text("runs: [\n")
    said = acl(*ARITH, "--run-id", "one", "--artifacts", "artifacts", "--json")
    assert (said.status, said.document()["artifacts"]["archive"]) == (0, None)
    assert "run one is not archived" in said.err
    assert "index.yaml cannot be read" in said.err
    assert "run one is not archived" in Path(said.document()["path"], "run.log").read_text()
    (artifacts / "index.yaml").unlink()
    said = acl(*ARITH, "--run-id", "two", "--artifacts", "artifacts")
    assert said.status == 0
    assert "run one ended before this: archived as run_001" in said.err
    assert [entry["acl"]["run_id"] for entry in index(artifacts)] == ["one", "two"]
    assert open_runs(artifacts) == []


def test_a_failing_run_keeps_its_own_exit_status(acl: Acl, artifacts: Path) -> None:
    said = acl(*ARITH, "--artifacts", "artifacts", "--fail-under", "correct.accuracy=1.5")
    assert said.status == 1
    assert index(artifacts)[0]["status"] == "completed"


def test_a_directory_that_cannot_be_made_refuses_the_run(acl: Acl, tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    for directory in ("artifacts", "artifacts/below"):
        said = acl(*ARITH, "--artifacts", directory)
        assert said.status == 5
        assert not (tmp_path / "results").exists()


def test_a_run_that_is_refused_leaves_no_directory(acl: Acl, tmp_path: Path) -> None:
    assert acl(*ARITH, "--benchmark", "no-such", "--artifacts", "artifacts").status == 2
    assert list(tmp_path.iterdir()) == []


def test_a_job_of_a_name_that_is_taken_refuses_the_run(acl: Acl, artifacts: Path) -> None:
    (artifacts / "jobs" / "mine").mkdir(parents=True)
    said = acl(*ARITH, "--artifacts", "artifacts", "--job-name", "mine")
    assert said.status == 5
    assert not Path("results").exists()
    said = acl(*ARITH, "--artifacts", "artifacts", "--job-name", "other", "--json")
    assert said.document()["artifacts"]["job"] == "artifacts/jobs/other"


def test_a_job_that_cannot_be_written_is_told_and_the_run_archived(
    acl: Acl, artifacts: Path
) -> None:
    artifacts.mkdir()
    (artifacts / "jobs").write_text("in the way")
    said = acl(*ARITH, "--artifacts", "artifacts", "--json")
    assert said.status == 5
    assert said.document()["status"] == "completed"
    assert "not all artifacts of the run were written" in said.err
    assert (artifacts / "jobs").read_text() == "in the way"
    assert len(index(artifacts)) == 1


def test_a_job_that_could_not_be_written_is_made_up_for(acl: Acl, artifacts: Path) -> None:
    artifacts.mkdir()
    (artifacts / "jobs").write_text("in the way")
    assert acl(*ARITH, "--run-id", "one", "--artifacts", "artifacts").status == 5
    said = acl(*ARITH, "--run-id", "two", "--artifacts", "artifacts")
    assert "the artifacts of run one are not finished" in said.err
    (artifacts / "jobs").unlink()
    assert acl(*ARITH, "--run-id", "three", "--artifacts", "artifacts").status == 0
    jobs = [json.loads(path.read_text()) for path in artifacts.glob("jobs/*/result.json")]
    assert {job["acl"]["run_id"] for job in jobs} == {"one", "two", "three"}
    assert {job["acl"]["status"] for job in jobs} == {"completed"}
    assert [entry["acl"]["run_id"] for entry in index(artifacts)] == ["one", "two", "three"]
    assert open_runs(artifacts) == []


# -- runs that were killed --------------------------------------------------------------------


def test_what_was_killed_is_archived_by_the_next_command(
    acl: Acl, artifacts: Path, tmp_path: Path
) -> None:
    killed = write_run(tmp_path / "results" / "killed", seal=False)
    register(artifacts, killed / "ledger.sqlite", {"name": "its-job"})
    other = write(tmp_path / "other")
    said = acl("export", "-f", "jobs", other, "artifacts")
    assert said.status == 0
    assert "run r1 ended before this: archived as run_002" in said.err
    entry = index(artifacts)[1]
    assert (entry["status"], entry["job_dir"]) == ("interrupted", "artifacts/jobs/its-job")
    told = yaml.safe_load((artifacts / "archives" / "run_002" / "metadata.yaml").read_text())
    assert told["exit_code"] == 137
    result = json.loads((artifacts / "jobs" / "its-job" / "result.json").read_text())
    assert result["acl"]["status"] == "interrupted"
    assert open_runs(artifacts) == []
    assert "ended before" not in acl("export", "-f", "jobs", other, "artifacts").err


def test_a_run_that_still_writes_is_left_alone(acl: Acl, artifacts: Path, tmp_path: Path) -> None:
    run = write(tmp_path / "running", status=None)
    register(artifacts, run / "ledger.sqlite")
    held = WriterLock(run / "ledger.sqlite")
    said = acl("export", "-f", "jobs", write(tmp_path / "other"), "artifacts")
    held.release()
    assert (said.status, said.err) == (0, "")
    assert len(index(artifacts)) == len(open_runs(artifacts)) == 1


def test_a_ledger_that_is_gone_or_damaged_is_told_and_fails_nothing(
    acl: Acl, artifacts: Path, tmp_path: Path
) -> None:
    register(artifacts, tmp_path / "gone" / "ledger.sqlite")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "ledger.sqlite").write_text("no ledger at all")
    register(artifacts, tmp_path / "bad" / "ledger.sqlite")
    said = acl("export", "-f", "jobs", write(tmp_path / "other"), "artifacts")
    assert said.status == 0
    assert len(said.err.splitlines()) == 2
    assert "is not there" in said.err
    assert "the artifacts of run bad are not finished" in said.err
    assert len(open_runs(artifacts)) == 2


def test_a_run_that_was_killed_before_its_first_event_is_forgotten(
    acl: Acl, artifacts: Path, tmp_path: Path
) -> None:
    (tmp_path / "begun").mkdir()
    Ledger.create(tmp_path / "begun").close()
    register(artifacts, tmp_path / "begun" / "ledger.sqlite")
    said = acl("export", "-f", "jobs", write(tmp_path / "other"), "artifacts")
    assert (said.status, said.err) == (0, "")
    assert open_runs(artifacts) == []
    assert len(index(artifacts)) == 1


def test_scripts_of_the_requirements_call_the_commands(tmp_path: Path) -> None:
    """They find their project by where they stand, and pass on what they are given."""
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "scripts").mkdir()
    for name in ("clean.sh", "analyze_job.sh"):
        script = root / "scripts" / name
        assert len(script.read_text().splitlines()) < 8
        (tmp_path / "scripts" / name).write_bytes(script.read_bytes())
    spy = tmp_path / ".venv" / "bin" / "acl"
    spy.parent.mkdir(parents=True)
    spy.write_text('#!/bin/sh\npwd\nprintf "%s\\n" "$@"\n')
    spy.chmod(0o755)
    for name, command in (("clean.sh", "clean"), ("analyze_job.sh", "analyze")):
        said = subprocess.run(
            ["/bin/sh", tmp_path / "scripts" / name, "-n", "a b"],
            cwd=tmp_path / "scripts",
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.splitlines()
        assert said[1:] == [command, "-n", "a b"]
        if name == "clean.sh":
            assert said[0] == str(tmp_path)


def test_a_registration_that_fails_is_told_like_any_other_file(
    acl: Acl, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ExportRefused("no room")

    monkeypatch.setattr("acl.artifacts.register", refuse)
    said = acl(*ARITH, "--artifacts", "artifacts", "--json")
    assert said.document()["status"] == "completed"
    assert "no room" in said.err
    assert len(index(artifacts)) == 1
