"""`acl export --salvage`: what is left of a damaged ledger, and that it is all there is."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ledger.store import Ledger
from tests import events_of as say
from tests.cli.conftest import Acl

DAMAGED_PART = 2


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A sealed run of two tasks, each in a part of its own."""
    directory = tmp_path / "whole"
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening("first", "second"))
        ledger.append(*say.whole_task("first", say.attempt("first")))
        ledger.append(*say.whole_task("second", say.attempt("second")))
        ledger.append(*say.ending())
        ledger.seal()
    return directory


@pytest.fixture
def damaged(whole: Path) -> tuple[Path, int]:
    """A copy of the run in which the part that tells of the second task cannot be read.

    The number is that of the first event in it: opening and first task are nine events.
    """
    copy = shutil.copytree(whole, whole.with_name("damaged"))
    file = copy / "ledger.sqlite"
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        ask = "SELECT data FROM segment WHERE id = ?"
        (data,) = connection.execute(ask, (DAMAGED_PART,)).fetchone()
    connection.close()
    raw = bytearray(file.read_bytes())
    at = raw.find(data)
    raw[at : at + 4] = bytes(4)
    file.chmod(0o600)
    file.write_bytes(raw)
    return copy, len(say.opening("", "")) + len(say.whole_task("", say.attempt("")))


def trailers(directory: Path) -> dict[str, Any]:
    files = directory.rglob("*.json")
    return {file.name: json.loads(file.read_text())["acl"] for file in files}


def test_every_salvaged_file_says_where_the_ledger_is_damaged(
    acl: Acl, damaged: tuple[Path, int], tmp_path: Path
) -> None:
    run, seq = damaged
    assert acl("export", run, tmp_path / "out").status == 4
    assert acl("export", run, tmp_path / "out", "--salvage", "--json").document()["salvaged"]
    told = trailers(tmp_path / "out")
    assert {"run_info.json", "MANIFEST.json", "first.json"} <= set(told)
    assert all(one["salvaged"] == {"damaged_at": seq} for one in told.values())
    lines = (tmp_path / "out" / "summary.md").read_text().splitlines()
    status = next(n for n, line in enumerate(lines) if line.startswith("**Status:** interrupted"))
    assert lines[status + 1].startswith(f"**Salvaged:** its ledger is damaged at event {seq}")


def test_asking_for_salvage_of_a_whole_ledger_changes_no_byte(
    acl: Acl, whole: Path, tmp_path: Path
) -> None:
    assert acl("export", whole, tmp_path / "a").status == 0
    assert acl("export", whole, tmp_path / "b", "--salvage").status == 0
    first = {p.name: p.read_bytes() for p in (tmp_path / "a").rglob("*") if p.is_file()}
    assert {p.name: p.read_bytes() for p in (tmp_path / "b").rglob("*") if p.is_file()} == first
    assert all("salvaged" not in one for one in trailers(tmp_path / "a").values())


def test_a_salvaged_tree_is_what_the_whole_ledger_says(
    acl: Acl, whole: Path, damaged: tuple[Path, int], tmp_path: Path
) -> None:
    assert acl("export", damaged[0], tmp_path / "out", "--salvage").status == 0
    assert acl("verify", whole, "--tree", tmp_path / "out").status == 0
    summary = tmp_path / "out" / "summary.md"
    summary.write_text(summary.read_text().replace("**Salvaged:**", "**Fine:**"))
    assert acl("verify", whole, "--tree", tmp_path / "out").status == 4


@pytest.mark.parametrize("lost", [None, "run_info.json"])
def test_an_import_tells_that_its_source_was_salvaged(
    acl: Acl, damaged: tuple[Path, int], tmp_path: Path, lost: str | None
) -> None:
    run, seq = damaged
    assert acl("export", run, tmp_path / "out", "--salvage").status == 0
    if lost is not None:
        (tmp_path / "out" / lost).unlink()
    told = acl("import", tmp_path / "out", "--json").document()["told"]
    (salvage,) = [one for one in told if "salvaged" in one["reason"]]
    assert salvage["source"] == ("MANIFEST.json" if lost else "run_info.json")
    assert f"damaged at event {seq}" in salvage["reason"]
