"""The loop: change an input that reached something new, run it, keep what reaches more."""

import hashlib
import json
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from ledger.errors import AclError
from tests.fuzz.bounds import BeyondBounds, Fence, bounded_time
from tests.fuzz.reached import Reached, product_file
from tests.fuzz.strings import shape
from tests.fuzz.target import Target

MOST_BYTES = 20_000
_REDUCTIONS = 150
_STATUS_SECONDS = 1.0


@dataclass
class Finding:
    """An input after which something does not hold; two of one `kind` are one fault."""

    kind: str
    told: str
    data: bytes

    @property
    def name(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:16]


@dataclass
class Status:
    """What a fuzzer did so far, as its parent reads it."""

    executions: int = 0
    corpus: int = 0
    new: int = 0
    lines: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    """The name of the first input of each kind of finding."""


class Runner:
    """Runs inputs of one target, each in an empty directory and within bounds."""

    def __init__(self, target: Target, home: Path, *, watches: bool = True) -> None:
        self._target = target
        self._home = home.resolve()
        self._watches = watches
        self._fence = Fence()
        self.reached = Reached()
        self.features: set[str] = set()

    def run(self, data: bytes) -> Finding | None:
        """Run one input; None if all held."""
        home = self._home / "run"
        shutil.rmtree(home, ignore_errors=True)
        for name in ("tmp", "state", "victim"):
            (home / name).mkdir(parents=True)
        (home / "victim" / "precious").write_text("precious")
        self._target.prepare(data, home)
        tempfile.tempdir = None
        os.environ |= {"TMPDIR": str(home / "tmp"), "ACL_STATE_DIR": str(home / "state")}
        try:
            with self._fence.up(home), bounded_time():
                if self._watches:
                    self.reached.start()
                try:
                    self.features.update(self._target.run(data, home))
                finally:
                    if self._watches:
                        self.reached.stop()
        except AclError as error:
            self.features.add(f"{type(error).__name__}: {shape(error.message)}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever else it is, it is a finding
            return Finding(_kind(error), "".join(traceback.format_exception(error)), data)
        return None

    def measure(self) -> int:
        """How much was reached so far: lines, and kinds of outcomes."""
        return self.reached.lines + len(self.features)


class Fuzzer:
    """One target, its corpus, and where findings go."""

    def __init__(self, target: Target, home: Path, out: Path, seed: int) -> None:
        self.target = target
        self.status = Status()
        self._runner = Runner(target, home)
        self._random = Random(seed)
        self._out = out
        self._corpus: list[bytes] = []
        (out / "corpus").mkdir(parents=True, exist_ok=True)

    def fuzz(self, inputs: Iterable[bytes], seconds: float) -> None:
        """Run what is known, then for so long, once at least, what is made from it."""
        for data in inputs:
            self._try(data, is_new=False)
        # From now on: on a slow machine what is known alone takes a minute.
        until, told = time.monotonic() + seconds, 0.0
        while True:
            self._try(self._made(), is_new=True)
            now = time.monotonic()
            if now - told > _STATUS_SECONDS or now >= until:
                told = now
                self._tell()
            if now >= until:
                return

    def _made(self) -> bytes:
        random, corpus = self._random, self._corpus
        # The latest have been changed least often.
        recent = random.random() < 0.5
        data = random.choice(corpus[-20:] if recent else corpus)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            try:
                with bounded_time():
                    data = self.target.mutate(data, corpus, random)
            except BeyondBounds:
                # What is edited can be as hostile as what is run.
                break
        return data

    def _try(self, data: bytes, *, is_new: bool) -> None:
        if len(data) > MOST_BYTES:
            return
        before = self._runner.measure()
        finding = self._run(data)
        self.status.executions += 1
        if finding is not None:
            self._found(finding)
        elif self._runner.measure() > before or not self._corpus:
            self._corpus.append(data)
            self.status.new += is_new
            if is_new:
                name = hashlib.sha256(data).hexdigest()[:16]
                (self._out / "corpus" / name).write_bytes(data)

    def _run(self, data: bytes) -> Finding | None:
        # Who waits for this process sees what it ran last, and how long ago that began.
        (self._out / "current").write_bytes(data)
        return self._runner.run(data)

    def _found(self, finding: Finding) -> None:
        if finding.kind in self.status.kinds:
            return
        finding = self._smallest(finding)
        self.status.kinds[finding.kind] = finding.name
        (self._out / finding.name).write_bytes(finding.data)
        (self._out / f"{finding.name}.txt").write_text(
            f"{finding.kind}\n\n{finding.told}", errors="backslashreplace"
        )
        self._tell()

    def _smallest(self, finding: Finding) -> Finding:
        left, smaller = _REDUCTIONS, True
        while smaller and left > 0:
            smaller = False
            for data in self.target.reduced(finding.data):
                left -= 1
                other = self._run(data) if len(data) < len(finding.data) else None
                if other is not None and other.kind == finding.kind:
                    finding, smaller = other, True
                    break
                if left <= 0:
                    break
        return finding

    def _tell(self) -> None:
        self.status.corpus = len(self._corpus)
        self.status.lines = self._runner.reached.lines
        (self._out / "status.json").write_text(json.dumps(vars(self.status)))


def distil(target: Target, home: Path, inputs: Iterable[bytes]) -> list[bytes]:
    """Of the inputs that hold, those that reach what no smaller one reaches."""
    runner = Runner(target, home)
    kept = []
    for data in sorted(set(inputs), key=lambda one: (len(one), one)):
        before = runner.measure()
        if runner.run(data) is None and runner.measure() > before:
            kept.append(data)
    return kept


def _kind(error: BaseException) -> str:
    """What went wrong and where, without what depends on the input."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if product_file(frame.filename)]
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else ""
    if isinstance(error, BeyondBounds):
        # Where the time is up is by chance.
        where = f"{Path(ours[0].filename).name}:{ours[0].name}" if ours else ""
    said = shape(str(error)[:80])
    return f"{type(error).__name__} {where} {said}"
