"""`acl export -f parquet|csv|jsonl`: tables of one run, and of all runs of a results directory."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acl import stored_runs
from ledger import LedgerView
from ledger.errors import LedgerDamaged
from tests.cli.conftest import Acl, flip_a_stored_byte, write_run

LAYOUTS = pytest.mark.parametrize("layout", ["parquet", "csv", "jsonl"])
TABLES = ("runs", "tasks", "attempts", "calls", "events")


def tree(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]]


@LAYOUTS
def test_a_run_is_five_files_that_verify_checks(acl: Acl, sealed: Path, layout: str) -> None:
    said = acl("export", "-f", layout, sealed, "out", "--json")
    assert said.status == 0
    assert set(tree(Path("out"))) == {*(f"{name}.{layout}" for name in TABLES), "MANIFEST.json"}
    verdict = acl("verify", sealed, "--tree", "out", "--json").document()
    assert verdict["ok"]
    assert [f for f in verdict["findings"] if f["code"].startswith("tree")] == []
    file = Path("out") / f"attempts.{layout}"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert not acl("verify", sealed, "--tree", "out", "--json").document()["ok"]


@LAYOUTS
def test_exporting_again_gives_the_same_bytes(acl: Acl, sealed: Path, layout: str) -> None:
    acl("export", "-f", layout, sealed, "one")
    before = tree(Path("one"))
    assert acl("export", "-f", layout, sealed, "one").status == 0
    shutil.copytree(sealed, "elsewhere")
    assert acl("export", "-f", layout, "elsewhere", "two").status == 0
    assert tree(Path("one")) == tree(Path("two")) == before


def test_a_file_of_another_release_of_pyarrow_is_not_called_wrong(acl: Acl, sealed: Path) -> None:
    acl("export", "-f", "parquet", sealed, "out")
    file, release = Path("out/tasks.parquet"), pa.cpp_version.encode()
    other = bytes(57 - (byte - 48) if 48 <= byte < 58 else byte for byte in release)
    file.write_bytes(
        file.read_bytes().replace(b"arrow version " + release, b"arrow version " + other)
    )
    verdict = acl("verify", sealed, "--tree", "out", "--json").document()
    (finding,) = (f for f in verdict["findings"] if f["code"].startswith("tree"))
    assert (finding["code"], finding["severity"]) == ("tree_release", "unproven")
    assert not any("every file in" in words for words in verdict["proven"])


@LAYOUTS
def test_a_results_directory_is_one_export_of_all_runs(
    acl: Acl, sealed: Path, killed: Path, layout: str
) -> None:
    said = acl("export", "-f", layout, "results", "out", "--json")
    assert said.status == 0
    told = said.document()
    assert [run["path"] for run in told["runs"]] == ["bench/model-1/r1", "bench/model-1/r2"]
    assert set(tree(Path("out"))) == {*(f"{name}.{layout}" for name in TABLES), "MANIFEST.json"}
    before = tree(Path("out"))
    shutil.copytree("results", "moved")
    assert acl("export", "-f", layout, "moved", "again").status == 0
    assert tree(Path("again")) == before
    assert acl("export", "-f", layout, "results", "out").status == 0
    assert tree(Path("out")) == before


def test_rows_of_all_runs_follow_each_other(acl: Acl, sealed: Path, killed: Path) -> None:
    acl("export", "-f", "jsonl", "results", "out")
    acl("export", "-f", "jsonl", sealed, "one")
    acl("export", "-f", "jsonl", killed, "two")
    for name in TABLES:
        together = Path(f"out/{name}.jsonl").read_bytes()
        assert (
            together
            == Path(f"one/{name}.jsonl").read_bytes() + Path(f"two/{name}.jsonl").read_bytes()
        )


def test_runs_that_are_too_large_to_keep_are_folded_again(
    acl: Acl, sealed: Path, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acl("export", "-f", "parquet", "results", "kept")
    monkeypatch.setattr(stored_runs, "ROOM", 0)
    acl("export", "-f", "parquet", "results", "again")
    assert tree(Path("kept")) == tree(Path("again"))


def test_the_manifest_names_what_the_tables_are_of(acl: Acl, sealed: Path, killed: Path) -> None:
    acl("export", "-f", "csv", "results", "out")
    told = json.loads(Path("out/MANIFEST.json").read_text())["acl"]
    text = ""
    for path in (sealed, killed):
        with LedgerView.open(path) as view:
            text += f"{view.ledger_id.hex()} {view.size} {view.root().hex()}\n"
    assert told["root"] == hashlib.sha256(text.encode()).hexdigest()
    assert (told["run_id"], told["ledger_id"]) == ("", "0" * 32)


def test_a_damaged_run_is_left_out_by_name(acl: Acl, sealed: Path, killed: Path) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    said = acl("export", "-f", "jsonl", "results", "out", "--json")
    assert said.status == 4
    assert "left out: bench/model-1/r1: " in said.err
    assert len(lines(Path("out/runs.jsonl"))) == 1
    (left,) = lines(Path("out/left_out.jsonl"))
    assert (left["place"], left["damaged"]) == ("bench/model-1/r1", True)
    assert str(Path.cwd()) not in left["reason"]
    assert "is damaged" in left["reason"]


def test_what_is_left_out_is_gone_from_the_next_whole_export(
    acl: Acl, sealed: Path, killed: Path
) -> None:
    shutil.copytree("results", "whole")
    flip_a_stored_byte(sealed / "ledger.sqlite")
    acl("export", "-f", "csv", "results", "out")
    assert Path("out/left_out.jsonl").exists()
    assert acl("export", "-f", "csv", "whole", "out").status == 0
    assert not Path("out/left_out.jsonl").exists()


def test_a_foreign_file_is_left_out_and_is_no_damage(acl: Acl, sealed: Path) -> None:
    for name, data in {"picture": b"\x89PNG", "empty": b""}.items():
        (Path("results") / name).mkdir()
        (Path("results") / name / "ledger.sqlite").write_bytes(data)
    said = acl("export", "-f", "csv", "results", "out")
    assert said.status in (1, 4)
    left = lines(Path("out/left_out.jsonl"))
    assert [one["place"] for one in left] == ["empty", "picture"]
    assert said.status == (4 if any(one["damaged"] for one in left) else 1)


def test_a_ledger_that_is_gone_is_missed(acl: Acl, sealed: Path, killed: Path) -> None:
    (sealed / "ledger.sqlite").unlink()
    assert list(sealed.glob("ledger.checkpoint*"))
    said = acl("export", "-f", "csv", "results", "out")
    assert said.status == 4
    assert [one["place"] for one in lines(Path("out/left_out.jsonl"))] == ["bench/model-1/r1"]


def test_a_directory_that_cannot_be_read_is_missed(
    acl: Acl, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    (Path("results") / "closed").mkdir()
    monkeypatch.setattr(os, "scandir", refuse)
    said = acl("export", "-f", "csv", "results", "out")
    assert said.status == 1
    assert lines(Path("out/left_out.jsonl")) == [
        {"place": "closed", "damaged": False, "reason": "Permission denied"}
    ]


def test_salvage_takes_what_precedes_the_damage(
    acl: Acl, sealed: Path, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damage(run: str, *, salvage: bool) -> int | None:
        if "r1" not in run:
            return None
        if salvage:
            return 12
        raise LedgerDamaged("it is", seq=12)

    monkeypatch.setattr("acl.export._damage", damage)
    assert acl("export", "-f", "jsonl", "results", "without").status == 4
    said = acl("export", "-f", "jsonl", "results", "out", "--salvage")
    assert "r1: damaged at event 12; 12 events before it are used" in said.err
    first, second = lines(Path("out/runs.jsonl"))
    assert (first["damaged_at"], first["events"]) == (12, 12)
    assert second["damaged_at"] is None
    events = lines(Path("out/events.jsonl"))
    assert sum(row["ledger_id"] == first["ledger_id"] for row in events) == 12


def test_copies_of_a_ledger_count_once(acl: Acl, sealed: Path) -> None:
    shutil.copytree(sealed, "results/backup")
    said = acl("export", "-f", "jsonl", "results", "out")
    assert len(lines(Path("out/runs.jsonl"))) == 1
    assert said.status == 0
    assert "is a copy of" in said.err
    assert not Path("out/left_out.jsonl").exists()


def test_another_history_of_a_ledger_is_damage(acl: Acl, tmp_path: Path) -> None:
    from ledger import events as ev
    from ledger.store import Ledger
    from tests.golden.runs import interrupted

    for name in ("one", "two"):
        interrupted(tmp_path / "results" / name)
        with Ledger.open(tmp_path / "results" / name) as ledger:
            ledger.append(
                *[ev.AnnotationAdded(text=name, author="a")] * (2 if name == "two" else 1)
            )
    said = acl("export", "-f", "jsonl", "results", "out")
    assert said.status == 4
    assert len(lines(Path("out/runs.jsonl"))) == 1
    (left,) = lines(Path("out/left_out.jsonl"))
    assert (left["place"], left["damaged"]) == ("one", True)
    assert "another history" in left["reason"]


@LAYOUTS
def test_what_stands_there_is_replaced_only_by_its_like(
    acl: Acl, sealed: Path, killed: Path, layout: str
) -> None:
    acl("export", "-f", layout, sealed, "one")
    acl("export", "-f", layout, "results", "all")
    Path("mine").mkdir()
    Path("mine/runs.csv").write_text("mine")
    for source, target in (
        (killed, "one"),
        ("results", "one"),
        (sealed, "all"),
        ("results", "mine"),
    ):
        before = tree(Path(target))
        assert acl("export", "-f", layout, source, target).status == 5
        assert tree(Path(target)) == before
    other = "csv" if layout != "csv" else "jsonl"
    assert acl("export", "-f", other, "results", "all").status == 5


def test_another_results_directory_is_told_by_its_registry(acl: Acl, tmp_path: Path) -> None:
    run = ("run", "--benchmark", "acl-arith", "--harness", "oracle", "--limit", "1", "--no-export")
    for name in ("here", "there"):
        assert acl(*run, "--results-dir", name, "--run-id", "r").status == 0
    assert acl("export", "-f", "csv", "here", "out").status == 0
    assert acl("export", "-f", "csv", "there", "out").status == 5
    assert acl("export", "-f", "csv", "here", "out").status == 0


def test_only_tables_are_made_of_many_runs_and_only_of_now(acl: Acl, sealed: Path) -> None:
    assert acl("export", "results", "out").status == 2
    assert acl("export", "-f", "csv", "results", "out", "--at", "3").status == 2
    assert acl("export", "-f", "csv", "results", "out", "--follow").status == 2
    assert not Path("out").exists()


def test_nothing_at_all_is_no_export(acl: Acl, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    assert acl("export", "-f", "csv", "results", "out").status == 2
    assert not Path("out").exists()


@pytest.mark.parametrize("source", ["results", "results/bench/model-1/r1"])
def test_without_pyarrow_nothing_is_written(
    acl: Acl, sealed: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = acl("export", "-f", "parquet", source, "out")
    assert said.status == 2
    assert "agentcompass-ledger[parquet]" in said.err
    assert not Path("out").exists()


def test_an_earlier_state_of_a_run_can_be_tables_too(acl: Acl, sealed: Path) -> None:
    assert acl("export", "-f", "parquet", sealed, "out", "--at", "5").status == 0
    assert pq.read_table("out/events.parquet").num_rows == 6


def test_a_damaged_run_alone_is_refused(acl: Acl, sealed: Path) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    assert acl("export", "-f", "csv", sealed, "out").status == 4
    assert not Path("out").exists()


def test_a_run_beside_another_keeps_its_place(acl: Acl, tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "b")
    write_run(tmp_path / "results" / "a")
    acl("export", "-f", "jsonl", "results", "out")
    created = [row["created_at"] for row in lines(Path("out/runs.jsonl"))]
    assert created == sorted(created)
