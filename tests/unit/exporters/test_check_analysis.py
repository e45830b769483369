"""The analysis of a job, alone or in its job, compared with what the ledger says."""

import json
from pathlib import Path
from typing import Any

import pytest

from exporters.check import check_tree
from exporters.job_analysis import AnalysisConfig, analyze_job
from exporters.jobs.place import write_job
from ledger import LedgerView, RunState, fold
from ledger import events as ev
from ledger.store import Ledger
from ledger.verify.finding import Finding
from tests.analysis_runs import Job, analyzed, call, options, right, wrong
from tests.golden.erasing import Erased


@pytest.fixture
def run(tmp_path: Path) -> Path:
    job = Job()
    for index, name in enumerate("abcd"):
        job.add(name, (right if index % 2 else wrong)(name, during=call(name)), category=name)
    return job.write(tmp_path / "run")


def written(run: Path, target: Path, config: AnalysisConfig | None = None) -> Path:
    for path, data in analyzed(run, config).files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(data)
    return target


def job_of(run: Path, artifacts: Path) -> Path:
    """The job with its analysis, as it is left after a run."""
    with LedgerView.open(run) as view:
        state = fold(view.events())
        placed = write_job(artifacts, state, view)
        return written(run, placed.directory / "analysis").parent


def check(run: Path, target: Path, *erased: int) -> list[Finding]:
    with LedgerView.open(run) as ledger:
        view = Erased(ledger, *erased)

        def state_at(size: int) -> RunState:
            return fold(view.events(until=size))

        identity = {"ledger_id": ledger.ledger_id.hex(), "size": ledger.size}
        return list(check_tree(state_at, view, target, **identity))


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def edit(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(document | changes), "utf-8")


@pytest.mark.parametrize("config", [None, options(analysis={"unit": "attempt"})])
def test_an_analysis_as_it_was_written_has_no_findings(
    run: Path, tmp_path: Path, config: AnalysisConfig | None
) -> None:
    assert check(run, written(run, tmp_path / "out", config)) == []


def test_a_job_with_its_analysis_has_no_findings(run: Path, tmp_path: Path) -> None:
    assert check(run, job_of(run, tmp_path / "artifacts")) == []


def test_a_job_without_an_analysis_is_whole(run: Path, tmp_path: Path) -> None:
    with LedgerView.open(run) as view:
        placed = write_job(tmp_path, fold(view.events()), view)
    assert check(run, placed.directory) == []


@pytest.mark.parametrize(
    "path",
    [
        "instances.jsonl",
        "report_failed.json",
        "report_task_analysis.json",
        "traj_analysis/score_comparison.json",
        "instance_analysis/correlations.json",
        "instance_analysis/contingency_category.csv",
        "MANIFEST.json",
    ],
)
def test_one_changed_byte_in_any_file_is_named(run: Path, tmp_path: Path, path: str) -> None:
    job = job_of(run, tmp_path / "artifacts")
    file = job / "analysis" / path
    data = file.read_bytes()
    file.write_bytes(data[:-1] + b" ")
    found = check(run, job)
    assert [one.severity for one in found] == ["broken"]
    assert f"analysis/{path} is not what the ledger says" in found[0].message


def test_a_changed_option_is_a_difference(run: Path, tmp_path: Path) -> None:
    out = written(run, tmp_path / "out")
    config = out / "analysis_config.yaml"
    config.write_text(config.read_text("utf-8").replace("alpha: 0.05", "alpha: 0.5"), "utf-8")
    found = check(run, out)
    assert "tree_differs" in codes(found)
    assert any("summary.json" in one.message for one in found)


def test_missing_and_extra_files_are_named(run: Path, tmp_path: Path) -> None:
    job = job_of(run, tmp_path / "artifacts")
    (job / "analysis" / "report_failed.json").unlink()
    (job / "analysis" / "notes.txt").write_text("mine")
    assert codes(check(run, job)) == ["tree_missing", "tree_extra"]


@pytest.mark.parametrize("name", ["analysis_config.yaml", "MANIFEST.json"])
def test_an_analysis_that_cannot_be_made_again_is_not_whole(
    run: Path, tmp_path: Path, name: str
) -> None:
    job = job_of(run, tmp_path / "artifacts")
    (job / "analysis" / name).unlink()
    assert codes(check(run, job)) == ["tree_analysis"]


def test_the_analysis_of_another_ledger_is_told(run: Path, tmp_path: Path) -> None:
    other = Job(run_id="other").add("a", right("a")).write(tmp_path / "other")
    assert codes(check(run, written(other, tmp_path / "out"))) == ["tree_ledger"]


def test_another_root_is_told(run: Path, tmp_path: Path) -> None:
    out = written(run, tmp_path / "out")
    source = json.loads((out / "MANIFEST.json").read_text("utf-8"))["source"]
    edit(out / "MANIFEST.json", source=source | {"root": "00" * 32})
    assert codes(check(run, out)) == ["tree_root"]


def test_an_analysis_of_fewer_events_is_made_of_those(run: Path, tmp_path: Path) -> None:
    job = job_of(run, tmp_path / "artifacts")
    with Ledger.open(run) as ledger:
        ledger.append(ev.AnnotationAdded(text="later", author="somebody"))
    assert codes(check(run, job)) == ["tree_older"]
    with LedgerView.open(run) as view:
        grown = {f.path: f.data for f in analyze_job(fold(view.events()), view)}
    told = json.loads(grown["report_failed.json"])["acl"]["size"]
    assert (
        told == json.loads((job / "analysis" / "report_failed.json").read_text())["acl"]["size"] + 1
    )


def test_what_needs_something_erased_is_told_as_not_checkable(run: Path, tmp_path: Path) -> None:
    out = written(run, tmp_path / "out")
    with LedgerView.open(run) as view:
        result = next(e.seq for e in view.events() if e.type == "result.recorded")
    found = check(run, out, result)
    assert set(codes(found)) == {"tree_erased"}
    assert {one.severity for one in found} == {"unproven"}
    assert any("instances.jsonl is not checkable" in one.message for one in found)
