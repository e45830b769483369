"""Which checkpoint a proof is made for."""

import pytest

from ledger import note, sidefile
from ledger.errors import ProofInvalid
from ledger.proof.choice import covering
from tests.signed_ledgers import LAB, OTHER

LEDGER = bytes(16)


class Held:
    def __init__(self, *notes):
        self.notes = notes

    def published(self):
        for data in self.notes:
            yield sidefile.parse(data).checkpoint.size, data.decode()


def bare(size):
    return note.Checkpoint(note.unsigned_origin(LEDGER), size, bytes(32)).text


def by(key, size):
    return note.sign(
        note.Checkpoint(sidefile.signed_origin(key.name, LEDGER), size, bytes(32)).text, [key]
    )


def test_the_newest_that_is_large_enough():
    held = Held(by(LAB, 3), by(LAB, 9), by(LAB, 12))
    assert covering(held, 1) == by(LAB, 12)
    assert covering(held, 12) == by(LAB, 12)
    assert covering(held, 13) is None
    assert covering(held, 1, most=11) == by(LAB, 9)


def test_a_signed_one_before_a_newer_one_that_nobody_signed():
    held = Held(bare(3), by(LAB, 9), bare(12))
    assert covering(held, 2) == by(LAB, 9)
    assert covering(held, 10) == bare(12)


def test_of_one_size_the_last():
    held = Held(by(LAB, 9), by(OTHER, 9))
    assert covering(held, 2) == by(OTHER, 9)


def test_one_that_the_same_key_signed_before_a_newer_one_of_another():
    like = note.parse_note(by(LAB, 4))
    held = Held(by(LAB, 9), by(OTHER, 12))
    assert covering(held, 5, like=like) == by(LAB, 9)
    assert covering(held, 10, like=like) == by(OTHER, 12)


def test_none_is_kept():
    assert covering(Held(), 1) is None


def test_what_is_kept_under_another_size_is_refused():
    class Lying(Held):
        def published(self):
            yield 5, by(LAB, 9).decode()

    with pytest.raises(ProofInvalid, match="another size"):
        covering(Lying(), 1)
