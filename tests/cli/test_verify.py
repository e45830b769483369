import shutil
from pathlib import Path

import pytest

from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say
from tests.cli.conftest import Acl, flip_a_stored_byte


def test_a_sealed_run_is_proven_consistent_and_the_gaps_are_named(acl: Acl, sealed: Path) -> None:
    said = acl("verify", sealed, "--json")
    verdict = said.document()
    assert said.status == 0
    assert verdict["ok"] is True
    assert verdict["sealed_at"] == verdict["size"]
    assert any("no checkpoint from outside" in sentence for sentence in verdict["unproven"])
    assert any("who wrote" in sentence for sentence in verdict["unproven"])
    assert any(verdict["root"] in sentence for sentence in verdict["proven"])


def test_the_ledger_file_may_be_named_instead_of_the_directory(acl: Acl, sealed: Path) -> None:
    assert acl("verify", sealed / "ledger.sqlite").status == 0


def test_a_flipped_byte_is_named_by_event_and_exits_4(acl: Acl, sealed: Path) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    said = acl("verify", sealed, "--json")
    broken = [f for f in said.document()["findings"] if f["severity"] == "broken"]
    assert said.status == 4
    assert any(finding["seq"] is not None for finding in broken)
    assert said.document()["proven"] == []
    text = acl("verify", sealed)
    assert text.status == 4
    assert "event" in text.out
    assert "BROKEN" in text.out


def test_attempts_that_never_ended_are_said_and_exit_0(acl: Acl, killed: Path) -> None:
    said = acl("verify", killed)
    assert said.status == 0
    assert "did not finish" in said.out


def test_a_ledger_that_is_too_small_is_broken(acl: Acl, sealed: Path) -> None:
    assert acl("verify", sealed, "--min-size", 10_000).status == 4


def test_a_directory_that_is_not_there_is_wrong_use(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for nothing in (tmp_path / "nothing", tmp_path / "file"):
        said = acl("verify", sealed, "--tree", nothing)
        assert said.status == 2
        assert f"there is no directory {nothing}" in said.err


def test_an_exported_tree_is_compared_file_by_file(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    acl("export", sealed, tmp_path / "out")
    assert acl("verify", sealed, "--tree", tmp_path / "out").status == 0
    detail = next((tmp_path / "out" / "details").glob("*.json"))
    detail.write_text(detail.read_text().replace("42", "43"))
    said = acl("verify", sealed, "--tree", tmp_path / "out")
    assert said.status == 4
    assert detail.name in said.out


def test_a_checkpoint_from_outside_must_be_reached(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    (kept,) = sealed.glob("ledger.checkpoint*")
    outside = tmp_path / "kept.txt"
    shutil.copy(kept, outside)
    said = acl("verify", sealed, "--checkpoint", outside, "--json")
    assert said.status == 0
    assert not any("outside" in sentence for sentence in said.document()["unproven"])
    text = outside.read_text().splitlines()
    outside.write_text("\n".join([text[0], "1000", *text[2:]]) + "\n")
    assert acl("verify", sealed, "--checkpoint", outside).status == 4


@pytest.mark.parametrize("what", ["missing", "empty", "text", "directory", "other_database"])
def test_what_is_no_ledger_is_refused_in_one_line(acl: Acl, tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.sqlite"
    if what == "empty":
        path.write_bytes(b"")
    elif what == "text":
        path.write_text("hello " * 200)
    elif what == "directory":
        path.mkdir()
    elif what == "other_database":
        import sqlite3

        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t(x)")
        connection.close()
    said = acl("verify", path)
    assert said.status == 2
    assert said.err.count("\n") == 1
    assert "x.sqlite" in said.err


def test_a_false_headline_number_is_found(acl: Acl, tmp_path: Path) -> None:
    directory = tmp_path / "forged"
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening("t"), *say.whole_task("t", say.attempt("t", correct=False)))
        ledger.append(ev.SummaryStarted())
        ledger.append(
            ev.MetricsComputed(
                metrics={"correct.accuracy": 0.99},
                counts={"total": 1, "evaluated": 1, "error": 0, "missing": 0, "skipped": 0},
                reducers=(
                    ev.ReducerUse(
                        metric="correct", name="accuracy", version=1, policy="count_as_zero"
                    ),
                ),
                size=ledger.size,
                root=ledger.root().hex(),
                source="evaluation",
            ),
            ev.RunFinished(status="completed", exit_code=0),
        )
        ledger.seal()
    said = acl("verify", directory, "--json")
    assert said.status == 4
    assert said.document()["intact"] is True
    found = [f for f in said.document()["findings"] if f["code"] == "metrics_differ"]
    assert any("0.99" in finding["message"] for finding in found)


def test_recorded_metrics_that_are_right_are_proven(acl: Acl) -> None:
    run = ("run", "--benchmark", "acl-arith", "--harness", "oracle", "--limit", "2", "--json")
    verdict = acl("verify", acl(*run).document()["path"], "--json").document()
    assert any("recorded metrics" in sentence for sentence in verdict["proven"])


def test_of_an_edited_tree_it_is_said_that_the_ledger_is_intact(
    acl: Acl, sealed: Path, tmp_path: Path
) -> None:
    acl("export", sealed, tmp_path / "out")
    (tmp_path / "out" / "summary.md").write_text("# all right\n")
    said = acl("verify", sealed, "--tree", tmp_path / "out")
    assert said.status == 4
    assert said.out.startswith("the ledger is intact")
    assert "Proven:" in said.out
    assert "is what these events give" not in said.out


def test_a_file_that_is_no_checkpoint_is_wrong_use(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    (tmp_path / "garbage").write_text("hello\n")
    for name in ("garbage", "missing"):
        said = acl("verify", sealed, "--checkpoint", tmp_path / name)
        assert said.status == 2
        assert name in said.err
