"""Kills an erasure at each of its system-level steps in turn; run by the test beside it.

For each n: a child erases from a copy of the ledger in directory n, and is killed at its n-th
step, before it or after it. Prints one JSON line per child.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from ledger.store import Ledger
from tests.crash.steps import kill_at


def main(source: Path, folder: Path, moment: str, first: int, stride: int) -> None:
    n = first
    finished = False
    while not finished:
        place = folder / f"{moment}-{n}"
        shutil.copytree(source, place)
        child = os.fork()
        if child == 0:
            kill_at(n, moment)
            with Ledger.open(place, amends=True) as ledger:
                ledger.erase([5], reason="asked to")
                ledger.checkpoint()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        finished = status == 0
        print(json.dumps({"folder": str(place), "finished": finished}), flush=True)
        n += stride


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
