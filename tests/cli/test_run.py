import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Acl

ARITH = ("run", "--benchmark", "acl-arith", "--harness", "calculator", "--limit", "6")


def test_a_run_says_where_it_is_and_what_it_measured(acl: Acl) -> None:
    said = acl(*ARITH, "--run-id", "one", "--json")
    document = said.document()
    assert said.status == 0
    assert set(document) >= {"run_id", "path", "ledger", "status", "exit", "metrics", "counts"}
    assert (document["run_id"], document["status"], document["exit"]) == ("one", "completed", 0)
    assert document["counts"]["total"] == 6
    assert Path(document["ledger"]).is_file()
    assert acl("verify", document["path"]).status == 0
    assert acl("replay", document["path"]).status == 0


def test_the_run_directory_gets_the_details_layout(acl: Acl) -> None:
    path = Path(acl(*ARITH, "--json").document()["path"])
    names = {entry.name for entry in path.iterdir()}
    assert {"run_info.json", "params.json", "details", "summary.md", "MANIFEST.json"} <= names
    assert acl("verify", path, "--tree", path).status == 0


def test_no_export_leaves_the_ledger_alone(acl: Acl) -> None:
    path = Path(acl(*ARITH, "--no-export", "--json").document()["path"])
    assert not (path / "details").exists()
    assert not (path / "MANIFEST.json").exists()


def test_a_live_export_adds_a_second_place(acl: Acl, tmp_path: Path) -> None:
    path = acl(*ARITH, "--live-export", tmp_path / "live", "--json").document()["path"]
    assert acl("verify", path, "--tree", tmp_path / "live").status == 0


def test_a_second_place_that_holds_anything_is_refused_before_the_run(
    acl: Acl, tmp_path: Path
) -> None:
    assert acl(*ARITH, "--live-export", tmp_path / "live").status == 0
    before = sorted(tmp_path.rglob("*"))
    said = acl(*ARITH, "--live-export", tmp_path / "live")
    assert said.status == 5
    assert "another run's files" in said.err
    assert sorted(tmp_path.rglob("*")) == before


def test_fail_under_serves_ci(acl: Acl) -> None:
    assert acl(*ARITH, "--fail-under", "correct.accuracy=0.01").status == 0
    low = acl(*ARITH, "--fail-under", "correct.accuracy=1.01", "--json")
    assert low.status == 1
    assert low.document()["exit"] == 1
    assert low.document()["status"] == "completed"
    assert "below 1.01" in low.err
    missing = acl(*ARITH, "--fail-under", "beauty=0.5")
    assert missing.status == 1
    assert "beauty has no value" in missing.err
    assert acl(*ARITH, "--fail-under", "correct.accuracy=high").status == 2


def test_a_request_file_and_flags_that_override_it(acl: Acl, tmp_path: Path) -> None:
    request = {
        "benchmark": {"id": "acl-arith", "params": {"limit": 2}},
        "harness": {"id": "noop"},
        "execution": {"k": 3},
    }
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(request))
    (tmp_path / "r.json").write_text(json.dumps(request))
    for name in ("r.yaml", "r.json"):
        document = acl("run", "-f", name, "--k", "2", "--json").document()
        shown = acl("show", document["path"], "--json").document()
        assert (shown["k"], shown["harness"], shown["counts"]["total"]) == (2, "noop", 2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("benchmark: {id: acl-arith}\nsurprise: 1\n", "surprise"),
        ("benchmark: {id: acl-arith}\nexecution: {k: none}\n", "execution.k"),
        ("benchmark: {id: acl-arith}\nexecution: {k: 0}\n", "execution.k"),
        ("[]\n", "does not hold a request"),
        ("", "does not hold a request"),
        ("a: [b\n", "neither YAML nor JSON"),
        ("harness: {id: noop}\n", "no benchmark"),
        ("benchmark: {id: nope}\n", "nope"),
        ("benchmark: {id: acl-arith}\nharness: {id: nope}\n", "nope"),
        ("benchmark: {id: acl-arith}\nharness: {id: noop}\nenvironment: {id: nope}\n", "nope"),
        ("benchmark: 3\n", "benchmark"),
        ("benchmark: {id: acl-arith}\nbenchmark: {id: acl-repair}\n", "stands twice"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_a_wrong_request_is_one_line_and_leaves_nothing(
    acl: Acl, tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "r.yaml").write_text(content)
    said = acl("run", "-f", "r.yaml")
    assert said.status == 2
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_missing_request_file_is_named(acl: Acl) -> None:
    said = acl("run", "-f", "nowhere.yaml")
    assert said.status == 2
    assert "nowhere.yaml" in said.err


def test_a_run_id_that_is_taken_is_refused(acl: Acl) -> None:
    acl(*ARITH, "--run-id", "one")
    said = acl(*ARITH, "--run-id", "one")
    assert said.status == 2
    assert "one" in said.err


def test_a_source_of_reuse_must_exist(acl: Acl) -> None:
    said = acl(*ARITH, "--reuse-run-id", "nowhere")
    assert said.status == 2
    assert "nowhere" in said.err


def test_finished_tasks_are_reused(acl: Acl) -> None:
    acl(*ARITH, "--run-id", "one")
    document = acl(*ARITH, "--reuse-run-id", "one", "--json").document()
    assert document["counts"]["reused"] == 6
    shown = acl("show", document["path"], "--json").document()
    assert shown["reused_from"] == "one"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_with_its_status(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "acl", "run", "--benchmark", "acl-repair", "--k", "20"]
    process = subprocess.Popen(
        [*command, "--harness", "search", "--harness-param", "budget=200", "--run-id", "x"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        ledger = tmp_path / "results" / "acl-repair" / "none" / "x" / "details"
        while process.poll() is None and not ledger.exists():
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        process.send_signal(number)
        process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 128 + number
    shown = subprocess.run(
        [sys.executable, "-m", "acl", "show", str(ledger.parent), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(shown.stdout)
    assert document["status"] == "cancelled"
    assert document["sealed_size"] == document["size"]


def test_a_faulty_line_of_a_request_is_named_and_not_shown(acl: Acl, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("benchmark: {id: x}\nmodel: {api_key: 'sk-abc12345' oops}\n")
    said = acl("run", "-f", "r.yaml")
    assert said.status == 2
    assert "line 2" in said.err
    assert "sk-abc12345" not in said.err + said.out


def test_every_fault_of_a_request_is_named(acl: Acl, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("benchmark: {id: x}\nexecution: {k: 0}\nsurprise: 1\n")
    said = acl("run", "-f", "r.yaml")
    assert "execution.k" in said.err
    assert "surprise: unknown field" in said.err


PLUG = """
import subprocess, sys
from ledger.events import Evaluator
from runtime.contracts import BaseHarness, Benchmark, Task
from runtime.results import Evaluation, RunResult

class Loud(Benchmark):
    id, version = "loud", "1"
    def load_tasks(self, params):
        print("LOADED")
        return [Task("a"), Task("b"), Task("c")]
    async def evaluate(self, task, result, context):
        print("JUDGED")
        return Evaluation(Evaluator(id="loud", version="1"), correct=True)

class Talker(BaseHarness):
    id = "talker"
    async def run_task(self, task, config, session, context):
        print("PRINTED")
        subprocess.run(["echo", "ECHOED"], check=True)
        if task.task_id == "b":
            sys.stdout.close()
            sys.stderr.close()
        if task.task_id == "c":
            raise KeyboardInterrupt
        return RunResult(task.task_id)
"""


@pytest.fixture
def plug(tmp_path: Path) -> dict[str, str]:
    """The environment of a program that finds the plug-ins above."""
    place = tmp_path / "plug"
    info = place / "loudplug-1.dist-info"
    info.mkdir(parents=True)
    (place / "loudplug.py").write_text(PLUG)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loudplug\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[acl.benchmarks]\nloud = loudplug:Loud\n[acl.harnesses]\ntalker = loudplug:Talker\n"
    )
    return {**os.environ, "PYTHONPATH": str(place)}


@pytest.mark.parametrize("many", [False, True])
def test_what_plug_ins_print_is_not_in_the_document(
    plug: dict[str, str], tmp_path: Path, many: bool
) -> None:
    request = {"benchmark": {"id": "loud"}, "harness": {"id": "talker"}}
    file = tmp_path / "request.yaml"
    asked = {"requests": [{"name": "one", **request}]} if many else request
    file.write_text(yaml.safe_dump(asked))
    done = subprocess.run(
        [sys.executable, "-m", "acl", "run", "-f", file, "--results-dir", tmp_path / "r", "--json"],
        capture_output=True,
        text=True,
        env=plug,
        timeout=120,
        check=False,
    )
    document = json.loads(done.stdout)
    one = document["requests"][0] if many else document
    assert (done.returncode, one["status"], one["counts"]["total"]) == (0, "completed", 3)
    assert {"LOADED", "PRINTED", "JUDGED", "ECHOED"} <= set(done.stderr.split())
    assert "Traceback" not in done.stderr
