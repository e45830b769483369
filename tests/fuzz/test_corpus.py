"""What the fuzzers found worth keeping, and every crash that there ever was, holds."""

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import bounds
from tests.fuzz.__main__ import CORPUS, MOST_KEPT
from tests.fuzz.bounds import memory_folder
from tests.fuzz.engine import Fuzzer, Runner
from tests.fuzz.targets import targets
from tests.fuzz.texts import edit_json, expand
from tests.fuzz.trees import Odd, decode, edited, encode, reduced

# Of the rest there are thousands of executions in `make crash`.
MOST_REPLAYED = 3
CRASHES = sorted(CORPUS.glob("*/crash-*"))


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that waits for no disk: every run here is synced."""
    with memory_folder() as folder:
        # A runner sets them, and nobody else is to find what it set.
        for variable in ("TMPDIR", "ACL_STATE_DIR"):
            monkeypatch.setenv(variable, folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)


@pytest.mark.parametrize("name", targets())
def test_the_corpus_holds(name: str, memory: Path) -> None:
    target = targets()[name]
    runner = Runner(target, memory, watches=False)
    # The longest are edited most.
    kept = sorted((CORPUS / name).glob("[0-9]*"))[-MOST_REPLAYED:]
    inputs = [*list(target.seeds())[:1], *(path.read_bytes() for path in kept)]
    for data in inputs:
        finding = runner.run(data)
        assert finding is None, finding.told


@pytest.mark.parametrize("path", CRASHES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_once_a_crash_holds(path: Path, memory: Path) -> None:
    finding = Runner(targets()[path.parent.name], memory, watches=False).run(path.read_bytes())
    assert finding is None, finding.told


def test_the_corpus_is_small_and_of_targets_that_there_are() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < len(targets()) * MOST_KEPT
    assert {path.parent.name for path in files} <= {*targets()}


def test_what_does_not_hold_is_a_finding_and_an_error_of_ours_is_none(memory: Path) -> None:
    class Failing(type(targets()["bundle"])):  # type: ignore[misc]
        def run(self, data: bytes, home: Path) -> list[str]:
            match data:
                case b"outside":
                    (home.parent / "escaped").write_text("x")
                case b"link":
                    (home / "link").symlink_to("victim")
                    (home / "link" / "precious").write_text("x")
                case b"bug":
                    raise KeyError("x")
            return ["fine"]

    runner = Runner(Failing(), memory, watches=False)
    kinds = {data: runner.run(data) for data in (b"fine", b"outside", b"link", b"bug")}
    assert [data for data, finding in kinds.items() if finding is None] == [b"fine"]
    assert runner.run(b"bug").kind == kinds[b"bug"].kind  # type: ignore[union-attr]


def test_however_long_what_is_known_takes_new_inputs_are_made(memory: Path, tmp_path: Path) -> None:
    target = targets()["bundle"]
    fuzzer = Fuzzer(target, memory, tmp_path, seed=1)
    fuzzer.fuzz(target.seeds(), seconds=0.0)
    assert fuzzer.status.executions == len(list(target.seeds())) + 1
    assert fuzzer.status.kinds == {}


def test_what_waits_for_ever_is_beyond_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "WAITING_SECONDS", 0.1)
    with pytest.raises(bounds.BeyondBounds, match="waits"), bounds.bounded_time():
        threading.Event().wait()


def test_what_computes_or_would_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "WAITING_SECONDS", 0.1)
    began = time.thread_time()
    with bounds.bounded_time():
        while time.thread_time() < began + 0.5:
            pass


def test_edits_change_what_they_name_and_nothing_else() -> None:
    tree = {"a.json": b'{"x": [1, 2]}', "b": b"b"}
    assert edited(tree, ["json", "a.json", None, "set", ["x", 1], ["NaN"]])["a.json"] == (
        b'{"x": [1, NaN]}'
    )
    assert edited(tree, ["json", "a.json", None, "cut", ["x", 0]])["a.json"] == b'{"x": [2]}'
    assert edited(tree, ["json", "a.json", None, "set", ["y"], ["1"]]) == tree
    assert edited(tree, ["splice", "b", 0, 1, "\xff"])["b"] == b"\xff"
    assert edited(tree, ["drop", "b"]) == {"a.json": tree["a.json"]}
    assert isinstance(edited(tree, ["odd", "b", "pipe", ""])["b"], Odd)
    added = edit_json(b'{"x": 1}', "add", [], ['"x"'], [["[", 3], ["]", 3]])
    assert added == b'{"x": [[[]]], "x": 1}'
    assert expand(["a", ["b", 3]]) == "abbb"


def test_a_recipe_is_reduced_to_fewer_edits() -> None:
    recipe = encode("base", [["drop", name] for name in "abc"])
    assert decode(recipe) == ("base", [["drop", "a"], ["drop", "b"], ["drop", "c"]])
    assert all(len(decode(one)[1]) < 3 for one in reduced(recipe))
