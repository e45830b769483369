"""A program that archives may be killed at any of its steps."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from exporters.archives import archive
from tests.archive_runs import shot, write

ROOT = Path(__file__).resolve().parents[2]


def index(artifacts: Path) -> list[dict]:
    return yaml.safe_load((artifacts / "index.yaml").read_text())["runs"]


def check(artifacts: Path) -> None:
    """Every archive is whole, listed once, and nothing else is left but the lock."""
    archives = sorted(path.name for path in (artifacts / "archives").iterdir())
    assert archives == [entry["id"] for entry in index(artifacts)]
    for name in archives:
        found = {path.name for path in (artifacts / "archives" / name).iterdir()}
        assert found == {"metadata.yaml", "config.yaml", "scripts"}
    assert {path.name for path in artifacts.iterdir()} == {
        *(".archive.lock", "archives", "index.yaml")
    }


def test_wherever_it_is_killed_the_next_one_puts_all_in_order(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.archiver", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    killed = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(killed) > 20
    assert killed[-1]["finished"]
    run, third = shot(tmp_path / "run"), shot(write(tmp_path / "third", run_id="r3"))
    for place, one in enumerate(killed):
        artifacts = Path(one["artifacts"])
        # Whoever reads in between finds an index that is whole.
        assert [entry["id"] for entry in index(artifacts)][:1] == ["run_001"]
        if place % 2:
            # Somebody else comes by first: the run is not lost, and takes the next number if need be.
            archive(artifacts, third)
        archived = archive(artifacts, run)
        check(artifacts)
        assert archived.id in {"run_002", "run_003"}
        assert len(index(artifacts)) == 2 + place % 2
