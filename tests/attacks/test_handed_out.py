"""What is handed out beside a ledger is seen as documented, with a key and without one."""

from pathlib import Path

import pytest

from tests.attacks.attack import Scene, copy_scene, set_up
from tests.attacks.on_handed_out import HANDED_OUT, HandedOut


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return set_up(tmp_path_factory.mktemp("honest") / "sealed", "sealed")


@pytest.mark.parametrize("attack", HANDED_OUT, ids=lambda attack: attack.name)
@pytest.mark.parametrize("with_key", [False, True], ids=["alone", "key"])
def test_what_is_handed_out_is_seen_as_documented(
    scene: Scene, tmp_path: Path, attack: HandedOut, with_key: bool
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    seen = attack.look(copy_scene(scene, tmp_path / "copy"), home, with_key)
    assert seen == (attack.key if with_key else attack.alone)
