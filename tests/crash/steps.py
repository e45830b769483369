"""Kills a writer at each of its system-level steps in turn; run by the tests beside it.

For each n: a child makes a ledger in directory n, writes, checkpoints and seals, and is killed at
its n-th step, before it or after it. Prints one JSON line per child: what was acknowledged to it.
"""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say

# Calls through which a writer changes files.
STEPS = frozenset(
    {"execute", "executemany", "fsync", "rename", "write", "chmod", "open", "ftruncate", "close"}
)


def main(folder: Path, moment: str, first: int, stride: int) -> None:
    n = first
    finished = False
    while not finished:
        place = folder / f"{moment}-{n}"
        place.mkdir()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            kill_at(n, moment)
            work(place / "ledger.sqlite", writing)
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read().decode().split()
        finished = status == 0
        print(json.dumps({"folder": str(place), "finished": finished, "told": told}), flush=True)
        n += stride


def kill_at(n: int, moment: str) -> None:
    left = [n]
    when = "c_call" if moment == "before" else "c_return"

    def count(_frame: FrameType, event: str, argument: object) -> None:
        if event == when and getattr(argument, "__name__", "") in STEPS:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def work(path: Path, told: int) -> None:
    def tell(word: str) -> None:
        os.write(told, f"{word}\n".encode())

    with Ledger.create(path) as ledger:
        tell("0")
        ledger.append(*say.opening("t"))
        tell("3")
        ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 9000)))
        tell("9")
        ledger.checkpoint()
        ledger.append(ev.SummaryStarted())
        tell("10")
        ledger.seal()
        tell("11")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
