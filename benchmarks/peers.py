"""Environments of the programs that are measured beside this one, below `build/peers`."""

import subprocess
from pathlib import Path
from typing import Final

_PEERS: Final = Path(__file__).resolve().parents[1] / "build" / "peers"
_DONE: Final = "requirement.txt"


def environment(name: str, requirement: str, python: Path) -> Path:
    """Return the Python of an environment that holds `requirement`, made with `python` if need be.

    Raises CalledProcessError where it cannot be made.
    """
    place = _PEERS / name
    inside = place / "bin" / "python"
    told = place / _DONE
    if told.exists() and told.read_text(encoding="utf-8") == requirement:
        return inside
    told.unlink(missing_ok=True)
    subprocess.run([python, "-m", "venv", "--clear", place], check=True)
    pip: list[str | Path] = [inside, "-m", "pip", "install", "--quiet", requirement]
    subprocess.run(pip, check=True)
    told.write_text(requirement, encoding="utf-8")
    return inside
