"""Each attack of the catalogue is seen as documented, by each kind of evidence, and no better."""

from pathlib import Path

import pytest

from acl.main import call
from tests.attacks.attack import (
    EVIDENCE,
    STATES,
    Attack,
    Scene,
    State,
    content,
    copy_scene,
    judged,
    look,
    set_up,
)
from tests.attacks.catalogue import ATTACKS

CASES = [
    pytest.param(attack, state, id=f"{attack.name}-{state}")
    for attack in ATTACKS
    for state in attack.states
]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[State, Scene]:
    home = tmp_path_factory.mktemp("honest")
    return {state: set_up(home / state, state) for state in STATES}


@pytest.mark.parametrize("state", STATES)
def test_an_honest_run_is_proven_by_each_kind_of_evidence(
    scenes: dict[State, Scene], state: State
) -> None:
    scene = scenes[state]
    proven = {}
    for evidence in EVIDENCE:
        found = look(scene, evidence, by_command=evidence == "alone")
        assert isinstance(found, list)
        assert not [one for one in found if one.severity == "broken"]
        proven[evidence] = {one.code for one in found if one.severity == "note"}
    assert "metrics_equal" in proven["alone"]
    assert "signed" in proven["key"]
    assert "outside_checkpoint" in proven["checkpoint"]
    assert all(("sealed" in codes) is (state == "sealed") for codes in proven.values())


@pytest.mark.parametrize(("attack", "state"), CASES)
def test_an_attack_is_seen_as_documented(
    scenes: dict[State, Scene], tmp_path: Path, attack: Attack, state: State
) -> None:
    scene = copy_scene(scenes[state], tmp_path)
    attack.act(scene)
    seen = {}
    for evidence in EVIDENCE:
        honest = look(scenes[state], evidence, by_command=attack.by_command)
        found = look(scene, evidence, by_command=attack.by_command)
        seen[evidence] = judged(found, honest)
        if evidence == "alone" and attack.codes:
            assert isinstance(found, list)
            assert set(attack.codes) <= {one.code for one in found}
    assert seen == {evidence: attack.seen(evidence, state) for evidence in EVIDENCE}
    if attack.changes_nothing(state):
        assert content(scene.run) == content(scenes[state].run)


@pytest.mark.parametrize(("attack", "state"), CASES)
def test_the_command_says_the_same_with_its_exit_status(
    scenes: dict[State, Scene],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    attack: Attack,
    state: State,
) -> None:
    scene = copy_scene(scenes[state], tmp_path)
    attack.act(scene)
    status = call(["verify", str(scene.run)])
    said = capsys.readouterr()
    match attack.seen("alone", state):
        case "broken":
            assert status == 4
            assert "BROKEN" in said.out or "not what was claimed" in said.out
        case "refused":
            assert status in (2, 3, 4)
            assert said.err
        case "unproven" | "told" | "unseen":
            assert status == 0
            assert said.out.startswith("OK")


def test_every_attack_has_a_name_of_its_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert len({attack.does for attack in ATTACKS}) == len(ATTACKS)


def test_an_attack_that_changes_nothing_is_not_counted_as_undetected() -> None:
    for attack in ATTACKS:
        for state in attack.states:
            if attack.changes_nothing(state):
                assert {attack.seen(evidence, state) for evidence in EVIDENCE} == {"unseen"}
