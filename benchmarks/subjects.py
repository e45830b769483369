"""The subjects of a benchmark: each a process of its own, which tells one JSON document."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from benchmarks.peers import environment

BUILD: Final = Path(__file__).resolve().parents[1] / "build" / "bench"
AGENTCOMPASS: Final = "agentcompass==1.0.1"
INSPECT: Final = "inspect-ai==0.3.285"
Told = dict[str, Any]


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory of its own below the build, removed in the end."""
    BUILD.mkdir(parents=True, exist_ok=True)
    place = Path(mkdtemp(dir=BUILD))
    try:
        yield place
    finally:
        shutil.rmtree(place)


def child(command: Iterable[str | Path]) -> Told:
    """Run a subject; what it told on its last line."""
    done = subprocess.run([*command], stdout=subprocess.PIPE, check=True, text=True)
    told: Told = json.loads(done.stdout.splitlines()[-1])
    return told


def module(name: str, *more: str | Path | int) -> Told:
    """Run a module of ours as a subject."""
    return child([sys.executable, "-m", f"benchmarks.{name}", *map(str, more)])


class Peers:
    """The programs beside this one, in environments of their own; none without a Python."""

    def __init__(self, python: Path | None) -> None:
        here = Path(__file__).parent
        self._commands: dict[str, list[str | Path]] = {}
        if python is not None:
            theirs = environment("agentcompass", AGENTCOMPASS, python)
            self._commands["agentcompass"] = [theirs, here / "peer_agentcompass.py"]
            theirs = environment("inspect", INSPECT, python)
            self._commands["inspect"] = [theirs, here / "peer_inspect.py"]
            self._commands["inspect, each"] = self._commands["inspect"]

    def names(self) -> list[str]:
        """Who there is."""
        return [*self._commands]

    def run(self, name: str, payloads: Path, count: int, directory: Path) -> Told:
        """One run of a peer."""
        mode = {"inspect": ["default"], "inspect, each": ["each"]}.get(name, [])
        return child([*self._commands[name], payloads, str(count), directory, *mode])
