import re
import threading
from pathlib import Path

import pytest

from ledger.errors import LedgerExists, UsageError
from runtime.paths import MAX_PART, directory_name, reserve, run_directory, run_root

NOON = 1_764_504_000 * 10**9  # 2025-11-30T12:00:00Z


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("gpt-4.1", "gpt-4.1"),
        ("org/model:free", "org_model_free"),
        ("a  b", "a_b"),
        ("é" * 300, "_"),
        ("CON", "CON"),
        (" x", "_x"),
        ("..a", "_.a"),
        ("...", "_.."),
        (".import-x", "_import-x"),
        ("k=v", "k=v"),
    ],
)
def test_every_run_of_other_characters_becomes_one_underscore(given: str, name: str) -> None:
    assert directory_name(given, "part") == name


@pytest.mark.parametrize("given", ["", ".", ".."])
def test_a_name_that_comes_to_nothing_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="model id"):
        directory_name(given, "model id")


def test_a_long_name_is_cut_and_marked_with_a_digest_of_the_whole() -> None:
    name = directory_name("a" * 300, "part")
    other = directory_name("a" * 301, "part")
    assert len(name) == MAX_PART
    assert re.fullmatch(r"a+--[0-9a-f]{8}", name)
    assert name != other
    assert directory_name("a" * 100, "part") == "a" * 100


def test_a_lone_surrogate_in_a_long_name_does_no_harm() -> None:
    assert directory_name("\ud800" + "a" * 200, "part").startswith("_a")


def test_a_run_name_has_parts_and_no_dots(tmp_path: Path) -> None:
    root = run_root(tmp_path, "../suite//a\\b/./c d", "bench", "org/model")
    assert root == tmp_path / "suite" / "a" / "b" / "c_d" / "bench" / "org_model"


def test_an_explicit_id_must_be_new(tmp_path: Path) -> None:
    root = run_root(tmp_path, "", "b", "m")
    assert reserve(tmp_path, root, "mine", NOON) == root / "mine"
    with pytest.raises(LedgerExists, match="mine"):
        reserve(tmp_path, root, "mine", NOON)


def test_a_taken_second_gives_the_next_free_one(tmp_path: Path) -> None:
    root = run_root(tmp_path, "", "b", "m")
    names = [reserve(tmp_path, root, "", NOON).name for _ in range(3)]
    assert names == ["20251130_120000", "20251130_120001", "20251130_120002"]


def test_callers_in_the_same_second_get_different_runs(tmp_path: Path) -> None:
    root = run_root(tmp_path, "", "b", "m")
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(reserve(tmp_path, root, "", NOON)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 8


def test_the_results_directory_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    results = tmp_path / "results"
    results.symlink_to(tmp_path / "data")
    reserve(results, run_root(results, "", "b", "m"), "r", NOON)
    assert (tmp_path / "data" / "b" / "m" / "r").is_dir()


@pytest.mark.parametrize("place", ["b", "b/m"])
def test_nothing_below_the_results_directory_may_be_a_link(tmp_path: Path, place: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    results = tmp_path / "results"
    link = results / place
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="symbolic link"):
        reserve(results, run_root(results, "", "b", "m"), "r", NOON)
    assert list(elsewhere.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("")
    with pytest.raises(UsageError, match="not a directory"):
        reserve(tmp_path, run_root(tmp_path, "", "b", "m"), "r", NOON)


def test_a_run_that_is_read_may_not_be_a_link_either(tmp_path: Path) -> None:
    root = run_root(tmp_path, "", "b", "m")
    reserve(tmp_path, root, "real", NOON)
    (root / "link").symlink_to(root / "real")
    assert run_directory(tmp_path, root, "real") == root / "real"
    with pytest.raises(UsageError, match="symbolic link"):
        run_directory(tmp_path, root, "link")
