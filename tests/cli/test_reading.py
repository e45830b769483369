"""show, ls, log, copy, seal, replay, export on small ledgers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.canonical import Binary
from ledger.store import Ledger
from tests import events_of as say
from tests.cli.conftest import Acl, flip_a_stored_byte, write_run
from tests.ledger_checks import forge


def test_show_gives_a_run_at_a_glance(acl: Acl, sealed: Path) -> None:
    document = acl("show", sealed, "--json").document()
    assert (document["run_id"], document["status"]) == ("r1", "completed")
    assert document["counts"]["total"] == 3
    assert document["counts"]["retries"] == 1
    text = acl("show", sealed)
    assert "total 3" in text.out
    assert document["root"] in text.out


def test_show_gives_one_task_with_attempts_retries_and_verdicts(acl: Acl, sealed: Path) -> None:
    text = acl("show", sealed, "wrong").out
    assert "provider_overloaded: try later" in text
    assert "41 is not 42" in text
    record = acl("show", sealed, "wrong", "--json").document()
    assert record["attempts"]["1"]["final_answer"] == "41"
    assert record["retry_count"] == 1


def test_show_of_an_unknown_task_is_refused_by_name(acl: Acl, sealed: Path) -> None:
    said = acl("show", sealed, "nope")
    assert said.status == 2
    assert "'nope'" in said.err


def test_ls_lists_good_runs_beside_a_damaged_one(acl: Acl, sealed: Path, killed: Path) -> None:
    bad = write_run(sealed.parent / "r3")
    flip_a_stored_byte(bad / "ledger.sqlite")
    said = acl("ls", "--json")
    rows = {Path(row["path"]).name: row for row in said.lines()}
    assert rows["r1"]["status"] == "completed"
    assert rows["r2"]["status"] == "interrupted"
    assert rows["r3"]["status"] == "damaged"
    assert said.status == 4
    assert "r3" in acl("ls").err


def test_ls_of_nothing_says_so(acl: Acl, tmp_path: Path) -> None:
    assert acl("ls", tmp_path / "none").status == 2
    (tmp_path / "empty").mkdir()
    said = acl("ls", tmp_path / "empty")
    assert (said.status, said.out) == (0, "")


def test_a_run_that_is_being_written_is_running(acl: Acl, tmp_path: Path) -> None:
    directory = tmp_path / "results" / "live"
    directory.mkdir(parents=True)
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening("t"))
        assert acl("show", directory, "--json").document()["status"] == "running"
    assert acl("show", directory, "--json").document()["status"] == "interrupted"


def test_log_lists_events_in_order(acl: Acl, sealed: Path) -> None:
    lines = acl("log", sealed, "--json").lines()
    assert [line["seq"] for line in lines] == list(range(len(lines)))
    assert set(lines[0]) == {"seq", "at", "type", "task", "attempt", "event"}
    assert lines[0]["type"] == "run.created"
    only = acl("log", sealed, "--task", "broken", "--json").lines()
    assert {line["task"] for line in only} == {"broken"}
    assert acl("log", sealed, "--since", 5, "--json").lines() == lines[5:]
    assert len(acl("log", sealed).out.splitlines()) == len(lines)


def test_log_shows_control_characters_of_a_task_id_escaped(acl: Acl, tmp_path: Path) -> None:
    directory = tmp_path / "odd"
    directory.mkdir()
    task = "a\x1b[31m\x9b31m\u202e\u2028\ud800\U000e0001"
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening(task), *say.whole_task(task, say.attempt(task)))
    said = acl("log", directory)
    assert said.status == 0
    assert "\x1b" not in said.out
    assert r"a\x1b[31m\x9b31m\u202e\u2028\ud800\U000e0001" in said.out
    as_json = acl("log", directory, "--json")
    assert as_json.out.replace("\n", "").isprintable()
    # The lone surrogate stands in an envelope, everything else as it is.
    assert r"a\u001b[31m\u009b31m\u202e\u2028\\ud800\udb40\udc01" in as_json.out
    assert acl("show", directory, task).status == 0


def test_copy_makes_one_file_that_verifies(acl: Acl, killed: Path, tmp_path: Path) -> None:
    said = acl("copy", killed, tmp_path / "one.sqlite", "--json")
    assert said.status == 0
    verdict = acl("verify", tmp_path / "one.sqlite", "--json").document()
    assert verdict["ok"]
    assert verdict["root"] == said.document()["root"]


def test_copy_replaces_nothing(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    (tmp_path / "one.sqlite").write_text("precious")
    assert acl("copy", sealed, tmp_path / "one.sqlite").status == 2
    assert (tmp_path / "one.sqlite").read_text() == "precious"


def test_seal_closes_an_interrupted_run(acl: Acl, killed: Path) -> None:
    assert acl("seal", killed).status == 0
    document = acl("show", killed, "--json").document()
    assert document["status"] == "interrupted"
    assert document["sealed_size"] == document["size"]


def test_a_running_ledger_is_not_sealed_by_somebody_else(acl: Acl, tmp_path: Path) -> None:
    directory = tmp_path / "live"
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(say.created())
        said = acl("seal", directory)
    assert said.status == 2
    assert "being written" in said.err


def test_replay_without_recorded_metrics_computes_them(acl: Acl, killed: Path) -> None:
    said = acl("replay", killed, "--json")
    document = said.document()
    assert said.status == 0
    assert document["equal"] is None
    assert document["metrics"]["metrics"]["correct.accuracy"] == pytest.approx(1 / 3)
    assert document["metrics"]["counts"] == {
        "total": 3,
        "evaluated": 2,
        "error": 1,
        "missing": 0,
        "skipped": 0,
    }


def test_replay_as_of_an_event_knows_only_what_came_before(acl: Acl, sealed: Path) -> None:
    document = acl("replay", sealed, "--at", 7, "--json").document()
    assert document["metrics"]["counts"]["evaluated"] == 1
    assert acl("replay", sealed, "--at", 10_000).status == 2


def test_replay_adds_a_reducer_after_the_fact(acl: Acl, sealed: Path) -> None:
    assert "correct.majority@1" in acl("replay", sealed, "--reducer", "majority@1").out
    assert acl("replay", sealed, "--reducer", "nonsense@1").status == 2


def test_export_refuses_a_directory_that_holds_something_else(
    acl: Acl, sealed: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("x")
    said = acl("export", sealed, tmp_path / "out")
    assert said.status == 5
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_export_of_an_unknown_layout_names_the_known_ones(acl: Acl, sealed: Path) -> None:
    said = acl("export", sealed, "out", "-f", "nope")
    assert said.status == 2
    assert "details" in said.err


def test_nothing_is_exported_from_a_damaged_ledger(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    assert acl("export", sealed, tmp_path / "out").status == 4
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run_is_exported_as_such(acl: Acl, killed: Path, tmp_path: Path) -> None:
    said = acl("export", killed, tmp_path / "out", "--json")
    assert said.document()["status"] == "interrupted"
    assert '"status": "interrupted"' in (tmp_path / "out" / "run_info.json").read_text()


def test_show_lists_the_tasks_with_their_verdicts(acl: Acl, sealed: Path) -> None:
    rows = acl("show", sealed, "--tasks", "--json").lines()
    assert [(row["task_id"], row["correct"]) for row in rows] == [
        ("right", True),
        ("wrong", False),
        ("broken", None),
    ]
    assert "right" in acl("show", sealed, "--tasks").out


def test_show_prints_an_artifact_as_it_was(acl: Acl, tmp_path: Path) -> None:
    directory = tmp_path / "artifacts"
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t"))
        start, result, *rest = say.attempt("t")
        collected = ev.ArtifactsCollected(
            task="t",
            attempt=1,
            artifacts=(ev.Artifact(path="a.txt", bytes=3), ev.Artifact(path="b.bin", bytes=2)),
            contents={"a.txt": "abc", "b.bin": Binary(b"\xff\x00")},
        )
        ledger.append(start, result, collected, *rest)
    acl("show", directory, "t", "--artifact", "nope")
    done = subprocess.run(
        [sys.executable, "-m", "acl", "show", str(directory), "t", "--artifact", "b.bin"],
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"\xff\x00"
    said = acl("show", directory, "t", "--artifact", "nope")
    assert said.status == 2
    assert "1/a.txt, 1/b.bin" in said.err
    assert acl("show", directory, "--artifact", "a.txt").status == 2


def test_an_artifact_of_an_earlier_attempt_is_named_with_its_number(
    acl: Acl, tmp_path: Path
) -> None:
    left: tuple[dict[str, Any], ...] = (
        {"lists.py": "first", "only.bin": Binary(b"\xff\x00")},
        {"lists.py": "second", "1/lists.py": "deep"},
    )
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t", k=2), ev.TaskStarted(task="t"))
        for number, contents in enumerate(left, 1):
            start, result, *rest = say.attempt("t", number)
            artifacts = tuple(ev.Artifact(path=path, bytes=1) for path in contents)
            collected = ev.ArtifactsCollected(
                task="t", attempt=number, artifacts=artifacts, contents=contents
            )
            ledger.append(start, result, collected, *rest)

    def shown(name: str) -> Any:
        return acl("show", tmp_path, "t", "--artifact", name, "--json").document()

    assert shown("lists.py") == {"path": "lists.py", "attempt": 2, "text": "second"}
    assert shown("1/lists.py") == {"path": "lists.py", "attempt": 1, "text": "first"}
    assert shown("2/1/lists.py") == {"path": "1/lists.py", "attempt": 2, "text": "deep"}
    assert shown("only.bin") == {"path": "only.bin", "attempt": 1, "base64": "/wA="}
    said = acl("show", tmp_path, "t", "--artifact", "2/only.bin")
    assert said.status == 2
    assert "known: 1/lists.py, 1/only.bin, 2/1/lists.py, 2/lists.py" in said.err


def test_sealing_again_says_that_it_is_sealed(acl: Acl, sealed: Path) -> None:
    said = acl("seal", sealed)
    assert said.status == 0
    assert "sealed already" in said.out


def test_a_list_that_would_be_empty_for_a_wrong_name_is_refused(acl: Acl, sealed: Path) -> None:
    assert acl("log", sealed, "--task", "nope").status == 2
    assert acl("log", sealed, "--since", 10_000).status == 2


def test_log_follows_a_run_that_another_process_writes(tmp_path: Path) -> None:
    directory = tmp_path / "live"
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening("t"))
        process = subprocess.Popen(
            [sys.executable, "-m", "acl", "log", str(directory), "--follow", "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        first = [json.loads(process.stdout.readline())["type"] for _ in range(3)]
        assert first == ["run.created", "run.started", "tasks.selected"]
        ledger.append(ev.TaskStarted(task="t"))
        assert json.loads(process.stdout.readline())["type"] == "task.started"
        ledger.append(
            *say.attempt("t"), ev.TaskFinished(task="t", reason="all_attempts", error=False)
        )
        ledger.append(*say.ending())
        ledger.seal()
    rest = process.communicate(timeout=60)[0].splitlines()
    assert [json.loads(line)["type"] for line in rest][-2:] == ["run.finished", "ledger.sealed"]
    assert process.returncode == 0


def test_all_before_the_damage_is_salvaged_although_a_checkpoint_names_more(
    acl: Acl, tmp_path: Path
) -> None:
    directory = tmp_path / "large"
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening(*"abc"))
        for task in "abc":
            ledger.append(*say.whole_task(task, say.attempt(task)))
        ledger.append(*say.ending())
        ledger.seal()
    forge(
        directory / "ledger.sqlite", "UPDATE segment SET data = zeroblob(length(data)) WHERE id = 3"
    )
    said = acl("export", directory, tmp_path / "out", "--salvage", "--json")
    # Parts 0 to 2 hold the opening (3 events) and the first two tasks (6 events each).
    assert said.status == 0
    assert said.document()["size"] == 15
    assert len(list((tmp_path / "out" / "details").iterdir())) == 2
