"""A run on a small disk: `python -m tests.crash.filling DISK KEPT ACKS PATIENCE [SECONDS]`.

DISK/ballast makes it smaller still. SECONDS after the ledger's first complaint that file is removed.
What was said of the disk goes to KEPT/said, and all of DISK to KEPT/disk in the end, as the disk is
gone with this program's namespace.
"""

import shutil
import sys
import threading
from pathlib import Path

from tests.crash.running import main_run, tell_acknowledgements


def main(disk: str, kept: str, acks: str, patience: str, seconds: str = "") -> int:
    tell_acknowledgements(Path(acks))
    said: list[str] = []
    ballast = Path(disk, "ballast")

    def alarm(line: str) -> None:
        said.append(line)
        # The ledger's, not an export's: without it there would be room before the ledger needs any.
        full = [one for one in said if "/one/ledger.sqlite: " in one and "disk is full" in one]
        if seconds and full == [line]:
            threading.Timer(float(seconds), ballast.unlink).start()

    status = main_run(Path(disk, "results"), "one", patience=float(patience), alarm=alarm)
    Path(kept, "said").write_text("".join(f"{line}\n" for line in said))
    shutil.copytree(disk, Path(kept, "disk"), ignore=shutil.ignore_patterns("lost+found"))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
