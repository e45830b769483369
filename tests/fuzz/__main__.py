"""Fuzz all targets, or those that are named; exit 1 if anything was found.

`python -m tests.fuzz [--seconds N] [--target NAME]... [--seed S] [--distil]`. Each target runs in
a process of its own, which may die: what it ran last is then the finding. Inputs that reach
something new stay in build/fuzz/<target>/corpus, findings in build/fuzz/<target>. `--distil`
writes the smallest set of both corpora that reaches as much to tests/fuzz/corpus.
"""

import argparse
import functools
import importlib.metadata
import json
import logging
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.bounds import WAITING_SECONDS, limit_memory, memory_folder
from tests.fuzz.engine import Finding, Fuzzer, Status, distil
from tests.fuzz.reached import ROOT
from tests.fuzz.target import Target
from tests.fuzz.targets import targets

CORPUS = Path(__file__).with_name("corpus")
OUT = ROOT / "build" / "fuzz"
# Beyond what a child sees itself: code that never comes back to Python.
_STUCK_SECONDS = 20 * WAITING_SECONDS
MOST_KEPT = 20_000
"""Bytes of corpus that a target keeps in the repository."""


def inputs(target: Target) -> list[bytes]:
    """Seeds, the corpus of the repository, what earlier runs added."""
    known = [CORPUS / target.name, OUT / target.name / "corpus"]
    files = [path for folder in known if folder.is_dir() for path in sorted(folder.iterdir())]
    return [*target.seeds(), *(path.read_bytes() for path in files)]


def child(target: Target, seconds: float, seed: int) -> None:
    """Fuzz in this process."""
    logging.disable()
    # A quarter of an import, and the same each time.
    importlib.metadata.version = functools.cache(importlib.metadata.version)
    with memory_folder() as folder:
        fuzzer = Fuzzer(target, Path(folder), OUT / target.name, seed)
        known = inputs(target)
        limit_memory()
        fuzzer.fuzz(known, seconds)


def fuzz(target: Target, seconds: float, seed: int) -> bool:
    """Fuzz in a process of its own, again if that dies; tell what was found, and whether."""
    out = OUT / target.name
    out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + seconds
    total = Status()
    while (left := until - time.monotonic()) > 0:
        for name in ("status.json", "current"):
            (out / name).unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.fuzz", "--child", "--target", target.name]
        command += ["--seconds", str(left), "--seed", str(seed)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        died = _wait(process, out / "current")
        _add(total, out / "status.json")
        if not died:
            break
        if not (out / "current").exists():
            raise SystemExit(f"the fuzzer of {target.name} did not begin")
        finding = Finding(died, "the process died", (out / "current").read_bytes())
        total.kinds[died] = finding.name
        (out / finding.name).write_bytes(finding.data)
        seed += 1
    found = "".join(f"\n    {name}  {kind}" for kind, name in total.kinds.items())
    print(
        f"{target.name:14} {total.executions:8} executions {total.new:5} new of {total.corpus:5}"
        f" {total.lines:6} lines  {len(total.kinds)} findings{found}",
        flush=True,
    )
    return bool(total.kinds)


def _wait(process: subprocess.Popen[bytes], current: Path) -> str:
    """Wait for a child; say how it died, if it did."""
    while True:
        try:
            status = process.wait(5)
        except subprocess.TimeoutExpired:
            if current.exists() and time.time() - current.stat().st_mtime > _STUCK_SECONDS:
                process.kill()
                process.wait()
                return "never came back to Python"
            continue
        return "" if status == 0 else f"ended with status {status}"


def _add(total: Status, file: Path) -> None:
    if not file.exists():
        return
    told = Status(**json.loads(file.read_text()))
    total.executions += told.executions
    total.new += told.new
    total.corpus, total.lines = told.corpus, max(total.lines, told.lines)
    total.kinds |= told.kinds


def keep(target: Target) -> None:
    """Write the distilled corpus to the repository; what was once a crash stays."""
    folder = CORPUS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    with memory_folder() as scratch:
        seeds = set(target.seeds())
        kept = [one for one in distil(target, Path(scratch), inputs(target)) if one not in seeds]
    for path in folder.iterdir():
        if not path.name.startswith("crash-"):
            path.unlink()
    held = 0
    for number, data in enumerate(kept):
        held += len(data)
        if held <= MOST_KEPT:
            (folder / f"{number:04}").write_bytes(data)
    print(f"{target.name:14} {len(kept)} inputs, {held} bytes", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of new inputs, for each target"
    )
    parser.add_argument("--target", action="append", choices=[*targets()])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--distil", action="store_true", help="renew the corpus in the repository")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    chosen = [one for name, one in targets().items() if name in (given.target or [*targets()])]
    if given.child:
        child(chosen[0], given.seconds, given.seed)
        return 0
    if given.distil:
        for target in chosen:
            keep(target)
        return 0
    print(f"seed {given.seed}", flush=True)
    found = [fuzz(target, given.seconds, given.seed) for target in chosen]
    return int(any(found))


if __name__ == "__main__":
    sys.exit(main())
