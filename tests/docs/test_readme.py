"""Every command of the README is executed, in order, in one empty directory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from acl.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL)
LINES = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines() if line]


def test_every_command_line_of_the_readme_works(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for line in LINES:
        if line.startswith("make"):
            continue
        command = ["bash", "-o", "pipefail", "-c", line]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        assert done.stdout.strip(), f"{line} says nothing"


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"[`$] ?make ([a-z-]+)", README)
    assert "demo" in targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_table_of_commands_is_the_command_line() -> None:
    listed = re.findall(r"^\| `acl ([a-z-]+)", README, flags=re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_every_link_of_the_readme_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_request_file_of_the_examples_works(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "acl", "run", "-f", str(ROOT / "examples/request.yaml")]
    done = subprocess.run(
        [*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
