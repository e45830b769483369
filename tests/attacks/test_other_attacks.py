"""Each attack on a results directory, or on a witness, is seen as documented."""

from pathlib import Path

import pytest

from ledger import note, sidefile
from ledger.policy import parse_policy
from ledger.verify import verify
from tests.attacks.attack import copy_scene, set_up
from tests.attacks.forging import notes, put_beside, replace_notes
from tests.attacks.on_history import fork
from tests.attacks.on_registry import (
    COSIGNER,
    REGISTRY_ATTACKS,
    WITNESS_ATTACKS,
    RegistryAttack,
    Results,
    WitnessAttack,
    copy_results,
    seen,
    set_up_results,
    witness,
)
from tests.attacks.runs import LAB


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return set_up_results(tmp_path_factory.mktemp("honest"))


def test_an_audit_of_honest_results_finds_nothing(results: Results) -> None:
    assert seen(results, with_kept=False) == "–"
    assert seen(results, with_kept=True) == "–"


@pytest.mark.parametrize("attack", REGISTRY_ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_on_a_results_directory_is_seen_as_documented(
    results: Results, tmp_path: Path, attack: RegistryAttack
) -> None:
    spoilt = copy_results(results, tmp_path / "spoilt")
    attack.act(spoilt)
    told = seen(spoilt, with_kept=False), seen(spoilt, with_kept=True)
    assert told == (attack.alone, attack.kept)


@pytest.mark.parametrize("attack", WITNESS_ATTACKS, ids=lambda attack: attack.name)
def test_a_witness_answers_as_documented(tmp_path: Path, attack: WitnessAttack) -> None:
    asked = witness(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    status = asked.add_checkpoint(attack.body()).status
    assert ("signed" if status == 200 else "refused") == attack.answer
    if attack.answer == "refused":
        after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert after == before


def test_a_second_history_that_no_witness_signed_does_not_meet_the_policy(tmp_path: Path) -> None:
    """What the witness refuses to sign is not proven to who asks for its signature."""
    policy = parse_policy(
        f"log {LAB.verifier.encode()}\nwitness w {COSIGNER.verifier.encode()}\nquorum w\n".encode()
    )
    honest = set_up(tmp_path / "honest", "sealed")
    scene = copy_scene(honest, tmp_path / "copy")
    held = notes(scene.path)
    signed = note.parse_note(held[-1])
    line = note.Signature(
        COSIGNER.name, COSIGNER.verifier.key_id, COSIGNER.cosign(signed.text, 1_700_000_000)
    )
    cosigned = note.format_note(note.SignedNote(signed.text, (*signed.signatures, line)))
    replace_notes(scene.path, [*held, cosigned])
    put_beside(scene.path, cosigned)
    assert sidefile.parse(cosigned).is_of(bytes(range(1, 17)))
    found = list(verify(scene.run, policy=policy))
    assert not [one for one in found if one.severity == "broken" or one.code == "policy"]
    fork(scene)
    assert "policy" in {one.code for one in verify(scene.run, policy=policy)}
