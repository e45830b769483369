"""Has one program meet each fault in turn, and checks what is left; run by the tests beside it.

    python -m tests.crash.faults.sweep PLACE PROGRAM... [--part I/N] [--torn]

A process that has everything imported forks for each fault: the child waits until it is traced, does
its work below `PLACE/PROGRAM/area`, a copy of what the program prepared once, and meets the fault; another
child then checks what stands there. With `--torn` the faults are writes that stop half way, for
which the library made of `torn.c` is preloaded. Prints one JSON line for each fault: `found` is
what is wrong, if anything is. What it is about then stays in `PLACE/PROGRAM/kept-N`.
"""

import argparse
import ctypes
import faulthandler
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from ledger.errors import AclError
from tests.crash.faults import tracing
from tests.crash.faults.programs import PROGRAMS
from tests.crash.faults.standing import Ended, Program

# Nothing takes that long on the most loaded machine, unless it waits for ever.
SECONDS = 600
# With this variable set each single look at a file meets a fault, too.
EVERY = "ACL_EVERY_CALL"
TORN = {1: "short", 2: "half, then ENOSPC", 3: "half, then EIO", 4: "half, then SIGKILL"}


def quietly(work: Callable[..., None], *given: Any) -> None:
    """Work in a child whose words are not ours to print."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    work(*given)


@dataclass
class Child:
    """A process that waits for its sign; `pipe` brings what it says."""

    pid: int
    gate: int
    pipe: int

    def go(self) -> list[Any]:
        """Let it work, and return all that it said, with its end last."""
        os.write(self.gate, b"x")
        os.close(self.gate)
        with os.fdopen(self.pipe, "rb") as pipe:
            said = [json.loads(line) for line in pipe.read().splitlines()]
        _, status = os.waitpid(self.pid, 0)
        return [*said, {"wait": os.waitstatus_to_exitcode(status)}]


def fork(work: Callable[[Callable[[Any], None]], None]) -> Child:
    """Begin a child that calls `work` when it may, with a way to say things."""
    gate, opener = os.pipe()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(gate)
        os.close(writing)
        return Child(pid, opener, reading)
    os.close(opener)
    os.close(reading)
    signal.alarm(SECONDS)
    faulthandler.dump_traceback_later(SECONDS - 10)

    def say(what: Any) -> None:
        os.write(writing, json.dumps(what).encode() + b"\n")

    try:
        os.read(gate, 1)
        work(say)
    except BaseException:  # noqa: BLE001 - whatever it is, it is what the test wants to know
        say({"traceback": traceback.format_exc()})
    finally:
        os._exit(0)


class Sweep:
    """One program below one place."""

    def __init__(self, program: Program, place: Path) -> None:
        self.program = program
        self.place = place
        self.area = place / "area"
        self.template = place / "template"
        self.log = place / "strace"
        self._kept = count()
        (place / "tmp").mkdir(parents=True)
        self._settle()
        self.area.mkdir()
        said = fork(lambda _: quietly(program.prepare, self.area)).go()
        assert said == [{"wait": 0}], said
        self.area.rename(self.template)

    def _settle(self) -> None:
        os.environ["ACL_STATE_DIR"] = str(self.area / "state")
        os.environ.pop("ACL_SIGNING_KEY", None)
        tempfile.tempdir = str(self.place / "tmp")

    def _begin(
        self, arm: Callable[[], object] = lambda: None, writes: Callable[[], int] = lambda: 0
    ) -> Child:
        """A child that is about to do the program's work in a fresh copy of the area.

        `arm` is called before the work, and what `writes` counts is told after it.
        """
        if self.area.exists():
            shutil.rmtree(self.area)
        shutil.copytree(self.template, self.area, symlinks=True)

        def work(say: Callable[[Any], None]) -> None:
            names = count()
            # The same names each time, so that each fault meets the same call.
            secrets.token_hex = lambda size=32: f"{next(names):0{2 * size}x}"  # type: ignore
            said = os.open(self.place / "said", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            os.dup2(said, 1)
            os.dup2(said, 2)
            arm()
            try:
                status = self.program.act(self.area, lambda *words: say({"told": words}))
            except AclError as error:
                say(
                    {"status": error.exit_status, "error": type(error).__name__, "text": str(error)}
                )
            else:
                say({"status": status or 0})
            say({"writes": writes()})
            sys.stdout.flush()
            sys.stderr.flush()

        return fork(work)

    def _ended(self, said: list[Any], *, unread: bool = False, lasting: bool = False) -> Ended:
        wait = said[-1]["wait"]
        last: dict[str, Any] = {}
        for one in said:
            last |= one
        output = (self.place / "said").read_text(errors="replace")
        return Ended(
            told=[one["told"] for one in said if "told" in one],
            killed=wait == -signal.SIGKILL,
            status=last.get("status"),
            error=last.get("error"),
            said=output + last.get("text", ""),
            fault=last.get("traceback") or (f"ended with {wait}" if wait not in (0, -9) else None),
            unread=unread,
            lasting=lasting,
        )

    def census(self) -> list[tracing.Call]:
        """All calls below the area, counted as a strace counts that sees no other ones."""
        child = self._begin()
        tracer = tracing.Tracer(child.pid, self.log, *tracing.watching())
        self._must_end(child.go())
        self.paths = tracing.among(tracing.paths_of(tracer.lines(), self.area))
        child = self._begin()
        tracer = tracing.Tracer(child.pid, self.log, *self.paths, *tracing.watching())
        self._must_end(child.go())
        return tracing.calls_of(tracer.lines())

    def _must_end(self, said: list[Any]) -> None:
        ended = self._ended(said)
        assert ended.status == 0, ended
        assert ended.fault is None, ended.fault
        found = self._check(ended)
        assert found is None, found

    def traced(self, part: slice) -> Iterator[dict[str, Any]]:
        """Meet each fault of each call in this part of all."""
        calls = self.census()
        chosen = calls if os.environ.get(EVERY) else tracing.thinned(calls)
        faults = [(call, fault) for call in chosen for fault in call.faults()]
        for call, fault in faults[part]:
            child = self._begin()
            options = [*self.paths, *tracing.injection(call, fault)]
            tracer = tracing.Tracer(child.pid, self.log, *options)
            said = child.go()
            lines = tracer.lines()
            name = f"{call.text} [{call.number}]"
            yield self._outcome(name, fault, tracing.was_hit(lines, fault), said)

    def torn(self, part: slice) -> Iterator[dict[str, Any]]:
        """Meet each kind of write that stops half way, at each write in this part of all."""
        library = ctypes.CDLL(None)
        below = os.fsencode(self.area)

        def met(number: int, kind: int) -> list[Any]:
            arm = partial(library.torn_arm, below, ctypes.c_long(number), kind)
            return self._begin(arm, library.torn_seen).go()

        said = met(-1, 0)
        self._must_end(said)
        tears = [(number, kind) for number in range(1, _writes(said) + 1) for kind in TORN]
        for number, kind in tears[part]:
            said = met(number, kind)
            killed = said[-1]["wait"] == -signal.SIGKILL
            hit = killed if TORN[kind].endswith("SIGKILL") else _writes(said) >= number
            yield self._outcome(f"write {number}", TORN[kind], hit, said)

    def _outcome(self, call: str, fault: str, hit: bool, said: list[Any]) -> dict[str, Any]:
        unread = fault == "error=EIO" and call.startswith(("pread64(", "read("))
        # strace counts the calls of each thread, and files are synced in threads.
        ended = self._ended(said, unread=unread, lasting=call.startswith("fsync("))
        found = self._check(ended)
        outcome = {
            "program": self.program.name,
            "call": call,
            "fault": fault,
            "hit": hit,
            "ended": "killed" if ended.killed else ended.error or ended.status,
            "said": ended.said,
            "found": found,
        }
        if found is not None:
            kept = self.place / f"kept-{next(self._kept)}"
            self.area.rename(kept)
            outcome["kept"] = str(kept)
        return outcome

    def _check(self, ended: Ended) -> str | None:
        if ended.fault is not None:
            return f"{ended.fault}\n{ended.said}"
        for path in (self.place / "tmp").iterdir():
            if not ended.killed:
                return f"{path} is left"
            shutil.rmtree(path)

        said = fork(lambda _: quietly(self.program.check, self.area, ended)).go()
        if said == [{"wait": 0}]:
            return None
        return str(said[0].get("traceback") or said[-1])


def _writes(said: list[Any]) -> int:
    """How many writes a child told of; none if it did not come so far."""
    return next((int(one["writes"]) for one in said if "writes" in one), 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("place", type=Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--part", default="0/1", help="the I-th of N parts, each N-th fault")
    parser.add_argument("--torn", action="store_true")
    given = parser.parse_args()
    first, of = map(int, given.part.split("/"))
    for name in given.programs:
        sweep = Sweep(PROGRAMS[name], given.place.absolute() / name.replace(" ", "-"))
        for outcome in (sweep.torn if given.torn else sweep.traced)(slice(first, None, of)):
            print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
