"""Jobs that we exported come back, and say the same when they are exported again."""

import json
from pathlib import Path

import pytest

from exporters.jobs.job import JobOptions
from ledger import LedgerView
from runtime.importers.registry import GROUP
from runtime.importers.source import Source
from runtime.plugins import installed
from runtime.replay import replay
from tests import job_runs
from tests.harbor_jobs import do_import, reasons, write
from tests.importer_runs import events, state_of

# What tells of the ledger, the release or the time of recording.
NOT_THE_SAME = frozenset({"acl", "updated_at", "started_at", "finished_at", "timestamp"})
ALSO_NOT = frozenset({"occurred_at", "task_checksum", "request_time"})


def written(files: dict[str, bytes], directory: Path) -> Path:
    for name, data in files.items():
        write(directory / name, data)
    return directory


@pytest.fixture(scope="module", params=["full", "delta"])
def both(request, tmp_path_factory):
    """A run, its job, and the import of that; with whole conversations or with what is new."""
    base = tmp_path_factory.mktemp("ours")
    job_runs.agents(base / "run")
    files = job_runs.exported(base / "run", JobOptions(trajectory=request.param))
    report = do_import(written(files, base / "job"), base / "results")
    return base / "run", files, report


def plain(value):
    if isinstance(value, dict):
        aside = NOT_THE_SAME | ALSO_NOT
        kept = {name: plain(item) for name, item in value.items() if name not in aside}
        kept.pop("version", None)
        return kept
    return [plain(item) for item in value] if isinstance(value, list) else value


def documents(files, path):
    lines = files[path].decode().splitlines() if path.endswith(".jsonl") else [files[path]]
    return [plain(json.loads(line)) for line in lines]


def test_nothing_is_lost_or_odd(both):
    _, files, report = both
    assert report.format == "jobs"
    assert (report.run_id, report.damaged, report.unplaced) == ("run-1", False, ())
    assert report.records_in == report.records_out == len(files)


def test_no_other_importer_that_is_installed_takes_it(both, tmp_path):
    _, files, _ = both
    source = Source.open(written(files, tmp_path / "job"))
    takers = [point.name for point in installed(GROUP) if point.load()().recognises(source)]
    assert takers == ["jobs"]


def test_state_and_spending_are_those_of_the_run(both):
    run, _, report = both
    with job_runs.opened(run) as (before, _):
        after = state_of(report)
        assert after.counts() == before.counts()
        assert after.spend() == before.spend()
        assert (after.k, after.status) == (before.k, before.status)
        assert after.benchmark_version == before.benchmark_version
        for (_, one), (_, other) in zip(before.attempts(), after.attempts(), strict=True):
            assert (one.status, one.correct, one.score) == (
                other.status,
                other.correct,
                other.score,
            )
            assert (one.metrics, len(one.retries)) == (other.metrics, len(other.retries))


def test_the_request_is_the_same(both):
    run, _, report = both
    with job_runs.opened(run) as (before, _):
        assert state_of(report).request == before.request


def test_exported_again_the_files_say_the_same(both):
    _, files, report = both
    again = job_runs.exported(report.path)
    assert again.keys() == files.keys()
    for path in files:
        if path.endswith(".json") and path != "MANIFEST.json":
            assert documents(again, path) == documents(files, path), path
        elif path.endswith(".txt"):
            assert again[path] == files[path]


def test_calls_come_back_whole(both):
    run, _, report = both
    full = job_runs.exported(run)
    again = job_runs.exported(report.path)
    for path in full:
        if path.endswith(".jsonl"):
            assert documents(again, path) == documents(full, path), path


def test_replay_agrees_with_what_the_job_recorded(both):
    _, _, report = both
    with LedgerView.open(report.path) as view:
        assert replay(view).equal is True


def test_discarded_tries_stand_before_the_calls_that_came_after(both):
    _, _, report = both
    kinds = [
        one.type
        for one in events(report)
        if (one.task, one.attempt) == ("fix", 2) and one.type != "original.recorded"
    ]
    assert kinds.index("attempt.retried") == 3
    assert kinds.index("call.lost") > kinds.index("attempt.retried")


def test_a_changed_file_of_an_export_is_damage(tmp_path):
    job_runs.agents(tmp_path / "run")
    files = job_runs.exported(tmp_path / "run")
    manifest = {
        "schema_version": "acl.manifest.v1",
        "layout": "jobs",
        "files": [],
        "acl": json.loads(files["result.json"])["acl"],
    }
    files["MANIFEST.json"] = json.dumps(manifest).encode()
    report = do_import(written(files, tmp_path / "jobs" / "job"), tmp_path / "results")
    assert report.damaged
    told = reasons(report)
    assert "MANIFEST.json does not list it" in told["result.json"]
    assert len(told) == len(files) - 1


def test_a_job_that_grew_with_a_run_and_lost_it_has_no_end(tmp_path):
    job_runs.agents(tmp_path / "run")
    files = job_runs.exported(tmp_path / "run")
    result = json.loads(files["result.json"])
    result |= {"finished_at": None, "acl": {**result["acl"], "status": "running"}}
    files["result.json"] = json.dumps(result).encode()
    report = do_import(written(files, tmp_path / "job"), tmp_path / "results")
    state = state_of(report)
    assert state.finished is None
    assert len(list(state.attempts())) == 4


def test_the_job_is_found_below_the_directory_of_artifacts(tmp_path):
    job_runs.agents(tmp_path / "run")
    written(job_runs.exported(tmp_path / "run"), tmp_path / "artifacts" / "jobs" / "job-1")
    write(tmp_path / "artifacts" / "index.yaml", "runs: []\n")
    report = do_import(tmp_path / "artifacts", tmp_path / "results")
    assert report.run_id == "run-1"
    assert reasons(report) == {"index.yaml": ["it stands beside the job, and is only kept"]}
