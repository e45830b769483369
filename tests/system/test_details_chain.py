"""A run that is exported, imported, reused and exported again gives one set of numbers."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from acl.main import call

RUN = (
    "run --benchmark acl-repair --harness search --harness-param budget=15"
    " --k 2 --limit 6 --no-export --json"
)


@pytest.fixture
def acl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(words: str, status: int = 0) -> Any:
        capsys.readouterr()
        assert call(words.split()) == status, capsys.readouterr().err
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in words else out

    return run


def numbers(tree: Path) -> Any:
    """The metrics and verdicts of an exported tree."""
    counts = json.loads((tree / ".summary_counts.json").read_text())
    told = {name: counts[name] for name in ("total", "evaluated", "correct", "attempts", "metrics")}
    records = [json.loads(path.read_text()) for path in (tree / "details").iterdir()]
    verdicts = {
        record["task_id"]: {n: a["correct"] for n, a in record["attempts"].items()}
        for record in records
    }
    return told, verdicts


def test_every_way_round_gives_the_same_numbers(acl: Any, tmp_path: Path) -> None:
    first = Path(acl(f"{RUN} --run-id first")["path"])
    acl(f"export {first} a")
    wanted = numbers(tmp_path / "a")

    # The exported files alone, where the run was, are a source of reuse.
    shutil.rmtree(first)
    shutil.copytree(tmp_path / "a", first)
    reused = acl(f"{RUN} --run-id second --reuse-run-id first")
    assert reused["counts"]["reused"] == 6
    acl(f"export {reused['path']} b")
    assert numbers(tmp_path / "b") == wanted
    assert acl(f"verify {reused['path']} --json")["ok"]

    # What was reused comes back from its own export, and can be reused again.
    imported = acl("import b --json")["path"]
    acl(f"export {imported} c")
    acl("diff --trees b c")
    assert acl(f"replay {imported} --json")["equal"]
    again = acl(f"{RUN} --run-id third --reuse-run-id {Path(imported).name}")
    assert again["counts"]["reused"] == 6
    acl(f"export {again['path']} d")
    assert numbers(tmp_path / "d") == wanted
    for run in (reused["path"], imported, again["path"]):
        assert acl(f"replay {run} --json")["equal"]
