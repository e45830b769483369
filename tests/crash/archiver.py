"""Kills a program that archives after each of its steps in turn; run by the tests beside it.

For each n: a child archives a run in directory n and is killed after its n-th step. Prints one JSON
line per child: its directory, and whether it came to its end.
"""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from exporters.archives import archive
from tests.archive_runs import shot, write

# Calls through which files are changed.
STEPS = frozenset({"fsync", "rename", "write", "mkdir", "unlink", "rmdir"})


def main(folder: Path) -> None:
    earlier, run = write(folder / "earlier", run_id="r0"), write(folder / "run")
    snapshots = shot(earlier), shot(run)
    n = 0
    finished = False
    while not finished:
        artifacts = folder / str(n) / "artifacts"
        archive(artifacts, snapshots[0])
        child = os.fork()
        if child == 0:
            kill_after(n)
            archive(artifacts, snapshots[1])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        finished = status == 0
        print(json.dumps({"artifacts": str(artifacts), "finished": finished}), flush=True)
        n += 1


def kill_after(n: int) -> None:
    left = [n]

    def count(_frame: FrameType, event: str, argument: object) -> None:
        if event == "c_return" and getattr(argument, "__name__", "") in STEPS:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
