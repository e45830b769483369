import errno
import hashlib
import os
from pathlib import Path

import pytest

from ledger import note, sidefile
from ledger.errors import LedgerDamaged, ProofInvalid

CHECKPOINT = note.Checkpoint(note.unsigned_origin(bytes(16)), 7, hashlib.sha256(b"x").digest())
SIGNED = note.format_note(
    note.SignedNote(CHECKPOINT.text, (note.Signature("key", b"abcd", b"signature"),))
)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def test_the_unsigned_checkpoint_has_a_name_that_says_so(ledger: Path) -> None:
    sidefile.write(ledger, CHECKPOINT.text, signed=False)
    assert [p.name for p in ledger.parent.iterdir()] == ["ledger.checkpoint.unsigned"]
    (found,) = sidefile.read(ledger)
    assert found.claim == sidefile.Claim(CHECKPOINT, None)
    assert found.path.read_bytes() == CHECKPOINT.text


def test_the_signed_checkpoint_is_the_note(ledger: Path) -> None:
    sidefile.write(ledger, SIGNED, signed=True)
    assert (ledger.parent / "ledger.checkpoint").read_bytes() == SIGNED
    (found,) = sidefile.read(ledger)
    assert found.claim.checkpoint == CHECKPOINT
    assert found.claim.signed == note.parse_note(SIGNED)


def test_a_new_checkpoint_replaces_the_old_one_whole(ledger: Path) -> None:
    sidefile.write(ledger, CHECKPOINT.text, signed=False)
    longer = note.Checkpoint(CHECKPOINT.origin, 10**9, CHECKPOINT.root)
    sidefile.write(ledger, longer.text, signed=False)
    assert [f.claim.checkpoint.size for f in sidefile.read(ledger)] == [10**9]
    assert len(list(ledger.parent.iterdir())) == 1


def test_without_a_side_file_there_is_nothing_to_compare(ledger: Path) -> None:
    assert sidefile.read(ledger) == []


def test_both_kinds_are_read(ledger: Path) -> None:
    sidefile.write(ledger, CHECKPOINT.text, signed=False)
    sidefile.write(ledger, SIGNED, signed=True)
    assert len(sidefile.read(ledger)) == 2


@pytest.mark.parametrize(
    "data", [b"", b"x", CHECKPOINT.text[:-1], CHECKPOINT.text + b"\n", SIGNED[:-2], b"a\n" * 10**6]
)
def test_a_side_file_that_is_no_checkpoint_is_damage_and_named(ledger: Path, data: bytes) -> None:
    (ledger.parent / "ledger.checkpoint.unsigned").write_bytes(data)
    with pytest.raises(LedgerDamaged, match=r"ledger\.checkpoint\.unsigned"):
        sidefile.read(ledger)
    with pytest.raises(ProofInvalid):
        sidefile.parse(data)


def test_a_side_file_that_is_a_pipe_is_not_waited_for(ledger: Path) -> None:
    os.mkfifo(ledger.parent / "ledger.checkpoint")
    with pytest.raises(LedgerDamaged, match="not a file"):
        sidefile.read(ledger)


def test_an_origin_is_of_one_ledger_and_names_who_signed() -> None:
    unsigned = sidefile.parse(CHECKPOINT.text)
    assert unsigned.is_of(bytes(16))
    assert not unsigned.is_of(bytes(15) + b"x")
    assert not sidefile.parse(SIGNED).is_of(bytes(16))
    signed = note.Checkpoint(sidefile.signed_origin("key", bytes(16)), 7, CHECKPOINT.root)
    by = {
        name: note.format_note(note.SignedNote(signed.text, (note.Signature(name, b"abcd", b"s"),)))
        for name in ("key", "other")
    }
    assert signed.origin == "acl/key/" + "00" * 16
    assert sidefile.parse(by["key"]).is_of(bytes(16))
    assert not sidefile.parse(by["other"]).is_of(bytes(16))
    assert not sidefile.parse(signed.text).is_of(bytes(16))


def test_a_side_file_that_is_a_link_is_not_followed(ledger: Path) -> None:
    (ledger.parent / "elsewhere").write_bytes(CHECKPOINT.text)
    (ledger.parent / "ledger.checkpoint.unsigned").symlink_to(ledger.parent / "elsewhere")
    with pytest.raises(LedgerDamaged, match=r"ledger\.checkpoint\.unsigned"):
        sidefile.read(ledger)


@pytest.mark.parametrize("kind", ["link", "pipe", "empty"])
def test_what_has_the_temporary_name_is_replaced_and_never_written_to(
    ledger: Path, kind: str
) -> None:
    victim = ledger.parent / "victim"
    victim.write_bytes(b"precious")
    new = ledger.parent / "ledger.checkpoint.unsigned.new"
    match kind:
        case "link":
            new.symlink_to(victim)
        case "pipe":
            os.mkfifo(new)
        case _:
            new.write_bytes(b"")
    sidefile.write(ledger, CHECKPOINT.text, signed=False)
    assert victim.read_bytes() == b"precious"
    assert sorted(p.name for p in ledger.parent.iterdir()) == [
        "ledger.checkpoint.unsigned",
        "victim",
    ]
    assert sidefile.read(ledger)[0].claim.checkpoint == CHECKPOINT


def test_a_side_file_that_cannot_be_written_leaves_the_old_one_and_no_other(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidefile.write(ledger, CHECKPOINT.text, signed=False)

    def fail(_file: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"no room: .*ledger.checkpoint.unsigned"):
        sidefile.write(ledger, SIGNED, signed=False)
    assert [p.name for p in ledger.parent.iterdir()] == ["ledger.checkpoint.unsigned"]
    assert sidefile.read(ledger)[0].claim.checkpoint == CHECKPOINT


def test_a_directory_in_the_place_of_a_side_file_is_damage(ledger: Path) -> None:
    ledger.with_suffix(".checkpoint").mkdir()
    with pytest.raises(LedgerDamaged, match="is not a file"):
        sidefile.read(ledger)
