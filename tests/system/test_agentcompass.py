"""AgentCompass itself: it reads our exports, and runs with our hook.

It needs Python 3.12: `make test-agentcompass PYTHON312=python3.12` builds an environment for it, and
says by `ACL_AGENTCOMPASS_PYTHON` where its Python is.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.fold import fold
from ledger.state import RunState
from ledger.verify import verify
from ledger.view import LedgerView
from runtime.agentcompass_hook import RECIPE_DIR
from tests.agentcompass_runs import documents, exported, findings, several
from tests.golden.runs import RUNS
from tests.importer_runs import do_import, sample
from tests.stub_endpoint import StubEndpoint

_GIVEN = os.environ.get("ACL_AGENTCOMPASS_PYTHON")
# Runs begin elsewhere; a link is left as it is, for it says which environment it is.
PYTHON = None if _GIVEN is None else str(Path(_GIVEN).absolute())
ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ("k3-avg", "k3-fatal", "k3-reuse", "k3-sigkill")
OWN = {**RUNS, "several": several}

pytestmark = [
    pytest.mark.agentcompass,
    pytest.mark.skipif(PYTHON is None, reason="run `make test-agentcompass PYTHON312=…`"),
]


# -- reading ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Exports of every sample that was imported, and of runs of our own."""
    scratch = tmp_path_factory.mktemp("exports")
    found = {}
    for name in SAMPLES:
        report = do_import(sample(scratch / "sources", name), scratch / "results")
        found[name] = exported(report.path, scratch / "out" / name)
    for name, build in OWN.items():
        build(scratch / "own" / name)
        found[name] = exported(scratch / "own" / name, scratch / "out" / name)
    return found


@pytest.fixture(scope="module")
def read(trees: dict[str, Path]) -> dict[str, Any]:
    """What AgentCompass's store, summary command and viewer make of them."""
    told = read_by_agentcompass(list(trees.values()))
    return {name: told[str(tree)] for name, tree in trees.items()}


def read_by_agentcompass(directories: list[Path]) -> dict[str, Any]:
    assert PYTHON is not None
    done = subprocess.run(
        [PYTHON, ROOT / "tests" / "agentcompass_reader.py", *directories],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "ACL_SIGNING_KEY"}
    return {**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", **more}


@pytest.mark.parametrize("name", [*SAMPLES, *OWN])
def test_the_store_reads_every_task_that_is_over(name, read, trees):
    over = {
        one["task_id"]
        for path, one in documents(trees[name]).items()
        if path.endswith("/task.json") and not path.startswith("details/running/")
    }
    assert set(read[name]["results"]) == over


@pytest.mark.parametrize("name", [*SAMPLES, *OWN])
def test_the_viewer_shows_every_task_that_began(name, read, trees):
    began = {
        one["task_id"] for path, one in documents(trees[name]).items() if path.endswith("task.json")
    }
    assert set(read[name]["details"]) == began
    assert read[name]["run"]["isRun"]


@pytest.mark.parametrize("name", [*SAMPLES, *OWN])
def test_the_summary_command_computes_the_report_that_stands_there(name, read):
    told = read[name]
    if told["metrics"] is not None and told["summary"] is not None:
        for one in (told["metrics"], told["summary"]):
            one.pop("extra")
            for series in one["series"]:
                series.pop("display")
        assert told["metrics"] == told["summary"]


def test_there_is_a_report_to_compare_of_imported_and_of_own_runs(read):
    compared = {name for name, one in read.items() if one["metrics"] and one["summary"]}
    assert {"k3-avg", "k3-fatal", "k3-reuse", "full", "stopped_early", "several"} <= compared


# -- running ----------------------------------------------------------------------------------------


def command(stub: StubEndpoint, results: Path, run_id: str, *more: str) -> list[str]:
    assert PYTHON is not None
    return [
        *(PYTHON, "-m", "agentcompass.cli.main", "run", "acl_stub", "none", "stub-model"),
        *("--model-base-url", stub.base_url, "--model-api-key", "planted-key-0123456789"),
        *("--recipe-dir", str(ROOT / "tests" / "agentcompass_demo")),
        *("--recipe-dir", str(RECIPE_DIR)),
        *("--results-dir", str(results), "--run-id", run_id, "--progress", "none"),
        *("--k", "2", "--max-retries", "1", *more),
    ]


def go(scratch: Path, run_id: str, *more: str, **variables: str) -> tuple[Path, str]:
    """One run to its end: its directory, and its log."""
    with StubEndpoint() as stub:
        subprocess.run(
            command(stub, scratch / "results", run_id, *more),
            capture_output=True,
            timeout=300,
            check=False,
            cwd=scratch,
            env=environment(**variables),
        )
    (run,) = (scratch / "results").glob(f"*/{run_id}")
    return run, (run / "run.log").read_text()


def state_of(run: Path) -> RunState:
    with LedgerView.open(run) as view:
        return fold(view.events())


def params(**values: Any) -> tuple[str, str]:
    return "--benchmark-params", json.dumps(values)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run, log = go(tmp_path_factory.mktemp("live"), "whole", *params(tasks=6))
    assert "records this run" in log
    return run


def test_a_live_ledger_is_whole_and_tells_what_the_run_did(whole):
    assert [one for one in verify(whole) if one.severity == "broken"] == []
    state = state_of(whole)
    assert state.sealed_size is not None
    assert (state.status, len(state.tasks), state.k) == ("completed", 6, 2)
    # echo-0, echo-4 and flaky-2 are right, wrong-1 and wrong-5 are not, broken-3 has no verdict.
    assert state.counts().correct == 3
    assert state.counts().error == 1
    assert state.tasks["flaky-2"].retry_count == 1
    assert all(len(task.attempts) == 2 for task in state.tasks.values())
    assert state.metrics[-1][2].metrics["correct.avg@2"] == pytest.approx(0.6)
    assert all(a.plan is not None and a.result is not None for _, a in state.attempts())


def test_ledger_and_files_of_a_live_run_agree(whole, tmp_path):
    assert findings(whole, whole) == []
    tree = exported(whole, tmp_path / "out")
    told = documents(tree)
    del told["MANIFEST.json"]
    there = documents(whole)
    assert told == {path: there[path] for path in told}
    read = read_by_agentcompass([tree])[str(tree)]
    assert len(read["results"]) == 6


def test_a_result_that_was_edited_after_the_run_is_found(tmp_path):
    run, _ = go(tmp_path, "edited", *params(tasks=2))
    (victim,) = run.glob("details/normal/wrong-1--*/attempt-1/result.json")
    victim.write_text(victim.read_text().replace('"correct": false', '"correct": true'))
    (found,) = findings(run, run)
    assert found.message == f"{victim.relative_to(run).as_posix()} is not what the ledger says"


def test_a_run_that_ends_with_a_fatal_issue_is_told_as_failed(tmp_path):
    run, _ = go(tmp_path, "fatal", *params(tasks=1, fatal=True))
    state = state_of(run)
    assert (state.status, state.tasks["lost-0"].attempts[1].status) == ("failed", "run_error")
    assert findings(run, run) == []


def test_a_killed_run_keeps_what_was_acknowledged_and_can_be_taken_over(tmp_path):
    with StubEndpoint() as stub:
        more = ("--task-concurrency", "2", *params(tasks=12, pause=1.0))
        process = subprocess.Popen(
            command(stub, tmp_path / "results", "killed", *more),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            env=environment(),
        )
        try:
            saved = seen_of(lambda: saved_tasks(tmp_path), lambda saved: len(saved) > 1)
            (run,) = tmp_path.glob("results/*/killed")
            acknowledged = seen_of(lambda: tasks_that_are_over(run), saved.issubset)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    state = state_of(run)
    assert (state.status, state.sealed_size) == ("interrupted", None)
    assert [one for one in verify(run) if one.severity == "broken"] == []
    assert acknowledged <= tasks_that_are_over(run)
    exported(run, tmp_path / "out")
    again, _ = go(tmp_path, "again", "--reuse", "killed", *params(tasks=12))
    assert state_of(again).status == "completed"
    assert findings(again, again) == []


def saved_tasks(results: Path) -> set[str]:
    """The tasks that AgentCompass has put to their place."""
    return {
        path.name.partition("--")[0] for path in results.glob("results/*/*/details/normal/*--*")
    }


def tasks_that_are_over(run: Path) -> set[str]:
    """The tasks of which the ledger says so, also while it grows."""
    if not any(run.glob("ledger.checkpoint*")):
        return set()  # it has no event yet
    return {task.id for task in state_of(run).tasks.values() if task.has_detail}


def seen_of(look: Callable[[], set[str]], enough: Callable[[set[str]], bool]) -> set[str]:
    until = time.monotonic() + 120
    while not enough(seen := look()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return seen


def test_failed_tasks_of_another_run_are_made_again_and_told(tmp_path):
    chosen = params(tasks=4, fatal=True)
    first, _ = go(tmp_path, "first", *chosen)
    again, log = go(tmp_path, "again", "--reuse", "first", *chosen)
    assert "nothing more is recorded" not in log
    assert findings(again, again) == []
    state = state_of(again)
    copy = tmp_path / "copy"
    shutil.copytree(again, copy, ignore=shutil.ignore_patterns("ledger*"))
    with LedgerView.open(do_import(copy, tmp_path / "imported").path) as view:
        imported = fold(view.events())
    assert state.counts() == imported.counts()
    told = {(task.id, a.number): (a.status, len(a.retries)) for task, a in state.attempts()}
    there = {(task.id, a.number): (a.status, len(a.retries)) for task, a in imported.attempts()}
    assert told == there
    assert first != again


def test_a_ledger_that_cannot_be_written_leaves_the_run_as_it_is(tmp_path):
    run, log = go(tmp_path, "unsigned", *params(tasks=1), ACL_SIGNING_KEY=str(tmp_path / "nothing"))
    assert log.count("nothing more is recorded") == 1
    assert json.loads((run / "run_info.json").read_text())["status"] == "completed"
    assert not (run / "ledger.sqlite").exists()
