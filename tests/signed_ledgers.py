"""Ledgers with checkpoints of known keys, and ledgers that share a name and nothing else."""

import itertools
from collections.abc import Callable
from pathlib import Path

from ledger import events as ev
from ledger.keys import CosigningKey, SigningKey
from ledger.memory import Memory
from ledger.store import Ledger
from tests import events_of as say

LAB = SigningKey("lab.example", bytes(range(32)))
OTHER = SigningKey("other.example", bytes(range(32, 64)))
SAME_NAME = SigningKey("lab.example", bytes(range(64, 96)))
WITNESS = CosigningKey("witness.example/w", bytes(range(96, 128)))


def clock() -> Callable[[], tuple[int, int]]:
    ticks = itertools.count(1)

    def now() -> tuple[int, int]:
        tick = next(ticks)
        return 1_700_000_000_000_000_000 + tick * 1_000_000, tick

    return now


def entropy() -> Callable[[int], bytes]:
    """Draws the same bytes each time, so that two ledgers get one id."""
    draws = itertools.count(1)
    return lambda count: next(draws).to_bytes(count, "big")


def make(
    directory: Path,
    *,
    tasks: int = 6,
    signers: tuple[SigningKey, ...] = (LAB,),
    answer: str = "42",
    seal: bool = True,
    every: int = 3,
) -> Path:
    """A run of `tasks` right answers, with a checkpoint after each `every` tasks and at the end.

    Ledgers of the same number of tasks have the same id, whatever the answers; a key signs each
    of them as if it had not seen the others.
    """
    directory.mkdir(parents=True)
    names = [f"t{number}" for number in range(tasks)]
    memory = Memory(directory / "memory")
    with Ledger.create(directory, clock=clock(), entropy=entropy(), memory=memory) as ledger:
        ledger.append(*say.opening(*names))
        ledger.checkpoint(*signers)
        for number, name in enumerate(names):
            tries = say.attempt(name, answer=answer, score=1.0)
            ledger.append(*say.whole_task(name, tries))
            if number % every == every - 1:
                ledger.checkpoint(*signers)
        if seal:
            ledger.append(ev.SummaryStarted(), ev.RunFinished(status="completed", exit_code=0))
            ledger.seal(*signers)
    return directory


def notes(directory: Path) -> list[bytes]:
    """The checkpoints that a ledger holds, oldest first."""
    from ledger import LedgerView

    with LedgerView.open(directory) as view:
        return [text.encode() for _, text in view.checkpoints()]
