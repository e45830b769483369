"""A published log held against its ledger."""

import os
import shutil
from pathlib import Path

import pytest

from exporters.check import check_tree
from exporters.tiles import publish
from ledger import LedgerView, fold, note
from ledger.memory import Memory
from ledger.store import Ledger
from tests.signed_ledgers import LAB, OTHER, SAME_NAME, make


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk():
    """Hundreds of small files are written durably; no test here asks what a power cut leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "sync", lambda: None)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make(tmp_path_factory.mktemp("run") / "r", tasks=44, every=40, answer="a" * 5000)


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    directory = tmp_path_factory.mktemp("log") / "t"
    published(run, directory)
    return directory


@pytest.fixture
def target(whole, tmp_path):
    return Path(shutil.copytree(whole, tmp_path / "t"))


def published(run, directory):
    with LedgerView.open(run) as view:
        return publish(view, directory)


def check(run, directory):
    with LedgerView.open(run) as view:
        found = check_tree(
            lambda size: fold(view.events(0, size)),
            view,
            directory,
            ledger_id=view.ledger_id.hex(),
            size=view.size,
        )
        return [(one.code, one.severity) for one in found]


def test_a_log_as_it_was_published_has_no_findings(run, target):
    assert check(run, target) == []


@pytest.mark.parametrize("kind", ["tile/0", "tile/1", "tile/entries", "body", "blob"])
def test_a_changed_file_is_found(run, target, kind):
    path = next(path for path in sorted((target / kind).rglob("*")) if path.is_file())
    data = path.read_bytes()
    for changed in (bytes([data[0] ^ 1]) + data[1:], data[:-1], data + b"x", b""):
        path.write_bytes(changed)
        assert check(run, target) == [("tree_differs", "broken")]


@pytest.mark.parametrize("kind", ["tile/0", "tile/1", "tile/entries"])
def test_a_missing_tile_is_found(run, target, kind):
    next(path for path in sorted((target / kind).rglob("*")) if path.is_file()).unlink()
    assert check(run, target) == [("tree_missing", "broken")]


def test_bodies_and_pieces_may_be_left_out_and_that_is_told(run, target):
    for kind in ("body", "blob"):
        next((target / kind).iterdir()).unlink()
    assert check(run, target) == [("tree_absent", "unproven")]


@pytest.mark.parametrize(
    "path", ["body/" + "0" * 64, "tile/0/000.p/0", "tile/9/000", "x", "tile/0/005", "blob/x"]
)
def test_a_file_of_no_event_is_found(run, target, path):
    (target / path).parent.mkdir(parents=True, exist_ok=True)
    (target / path).write_bytes(b"x")
    assert check(run, target) == [("tree_extra", "broken")]


def test_tiles_of_an_earlier_checkpoint_may_stand_beside_the_present_ones(run, target):
    entries = (target / "tile/entries/000").read_bytes()
    with LedgerView.open(run) as view:
        narrow = sum(2 + len(view.raw(seq)[0]) for seq in range(100))
        hashes = b"".join(view.event(256 + n).leaf for n in range(9))
    for path, earlier in (
        ("tile/0/001.p/9", hashes),
        ("tile/entries/000.p/100", entries[:narrow]),
    ):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(earlier)
        assert check(run, target) == []
        for wrong in (earlier[:-1] + b"x", earlier + b"x", b""):
            (target / path).write_bytes(wrong)
            assert check(run, target) == [("tree_differs", "broken")]
        (target / path).write_bytes(earlier)


def test_a_signature_that_the_ledger_does_not_hold_is_told(run, target):
    path = target / "checkpoint"
    signed = note.parse_note(path.read_bytes())
    forged = SAME_NAME.sign(signed.text)
    for line in (
        note.Signature("lab.example", LAB.key_id, forged),
        note.Signature("lab.example", SAME_NAME.key_id, forged),
    ):
        path.write_bytes(note.format_note(note.SignedNote(signed.text, (line,))))
        assert check(run, target) == [("tree_signature", "unproven")]


def test_a_checkpoint_that_is_not_signed_by_whom_its_origin_names_is_found(run, target):
    path = target / "checkpoint"
    signed = note.parse_note(path.read_bytes())
    other = signed.text.replace(b"acl/lab.example/", b"acl/other.example/")
    path.write_bytes(signed.text)
    assert check(run, target) == [("tree_differs", "broken")]
    path.write_bytes(note.sign(other, [LAB]))
    assert check(run, target) == [("tree_differs", "broken")]
    path.write_bytes(note.sign(other, [OTHER]))
    assert check(run, target) == [("tree_signature", "unproven")]


def test_a_log_without_its_checkpoint_is_no_log(run, target):
    (target / "checkpoint").unlink()
    assert check(run, target) == [("tree_manifest", "broken")]
    (target / "checkpoint").write_text("x\n")
    assert check(run, target) == [("tree_manifest", "broken")]


def test_the_log_of_another_ledger_another_history_or_a_longer_one_is_found(tmp_path):
    run = make(tmp_path / "r", tasks=6)
    for name, other, code in (
        ("a", make(tmp_path / "a", tasks=6, answer="43"), "tree_root"),
        ("b", make(tmp_path / "b", tasks=6, signers=(OTHER,), answer="43"), "tree_root"),
    ):
        published(other, tmp_path / f"t{name}")
        assert check(run, tmp_path / f"t{name}") == [(code, "broken")]
    short = make(tmp_path / "s", tasks=6, seal=False)
    published(run, tmp_path / "tr")
    assert check(short, tmp_path / "tr") == [("tree_ledger", "broken")]
    text = (tmp_path / "tr" / "checkpoint").read_text()
    (tmp_path / "tr" / "checkpoint").write_text(text.replace("lab.example/0", "lab.example/1"))
    assert check(run, tmp_path / "tr") == [("tree_ledger", "broken")]


def test_what_was_erased_and_is_still_published_is_told(tmp_path):
    run, target = make(tmp_path / "r", tasks=2), tmp_path / "t"
    published(run, target)
    with Ledger.open(run, memory=Memory(run / "memory"), amends=True) as ledger:
        ledger.erase([5], reason="asked for")
        ledger.checkpoint(LAB)
    assert check(run, target) == [("tree_erased", "note"), ("tree_older", "note")]
    published(run, target)
    assert check(run, target) == []


def test_a_log_that_was_not_published_again_is_told_as_older(tmp_path):
    run, target = make(tmp_path / "r", tasks=4, every=3, seal=False), tmp_path / "t"
    published(run, target)
    assert check(run, target) == [("tree_older", "note")]
