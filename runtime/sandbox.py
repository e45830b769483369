"""Check candidate functions in a subprocess that they cannot talk out of its verdict.

The candidate runs in a worker process that is told inputs, never expected outputs; what it gives
comes back as data and is compared here.  So neither printing "passed", nor exit status 0, nor
patching the interpreter makes a wrong answer right.  What remains: a candidate that gets round the
worker's audit hook can read files, an installed copy of the benchmark's solutions among them.
"""

import asyncio
import json
import math
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ledger.errors import SandboxFailed
from runtime.sandbox_process import Ended, Isolation, WorkerProcess, isolation
from runtime.sandbox_worker import decode, encode

__all__ = [
    "Check",
    "Isolation",
    "Limits",
    "SandboxResult",
    "Verdict",
    "run_checks",
    "same",
    "try_candidates",
]

_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Limits:
    """What one candidate may use; the wall clock limit is a backstop for code that sleeps."""

    cpu_seconds: float = 2.0
    memory_bytes: int = 512 << 20
    file_bytes: int = 1 << 20
    output_bytes: int = 64 << 10
    wall_seconds: float = 60.0

    def resources(self, candidates: int) -> dict[str, int]:
        """Give the kernel's limits for a worker that runs so many candidates."""
        return {
            "RLIMIT_CPU": math.ceil(self.cpu_seconds * candidates) + 1,
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NOFILE": 32,
            "RLIMIT_NPROC": 1,
            "RLIMIT_CORE": 0,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion: the function called with `args` gives `expected`, or raises `raises`."""

    name: str
    args: tuple[object, ...]
    expected: object = None
    raises: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one check; `gave` says in few words what the candidate did."""

    name: str
    passed: bool
    gave: str


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """How the worker ended, and the verdict; `passed`: every check passed and it ended well."""

    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    cpu_seconds: float
    timed_out: bool
    passed: bool
    verdicts: tuple[Verdict, ...]


async def run_checks(
    source: str, entry: str, checks: Sequence[Check], limits: Limits = Limits()
) -> SandboxResult:
    """Run every check on one candidate, in a worker of its own.

    Raises SandboxFailed when no worker could be started; whatever the candidate does is a result.
    """
    ended = await _run([source], entry, checks, limits)
    outcomes = next(_reports(ended), [])
    # A candidate that ended the process left its last calls without an outcome.
    outcomes = outcomes[: len(checks)] + [None] * (len(checks) - len(outcomes))
    verdicts = tuple(_judge(check, got) for check, got in zip(checks, outcomes, strict=True))
    stopped = any(isinstance(got, dict) and "stopped" in got for got in outcomes)
    killed_for_time = ended.signal == signal.SIGKILL and ended.cpu_seconds >= limits.cpu_seconds
    timed_out = ended.expired or stopped or killed_for_time or ended.signal == signal.SIGXCPU
    ended_well = ended.exit_code == 0 and not timed_out
    return SandboxResult(
        exit_code=ended.exit_code,
        signal=ended.signal,
        stdout=ended.stdout.decode(errors="replace"),
        stderr=ended.stderr.decode(errors="replace"),
        cpu_seconds=ended.cpu_seconds,
        timed_out=timed_out,
        passed=ended_well and all(verdict.passed for verdict in verdicts),
        verdicts=verdicts,
    )


async def try_candidates(
    sources: Sequence[str], entry: str, checks: Sequence[Check], limits: Limits = Limits()
) -> list[tuple[bool, ...]]:
    """Tell for each candidate which checks it passes; many candidates share one worker.

    They share an interpreter, too: for an agent's own trials, not for a verdict.
    A candidate that ends the worker passes none, and the rest go on in a new one.
    """
    passed: list[tuple[bool, ...]] = []
    while len(passed) < len(sources):
        ended = await _run(sources[len(passed) :], entry, checks, limits)
        for outcomes in _reports(ended):
            pairs = zip(checks, outcomes, strict=False)
            passed.append(tuple(_judge(check, got).passed for check, got in pairs))
        if len(passed) < len(sources):
            passed.append((False,) * len(checks))
    return passed


async def _run(
    sources: Sequence[str], entry: str, checks: Sequence[Check], limits: Limits
) -> Ended:
    fence = await asyncio.to_thread(isolation)
    job: Mapping[str, object] = {
        "entry": entry,
        "sources": list(sources),
        "calls": [[encode(arg) for arg in check.args] for check in checks],
        "cpu_seconds": limits.cpu_seconds,
        "limits": limits.resources(len(sources)),
    }
    worker = WorkerProcess(
        job, fence, wall_seconds=limits.wall_seconds, output_bytes=limits.output_bytes
    )
    try:
        ended = await asyncio.to_thread(worker.run)
    except asyncio.CancelledError:
        worker.stop()
        raise
    except OSError as error:  # no process, no pipe, no temporary directory
        raise SandboxFailed(str(error)) from error
    if not ended.report:
        raise SandboxFailed(ended.stderr.decode(errors="replace").strip()[-_SHOWN:])
    return ended


def _reports(ended: Ended) -> Iterator[list[object]]:
    """Yield the outcomes of each finished candidate in order; stop where the report is not ours."""
    for number, line in enumerate(ended.report.splitlines()[1:]):
        try:
            report = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(report, dict) or report.get("source") != number:
            return
        outcomes = report.get("outcomes")
        if not isinstance(outcomes, list):
            return
        yield outcomes


def _judge(check: Check, outcome: object) -> Verdict:
    if not isinstance(outcome, dict):
        return Verdict(check.name, False, "nothing: the process ended")
    if "stopped" in outcome:
        return Verdict(check.name, False, "nothing: out of processor time")
    if "raised" in outcome:
        raised = str(outcome["raised"])
        return Verdict(check.name, check.raises == raised, f"raised {raised[:_SHOWN]}")
    try:
        value = decode(outcome.get("value"))
    except (ValueError, RecursionError):
        return Verdict(check.name, False, "something that is not data")
    passed = check.raises is None and same(value, check.expected)
    return Verdict(check.name, passed, repr(value)[:_SHOWN])


def same(left: object, right: object) -> bool:
    """Compare plain data: as `==`, but True is not 1, 1.0 is 1 within 1e-9, and NaN is NaN."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        return _same_number(left, right)
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def _same_number(left: object, right: object) -> bool:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return False
    if left != left or right != right:  # noqa: PLR0124 (only NaN differs from itself)
        return left != left and right != right  # noqa: PLR0124
    try:
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    except OverflowError:
        return False
