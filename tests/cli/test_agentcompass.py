"""`acl agentcompass-hook`, `acl export -f agentcompass`, and its tree checked."""

import json
from pathlib import Path

import pytest

from acl.main import call
from tests.golden.runs import interrupted


def test_the_hook_command_prints_the_directory_of_the_recipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call(["agentcompass-hook"]) == 0
    printed = Path(capsys.readouterr().out.strip())
    assert "RECIPE_CLASSES" in (printed / "__init__.py").read_text()
    assert call(["agentcompass-hook", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe_dir"] == str(printed)


def test_an_export_verifies_and_a_changed_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted(tmp_path / "run")
    run, out = str(tmp_path / "run"), tmp_path / "out"
    assert call(["export", "-f", "agentcompass", run, str(out)]) == 0
    assert call(["verify", run, "--tree", str(out)]) == 0
    (victim,) = out.glob("details/normal/t1--*/attempt-2/result.json")
    victim.write_text(victim.read_text().replace("false", "true"))
    capsys.readouterr()
    assert call(["verify", run, "--tree", str(out)]) == 4
    assert f"{victim.relative_to(out)} is not what the ledger says" in capsys.readouterr().out
