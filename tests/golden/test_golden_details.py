"""Golden trees of the layout `details`: the same ledger gives the same bytes, and the right ones.

The trees are compared byte for byte. What the specification says about them is asserted from the
committed files themselves, so that a wrong tree is not made right by writing it anew.
"""

import hashlib
import json
import math
import re
from pathlib import Path

import pytest

from exporters.check import check_tree
from exporters.details import export_details
from ledger import canonical
from ledger.fold import fold
from ledger.view import LedgerView
from tests.golden.regenerate import TREES
from tests.golden.runs import ODD_IDS, RUNS

CASES = sorted(RUNS)


def read(case: str, path: str) -> dict:
    return json.loads((TREES / case / path).read_text(encoding="utf-8"))


def records(case: str) -> dict[str, dict]:
    """Every record of a tree by task id."""
    found = [read(case, f"details/{p.name}") for p in (TREES / case / "details").iterdir()]
    return {record["task_id"]: record for record in found}


@pytest.mark.parametrize("case", CASES)
def test_a_ledger_gives_its_golden_tree_byte_for_byte(case: str, tmp_path: Path) -> None:
    RUNS[case](tmp_path)
    with LedgerView.open(tmp_path) as view:
        files = {}
        for file in export_details(fold(view.events()), view):
            data = file.data
            files[file.path] = data if isinstance(data, bytes) else b"".join(data)
        findings = check_tree(
            lambda size: fold(view.events(until=size)),
            view,
            TREES / case,
            ledger_id=view.ledger_id.hex(),
            size=view.size,
            find={"details": export_details}.__getitem__,
        )
        assert list(findings) == []
    golden = {p.relative_to(TREES / case).as_posix(): p for p in (TREES / case).rglob("*.*")}
    assert set(files) | {"MANIFEST.json"} == set(golden)
    for path, data in files.items():
        assert golden[path].read_bytes() == data, path


@pytest.mark.parametrize("case", CASES)
def test_every_file_is_as_the_layout_says(case: str) -> None:
    manifest = read(case, "MANIFEST.json")
    listed = {file["path"]: file for file in manifest["files"]}
    for path in (TREES / case).rglob("*.*"):
        data = path.read_bytes()
        name = path.relative_to(TREES / case).as_posix()
        assert data.endswith(b"\n")
        assert not data.endswith(b"\n\n")
        if name != "MANIFEST.json":
            assert listed[name]["sha256"] == hashlib.sha256(data).hexdigest()
            assert listed[name]["size"] == len(data)
        if path.suffix != ".json":
            continue
        assert not re.search(rb"\b(NaN|Infinity)\b", data)
        tree = json.loads(data)
        assert list(tree)[-1] == "acl"
        trailer = {
            key: tree["acl"][key] for key in ("schema", "run_id", "ledger_id", "size", "root")
        }
        assert list(tree["acl"])[:5] == list(trailer)
        assert trailer == manifest["acl"]
        text = json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
        assert text.encode("utf-8", "backslashreplace") == data


@pytest.mark.parametrize("case", CASES)
def test_names_of_files_are_short_ascii_and_distinct_without_case(case: str) -> None:
    names = [p.name for p in (TREES / case).rglob("*.json")]
    assert all(re.fullmatch(r"[A-Za-z0-9._=-]+", name) for name in names)
    details = [p.name.lower() for p in (TREES / case).glob("details/*")]
    assert len(set(details)) == len(details)
    assert all(len(name.removeprefix("_error_").removesuffix(".json")) <= 120 for name in details)


def test_the_error_mark_stands_before_records_with_errors_and_no_others() -> None:
    for case in CASES:
        for path in (TREES / case).glob("details/*.json"):
            attempts = json.loads(path.read_text())["attempts"].values()
            has_error = any("error" in attempt["status"] for attempt in attempts)
            assert path.name.startswith("_error_") is has_error


def test_the_full_run_counts_what_happened() -> None:
    counts = read("full", ".summary_counts.json")
    assert [counts[name] for name in ("total", "evaluated", "error", "skipped", "missing")] == [
        6,
        4,
        1,
        1,
        0,
    ]
    assert [counts[name] for name in ("correct", "incorrect", "attempts", "retries")] == [
        2,
        1,
        6,
        2,
    ]
    found = records("full")
    assert {task_id: record["correct"] for task_id, record in found.items()} == {
        "math-1": True,
        "math-2": False,
        "math-3": True,
        "code-1": None,
        "loose": None,
        "skip-1": None,
    }
    assert found["loose"]["score"] == 0.5
    assert found["skip-1"]["attempts"]["1"]["status"] == "skipped"
    assert found["code-1"]["attempts"]["1"]["error"] == "env_failed: no room"
    assert found["math-3"]["retry_counts"] == {"1": 2}


def test_every_odd_id_has_a_record_with_the_id_as_it_was() -> None:
    # The last id is two halves of a surrogate pair, which only the envelope keeps apart.
    *plain, joined = ODD_IDS
    paths = list((TREES / "odd" / "details").iterdir())
    ids = [json.loads(path.read_text())["task_id"] for path in paths]
    texts = [task_id for task_id in ids if isinstance(task_id, str)]
    assert sorted(texts) == sorted(plain)
    (envelope,) = [task_id for task_id in ids if not isinstance(task_id, str)]
    assert canonical.decode(json.dumps(envelope).encode()) == joined


def test_values_that_json_cannot_say_are_readable_from_the_golden_record() -> None:
    values = records_with_trajectory("odd")
    assert math.isnan(opened(values["nan"]))
    assert [opened(item) for item in values["infinities"]] == [math.inf, -math.inf]
    assert opened(values["big"]) == 2**64
    assert values["least"] == -(2**63)
    assert math.copysign(1, values["negative zero"]) == -1
    assert (values["lone"], values["nul"], values["separator"]) == ("a\udc00b", "\0", "\u2028")
    assert opened(values["pair of halves"]) == "\ud83d\ude00"
    assert opened(values["bytes"]) == canonical.Binary(b"\x00\xff")
    assert values["$acl.$acl"] == ["float", "nan"]
    assert values["k\ud835"] == 1
    assert values["long"] == "0123456789" * 1000


def records_with_trajectory(case: str) -> dict:
    trees = [json.loads(path.read_text()) for path in (TREES / case / "details").iterdir()]
    attempts = [attempt for tree in trees for attempt in tree["attempts"].values()]
    (values,) = [attempt["trajectory"] for attempt in attempts if "trajectory" in attempt]
    return values


def opened(envelope: object) -> object:
    return canonical.decode(json.dumps(envelope).encode())


def test_an_interrupted_run_says_so_and_counts_what_is_missing() -> None:
    assert read("interrupted", "run_info.json")["status"] == "interrupted"
    assert read("interrupted", "run_info.json")["finished_at"] is None
    counts = read("interrupted", ".summary_counts.json")
    assert (counts["total"], counts["missing"], counts["metrics"]) == (3, 1, {})
    assert counts["metrics_reason"] == "no metrics were computed"
    assert set(records("interrupted")) == {"t1"}


def test_a_reused_task_is_exported_with_its_lineage_and_its_retries() -> None:
    source = read("reused", "run_info.json")["reused_from"]
    assert (source["run_id"], source["path"]) == ("source-1", "golden/source-1")
    found = records("reused")
    assert found["math-3"]["acl"]["reused_from"]["ledger_id"] == source["ledger_id"]
    assert found["t2"]["acl"]["reused_from"] is None
    retries = [json.loads(p.read_text()) for p in (TREES / "reused" / "retry_details").iterdir()]
    assert sorted(retry["retry"] for retry in retries) == [1, 2]
    assert all(retry["acl"]["copied"] for retry in retries)


def test_a_reused_record_equals_that_of_the_run_it_came_from_but_for_lineage() -> None:
    here, there = records("reused")["math-3"], records("full")["math-3"]
    for record in (here, there):
        del record["acl"]
    assert here == there


def test_stop_on_correct_stops_at_the_first_correct_attempt() -> None:
    record = records("stopped_early")["t1"]
    assert (record["k"], record["attempts_tried"], record["solved_at"]) == (3, 2, 2)
    assert (record["correct"], list(record["attempts"])) == (True, ["1", "2"])


def test_a_run_without_tasks_is_exported_with_its_error() -> None:
    info = read("empty", "run_info.json")
    assert (info["status"], info["error"]) == ("failed", "no_tasks: the selection is empty")
    assert read("empty", ".summary_counts.json")["total"] == 0
    assert not (TREES / "empty" / "details").exists()
