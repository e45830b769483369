import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from acl.progress import Rows
from runtime.progress import Progress
from runtime.results import RequestOutcome
from tests.cli.conftest import Acl

ROOT = Path(__file__).resolve().parents[2]
REQUEST_DOCUMENT = {
    *("name", "run_id", "path", "ledger", "status", "exit", "error", "metrics", "counts"),
    "artifacts",
}


def arith(name: str, harness: str = "calculator", limit: int = 3, **more: Any) -> dict[str, Any]:
    benchmark = {"id": "acl-arith", "params": {"limit": limit}}
    return {"name": name, "benchmark": benchmark, "harness": {"id": harness}, **more}


def write(path: Path, *requests: dict[str, Any], **fields: Any) -> Path:
    path.write_text(yaml.safe_dump({"name": "both", "requests": list(requests), **fields}))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "suite.yaml", arith("one"), arith("two", "oracle", 2))


def test_a_suite_is_one_document_with_one_for_each_run(acl: Acl, file: Path) -> None:
    said = acl("run", "-f", file, "--json")
    assert (said.status, said.err) == (0, "")
    document = said.document()
    assert set(document) == {
        *("orchestration_id", "name", "status", "started_at", "finished_at", "requests")
    }
    assert (document["name"], document["status"]) == ("both", "completed")
    first, second = document["requests"]
    assert set(first) == REQUEST_DOCUMENT
    assert (first["name"], first["exit"], first["counts"]["total"]) == ("one", 0, 3)
    assert (second["name"], second["metrics"]["correct.accuracy"]) == ("two", 1.0)
    for run in document["requests"]:
        assert acl("verify", run["path"], "--tree", run["path"]).status == 0
        assert acl("replay", run["path"]).status == 0


def test_what_is_recorded_names_file_suite_and_request(acl: Acl, file: Path) -> None:
    document = acl("run", "-f", file, "--json").document()
    (first, *_) = acl("log", document["requests"][1]["path"], "--json").lines()
    created = first["event"]
    assert created["orchestration_id"] == document["orchestration_id"]
    assert created["request_name"] == "two"
    assert created["request"]["metadata"]["config_path"] == "suite.yaml"


def test_people_are_told_of_each_request_and_of_all(acl: Acl, file: Path) -> None:
    said = acl("run", "-f", file)
    lines = said.out.splitlines()
    assert "request one: completed" in lines
    assert "request two: completed" in lines
    assert lines[-1] == "suite both: completed, 2 of 2 requests completed"
    assert said.out.count("ledger: ") == 2


def test_json_is_a_suite_file_too(acl: Acl, tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps({"requests": [arith("one")]}))
    document = acl("run", "-f", "suite.json", "--json").document()
    assert [run["status"] for run in document["requests"]] == ["completed"]


# -- flags --------------------------------------------------------------------------------------


def request_of(acl: Acl, run: dict[str, Any]) -> Any:
    return acl("log", run["path"], "--json").lines()[0]["event"]["request"]


def test_flags_override_every_request(acl: Acl, file: Path) -> None:
    flags = ("--k", "2", "--limit", "1", "--run-name", "n", "--max-retries", "1")
    runs = acl("run", "-f", file, *flags, "--json").document()["requests"]
    assert [run["counts"]["attempts"] for run in runs] == [2, 2]
    for run in runs:
        request = request_of(acl, run)
        assert request["execution"]["max_retries"] == 1
        assert run["path"].startswith("results/n/acl-arith/")


def test_concurrency_is_for_all_requests_together(acl: Acl, tmp_path: Path) -> None:
    own = arith("own", execution={"task_concurrency": 1})
    file = write(tmp_path / "s.yaml", arith("one"), own, task_concurrency=2)
    runs = acl("run", "-f", file, "--concurrency", "3", "--json").document()["requests"]
    found = [request_of(acl, run)["execution"]["task_concurrency"] for run in runs]
    assert found == [3, 1]


def test_one_run_id_is_not_for_several_runs(acl: Acl, file: Path, tmp_path: Path) -> None:
    said = acl("run", "-f", file, "--run-id", "x")
    assert said.status == 2
    assert "--run-id names one run" in said.err
    assert not (tmp_path / "results").exists()


def test_reuse_is_asked_for_by_every_request(acl: Acl, tmp_path: Path) -> None:
    models = [arith(name, model={"id": name}) for name in ("m1", "m2")]
    file = write(tmp_path / "s.yaml", *models)
    assert acl("run", "-f", file).status == 0
    again = acl("run", "-f", file, "--reuse", "--json").document()
    assert [run["counts"]["reused"] for run in again["requests"]] == [3, 3]


def test_the_second_place_has_each_run_where_it_is_below_the_results(
    acl: Acl, file: Path, tmp_path: Path
) -> None:
    runs = acl("run", "-f", file, "--live-export", "live", "--json").document()["requests"]
    for run in runs:
        place = tmp_path / "live" / Path(run["path"]).relative_to("results")
        assert acl("verify", run["path"], "--tree", place).status == 0


def test_a_second_place_with_a_longer_run_of_others_exits_5(acl: Acl, tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", arith("one", output={"run_id": "r"}))
    place = "live/acl-arith/none/r"
    more = ("--benchmark", "acl-arith", "--harness", "calculator", "--limit", 9, "--k", 3)
    assert acl("run", *more, "--live-export", place).status == 0
    said = acl("run", "-f", file, "--live-export", "live", "--json")
    (run,) = said.document()["requests"]
    assert said.status == 5
    assert (run["status"], run["error"]["code"]) == ("completed", "export_refused")
    assert "not all files of the run were written" in run["error"]["message"]


def test_no_export_leaves_the_ledgers_alone(acl: Acl, file: Path, tmp_path: Path) -> None:
    assert acl("run", "-f", file, "--no-export").status == 0
    assert list(tmp_path.rglob("details")) == []


def test_fail_under_is_for_every_request(acl: Acl, file: Path) -> None:
    assert acl("run", "-f", file, "--fail-under", "correct.accuracy=0").status == 0
    low = acl("run", "-f", file, "--fail-under", "correct.accuracy=1.01", "--json")
    assert low.status == 1
    assert low.document()["status"] == "completed"
    assert [run["exit"] for run in low.document()["requests"]] == [1, 1]
    assert "one: correct.accuracy is" in low.err
    assert "two: correct.accuracy is 1.0, below 1.01" in low.err


# -- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"surprise": 1}, "s.yaml: surprise"),
        ({"task_concurrency": 0}, "s.yaml: task_concurrency"),
        ({"requests": []}, "s.yaml: requests"),
        ({"requests": 3}, "s.yaml: requests"),
        ({"requests": [3]}, "s.yaml: requests.0"),
        ({"requests": [{**arith("a"), "nope": 1}]}, "s.yaml: requests.0.nope"),
        ({"requests": [arith("a"), {"name": "b"}]}, "s.yaml: requests.1.benchmark"),
        ({"requests": [arith("a", execution={"k": 0})]}, "s.yaml: requests.0.execution.k"),
        ({"requests": [arith("a", execution=3)]}, "s.yaml: requests.0.execution"),
        ({"requests": [arith("a"), arith("a")]}, "the same name 'a'"),
        ({"requests": [arith(n, output={"run_id": "x"}) for n in "ab"]}, "the same output"),
        ({"requests": [arith(n, runtime={"reuse": True}) for n in "ab"]}, "the same benchmark"),
    ],
)
def test_a_wrong_suite_is_one_line_and_leaves_nothing(
    acl: Acl, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"requests": [arith("a")], **change}))
    said = acl("run", "-f", "s.yaml", "--max-retries", "1")
    assert said.status == 2
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_request_that_fails_fails_alone(acl: Acl, tmp_path: Path) -> None:
    file = write(tmp_path / "s.yaml", arith("good"), arith("bad", "nowhere"), arith("fine"))
    said = acl("run", "-f", file, "--json", "--fail-under", "correct.accuracy=0")
    assert said.status == 1
    document = said.document()
    assert document["status"] == "partial_failure"
    good, bad, fine = document["requests"]
    assert [run["status"] for run in (good, bad, fine)] == ["completed", "failed", "completed"]
    assert (bad["run_id"], bad["path"], bad["ledger"], bad["exit"]) == (None, None, None, 2)
    assert "nowhere" in bad["error"]["message"]
    shown = acl("run", "-f", file)
    assert "request bad: failed" in shown.out
    assert shown.out.splitlines()[-1].endswith("partial_failure, 2 of 3 requests completed")


def slow(tmp_path: Path, **fields: Any) -> Path:
    """A suite that goes on for long: the second request waits behind the first."""
    harness = {"id": "search", "params": {"budget": 200}}
    benchmark = {"id": "acl-repair", "params": {}}
    parts = {"benchmark": benchmark, "harness": harness, "execution": {"k": 20}}
    requests = [{"name": name, **parts, "output": {"run_id": name}} for name in ("one", "two")]
    return write(tmp_path / "slow.yaml", *requests, task_concurrency=2, **fields)


def test_when_the_time_is_over_the_suite_has_timed_out(acl: Acl, tmp_path: Path) -> None:
    for seconds in (2, 20, 200):
        said = acl("run", "-f", slow(tmp_path, timeout_seconds=seconds), "--json")
        document = said.document()
        if document["requests"][0]["path"]:  # else the time was over before anything was begun
            break
    assert said.status == 1
    assert document["status"] == "timed_out"
    assert [run["status"] for run in document["requests"]] == ["timed_out", "cancelled"]
    assert acl("verify", document["requests"][0]["path"]).status == 0


def test_a_signal_ends_the_suite_with_its_status(tmp_path: Path) -> None:
    file = slow(tmp_path, cleanup_grace_seconds=7)
    command = [sys.executable, "-m", "acl", "run", "-f", str(file), "--json"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        details = tmp_path / "results" / "acl-repair" / "none" / "one" / "details"
        while process.poll() is None and not details.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 130
    assert b"running attempts get 7 s" in err
    document = json.loads(out)
    assert document["status"] == "cancelled"
    assert [run["status"] for run in document["requests"]] == ["cancelled", "cancelled"]
    assert [run["exit"] for run in document["requests"]] == [130, 130]


# -- the table, and the example -----------------------------------------------------------------


def test_on_a_terminal_a_table_shows_all_requests(file: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "acl", "run", "-f", str(file), "--json"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    drawn = b""
    try:
        while part := os.read(ours, 65536):
            drawn += part
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["status"] == "completed"
    for word in (b"REQUEST", b"STATUS", b"TASKS", b"RETRIES", b"LEFT", b"one", b"two", b"3/3"):
        assert word in drawn


def cells(rows: Rows) -> list[list[str]]:
    console = Console(width=100, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(rows.table())
    return [line.split() for line in capture.get().splitlines()[1:]]


def progress(**counts: Any) -> Progress:
    zero = dict.fromkeys(("total", "pending", "running", "done", "error", "cancelled"), 0)
    more = {"reused": 0, "correct": 0, "attempts": 0, "retries": 0, "elapsed_seconds": 1.0}
    open_ = {"tasks_per_minute": None, "remaining_seconds": None}
    given = {"run_id": "r", "status": "running", "at": "", **zero, **more, **open_, **counts}
    return Progress(**given)


def test_the_table_has_a_row_for_each_request_from_the_first_moment() -> None:
    rows = Rows(["one", "two"])
    assert cells(rows) == [[name, "waiting", *"-----"] for name in ("one", "two")]
    rows.progress("one", progress(total=9, done=3, error=1, cancelled=1, retries=2))
    assert cells(rows)[0] == ["one", "running", "5/9", "1", "2", "-", "-"]
    rows.progress("one", progress(total=9, done=3, tasks_per_minute=90.4, remaining_seconds=75))
    assert cells(rows)[0] == ["one", "running", "3/9", "0", "0", "90", "1:15"]
    rows.end(RequestOutcome("two", "failed"))
    assert cells(rows)[1] == ["two", "failed", *"-----"]


def test_a_name_is_shown_as_it_is_and_moves_no_cursor() -> None:
    (row,) = cells(Rows(["[bold]\x1b[2J"]))
    assert row[0] == "[bold]\\x1b[2J"


def test_the_suite_of_the_examples_works(acl: Acl) -> None:
    said = acl("run", "-f", ROOT / "examples" / "suite.yaml", "--limit", "3", "--json")
    assert said.status == 0
    assert [run["name"] for run in said.document()["requests"]] == ["sums", "repairs"]
