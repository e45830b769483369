"""`verifier/`."""

import hashlib
import json
from pathlib import Path
from typing import Any

from exporters.jobs.job import job_trials
from exporters.jobs.verifier import verifier_files
from ledger import events as ev
from ledger.canonical import Binary
from ledger.fold import fold
from ledger.view import LedgerView
from tests import job_runs as say
from tests.golden.erasing import Erased


def files(tmp_path: Path, *made: ev.AnyEvent, task: str = "t") -> dict[str, bytes]:
    path = say.write(tmp_path / "run", *say.opening(task), *say.whole(task, made))
    found = say.exported(path)
    marker = "/verifier/"
    return {name.split(marker)[1]: data for name, data in found.items() if marker in name}


def judged(tmp_path: Path, **verdict: Any) -> dict[str, bytes]:
    fields = {name: verdict.pop(name) for name in ("correct", "score") if name in verdict}
    return files(tmp_path, *say.attempt("t", verdict=verdict, **fields))


def report(found: dict[str, bytes], task: str = "t") -> dict[str, Any]:
    document = say.document(found, "report.json")
    assert list(document) == [task]
    told: dict[str, Any] = document[task]
    return told


def test_a_verdict_is_a_report_and_its_rewards(tmp_path: Path) -> None:
    found = judged(tmp_path, score=0.5, metrics={"lines": 3}, reason="half right")
    assert report(found) == {
        "resolved": True,
        "score": 0.5,
        "metrics": {"lines": 3.0},
        "reason": "half right",
    }
    assert found["reward.txt"] == b"0.5\n"
    assert say.document(found, "reward.json") == {"reward": 0.5, "lines": 3.0}
    assert set(found) == {"report.json", "reward.txt", "reward.json"}


def test_a_truth_value_is_a_reward_of_one_or_zero(tmp_path: Path) -> None:
    assert judged(tmp_path / "1", correct=True)["reward.txt"] == b"1.0\n"
    found = judged(tmp_path / "2", correct=False)
    assert found["reward.txt"] == b"0.0\n"
    assert report(found)["resolved"] is False


def test_what_a_patch_came_to_is_told_under_its_known_names(tmp_path: Path) -> None:
    tests = {"FAIL_TO_PASS": {"success": ["a"], "failure": []}}
    extra = {"patch_exists": True, "patch_is_None": False, "patch_successfully_applied": "?"}
    found = report(judged(tmp_path, tests_status=tests, extra={**extra, "other": 1}))
    assert list(found) == [
        *("resolved", "patch_is_None", "patch_exists", "tests_status", "score", "metrics", "reason")
    ]
    assert found["tests_status"] == tests


def test_what_was_never_judged_has_a_report_that_says_so_and_nothing_else(tmp_path: Path) -> None:
    found = files(tmp_path, *say.broken("t", code="env_failed", message="no room"))
    assert set(found) == {"report.json"}
    assert report(found) == {
        "resolved": False,
        "reason": "not_evaluated",
        "error": "env_failed: no room",
    }


def test_an_erased_verdict_is_not_told_as_one_that_was_never_given(tmp_path: Path) -> None:
    made = say.whole("t", say.attempt("t", correct=False, score=0.0))
    path = say.write(tmp_path, *say.opening("t"), *made)
    with LedgerView.open(path) as view:
        types = ("evaluation.finished", "attempt.finished")
        seqs = [event.seq for event in view.events() if event.type in types]
        erased = Erased(view, *seqs)
        state = fold(erased.events())
        (trial,) = job_trials(state)
        found = {file.path: file.data for file in verifier_files(trial, erased)}
    assert list(found) == ["t/verifier/report.json"]
    told = json.loads(found["t/verifier/report.json"])
    assert told == {"t": {"resolved": False, "reason": "erased", "error": None}}


def test_a_verifier_that_failed_gave_no_reward_and_what_it_printed_is_kept(tmp_path: Path) -> None:
    error = ev.ErrorInfo(code="evaluation_timeout", message="late", phase="evaluate")
    found = judged(tmp_path, correct=None, evaluation_error=error, stdout="so far", stderr="")
    assert set(found) == {"report.json", "test-stdout.txt", "test-stderr.txt"}
    assert report(found)["error"] == "evaluation_timeout: late"
    assert (found["test-stdout.txt"], found["test-stderr.txt"]) == (b"so far", b"")


def test_long_output_is_cut_with_a_line_that_says_how_much_and_what_it_was(tmp_path: Path) -> None:
    text = "\u00e9" * 200_000 + "x" * 5
    found = judged(tmp_path, stdout=text)["test-stdout.txt"].decode()
    kept, marker, end = found.split("\n")
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert kept == "\u00e9" * 200_000
    assert marker == f"... [truncated 5 chars, sha256 {digest}] ..."
    assert end == ""


def test_output_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    text = "x" * 200_000
    assert judged(tmp_path, stdout=text)["test-stdout.txt"] == text.encode()


def test_output_that_is_no_text_is_written_readably(tmp_path: Path) -> None:
    found = judged(tmp_path, stdout=Binary(b"a\xff"), stderr={"lines": [1]})
    assert found["test-stdout.txt"] == "a\ufffd".encode()
    assert found["test-stderr.txt"] == b'{\n  "lines": [\n    1\n  ]\n}\n'


def test_the_report_names_the_task_as_it_is_called(tmp_path: Path) -> None:
    assert report(files(tmp_path, *say.attempt("a/b c"), task="a/b c"), "a/b c")["resolved"]
