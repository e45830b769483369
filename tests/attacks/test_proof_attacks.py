"""Each attack on a proof file is refused, or accepted, as documented."""

from pathlib import Path

import pytest

from ledger import LedgerView, sidefile
from ledger.errors import ProofInvalid
from ledger.proof import checking, consistency, fork, parse_fork
from tests.attacks.attack import Scene, copy_scene, set_up
from tests.attacks.forging import certify
from tests.attacks.on_history import THIEF
from tests.attacks.on_history import fork as forked
from tests.attacks.on_proofs import PROOF_ATTACKS, ProofAttack, answer, honest
from tests.attacks.runs import LAB


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return set_up(tmp_path_factory.mktemp("honest") / "sealed", "sealed")


def test_an_honest_proof_is_accepted(scene: Scene) -> None:
    assert answer(honest(scene), with_key=False) == "accepted"
    assert answer(honest(scene), with_key=True) == "accepted"


@pytest.mark.parametrize("attack", PROOF_ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_on_a_proof_is_answered_as_documented(scene: Scene, attack: ProofAttack) -> None:
    data = attack.make(scene)
    assert answer(data, with_key=False) == attack.alone
    assert answer(data, with_key=True) == attack.key


def test_every_flipped_bit_of_a_proof_is_refused_by_who_has_the_key(scene: Scene) -> None:
    data = honest(scene)
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        assert answer(bytes(flipped), with_key=True) == "refused", place


def test_two_histories_signed_by_one_key_are_proof_against_it(scene: Scene, tmp_path: Path) -> None:
    """A third party checks the report with the key alone."""
    second = copy_scene(scene, tmp_path)
    forked(second)
    with LedgerView.open(second.run) as view:
        with pytest.raises(ProofInvalid):
            consistency(view, scene.kept, sidefile.paths(second.path)[0].read_bytes())
        report = fork(view, scene.kept, sidefile.paths(second.path)[0].read_bytes())
    found = checking.check_fork(parse_fork(report), checking.Trust([LAB.verifier]))
    assert [key.name for key in found.both] == [LAB.name]
    assert found.old.root != found.new.root


def test_a_history_that_somebody_else_signed_is_no_proof_against_the_lab(
    scene: Scene, tmp_path: Path
) -> None:
    second = copy_scene(scene, tmp_path)
    forked(second)
    certify(second.path, THIEF)
    theirs = sidefile.paths(second.path)[0].read_bytes()
    with LedgerView.open(second.run) as view:
        report = parse_fork(fork(view, scene.kept, theirs))
    with pytest.raises(ProofInvalid):
        checking.check_fork(report, checking.Trust([LAB.verifier]))
