"""Begins a run below a directory, and dies or stops where it is told to: a program for tests.

Usage: registered_run.py RESULTS_DIR WHERE. Prints a line when it is there.
"""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

from ledger.store import Ledger
from runtime import record
from runtime.redact import Redactor
from runtime.registry import Registration, Registry, writing
from runtime.surroundings import Surroundings
from tests.events_of import created


def die(*_: object) -> NoReturn:
    print("dying", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def hold_the_lock(results: Path) -> None:
    file = os.open(results / "registry.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    print("holding", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


def enter_at_once(results: Path, count: int) -> None:
    """Enter `count` runs, each from a process of its own, all from the same moment on."""
    gate, opener = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(opener)
                directory = results / "bench" / f"run {number}"
                directory.mkdir(parents=True)
                with Ledger.create(directory) as ledger:
                    registration = Registration(Registry(results), directory, ledger.ledger_id)
                os.read(gate, 1)
                registration.open(created(f"run {number}"), Redactor({}), 3)
                status = int(registration.fault is not None)
            finally:
                os._exit(status)
        children.append(child)
    os.close(gate)
    os.close(opener)
    sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))


def run(results: Path) -> None:
    around = Surroundings(environ={})
    with record(results, benchmark="mine", model="m", surroundings=around) as recording:
        for task in ("a", "b"):
            with recording.attempt(task) as one:
                one.result(1)
                one.evaluation(correct=True)


def main() -> None:
    results, where = Path(sys.argv[1]), sys.argv[2]
    if where == "holding":
        hold_the_lock(results)
        time.sleep(60)
    elif where.endswith("at once"):
        enter_at_once(results, int(where.split()[0]))
    elif where == "before-entry":
        Registration.open = die  # type: ignore[assignment]
    elif where == "before-words-are-taken-back":
        writing.take_back = die
    elif where == "before-sealed-entry":
        Registration.seal = die  # type: ignore[assignment]
    run(results)


main()
