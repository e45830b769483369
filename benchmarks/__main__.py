"""Runs all benchmarks, one after another: `python -m benchmarks [--quick] [--peers-python PYTHON]`.

Each is a process of its own and leaves its report in `build/bench/NAME.json`; all tables are
printed in the end. Ends with 1 if one of them failed to run, whatever the figures say.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.subjects import BUILD

ALL: Final = ("record", "size", "verify", "replay", "export", "reuse", "startup")
WITH_PEERS: Final = frozenset({"record", "size", "reuse"})


def main() -> int:
    """Run them, show what they found; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}")
    parser.add_argument("--quick", action="store_true", help="some seconds for each")
    parser.add_argument("--peers-python", type=Path, help="a Python 3.12 or newer for the peers")
    chosen = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    tables, failed = [], []
    for name in chosen.names or ALL:
        print(f"-- {name}", file=sys.stderr)
        done = subprocess.run(
            _command(name, chosen), stdout=subprocess.PIPE, text=True, check=False
        )
        tables.append(done.stdout)
        if done.returncode:
            failed.append(name)
    print("\n".join(tables))
    if failed:
        print(f"failed to run: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _command(name: str, chosen: argparse.Namespace) -> list[str | Path]:
    command: list[str | Path] = [sys.executable, "-m", f"benchmarks.{name}"]
    command += ["--json", BUILD / f"{name}.json"]
    if chosen.quick:
        command.append("--quick")
    if chosen.peers_python is not None and name in WITH_PEERS:
        command += ["--peers-python", chosen.peers_python]
    return command


if __name__ == "__main__":
    sys.exit(main())
