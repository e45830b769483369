"""The run that is attacked: recorded honestly, by a key that signs, with checkpoints as it goes."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from ledger import canonical, fold
from ledger import events as ev
from ledger.keys import SigningKey
from ledger.store import Ledger
from runtime.metrics import aggregate
from tests import events_of as say

LEDGER_ID = bytes(range(1, 17))
OTHER_ID = bytes(range(101, 117))
LAB = SigningKey.generate("lab.example", entropy=lambda n: b"L" * n)
# After these a batch is stored and a checkpoint written.
_ENDS_A_BATCH = ("tasks.selected", "task.finished", "run.finished", "annotation.added")

Events = list[ev.AnyEvent]
Change = Callable[[Events], Events]
Metrics = dict[str, Any]


def story(run_id: str = "r1") -> Events:
    """Three tasks: one solved with a long answer, one wrong after a retry, one that failed."""
    long = [{"role": "user", "content": f"{n} " * 1500} for n in range(3)]
    retried = ev.AttemptRetried(
        task="wrong",
        attempt=1,
        retry=1,
        max_retries=2,
        retry_delay_seconds=0.5,
        stage="run",
        scope="attempt",
        error=ev.ErrorInfo(code="provider_overloaded", message="try later"),
        discarded_result={"status": "run_error"},
    )
    wrong = say.attempt("wrong", correct=False, score=0.0, answer="41")
    wrong[-1] = wrong[-1].model_copy(update={"retries": 1})
    right = say.attempt("right", score=1.0, answer="x" * 9000, trajectory=long)
    files = ev.ArtifactsCollected(
        task="right",
        attempt=1,
        artifacts=(ev.Artifact(path="a.bin", bytes=70_000),),
        contents={"a.bin": canonical.Binary(b"a" * 70_000)},
    )
    return [
        say.created(run_id),
        ev.RunStarted(),
        say.selected("right", "wrong", "lost", category="math"),
        *say.whole_task("right", [*right[:2], files, *right[2:]]),
        *say.whole_task("wrong", [wrong[0], retried, *wrong[1:]]),
        *say.whole_task("lost", say.failed_attempt("lost"), error=True),
        *say.ending(),
        ev.AnnotationAdded(text="looked at", author="the lab"),
    ]


def record(
    directory: Path,
    *,
    seal: bool,
    key: SigningKey = LAB,
    events: Events | None = None,
    ledger_id: bytes = LEDGER_ID,
    metrics: Callable[[Metrics], Metrics] = lambda metrics: metrics,
    older: Path | None = None,
) -> bytes:
    """Record a run in an empty directory; return the last checkpoint, as it was published.

    Not sealed, it is left as by a writer that was killed: the first task in the file, all else in
    the -wal. `older` gets a copy of the directory as it was after the first task. The same
    arguments give the same bytes.
    """
    directory.mkdir(parents=True)
    clock, entropy = _clock(), _entropy(ledger_id)
    waiting = batches(story() if events is None else events)
    with another_machine():
        with Ledger.create(directory, clock=clock, entropy=entropy) as ledger:
            for batch in waiting[:2]:
                ledger.append(*batch)
                ledger.checkpoint(key)
        if older is not None:
            shutil.copytree(directory, older)
        with Ledger.open(directory, clock=clock, entropy=entropy) as ledger:
            for batch in waiting[2:]:
                _store(ledger, batch, metrics)
                ledger.checkpoint(key)
            if seal:
                ledger.seal(key)
            else:
                _leave(directory)
    return (directory / "ledger.checkpoint").read_bytes()


def batches(events: Events) -> list[Events]:
    """What is appended at once, each followed by a checkpoint."""
    found: list[Events] = [[]]
    for event in events:
        found[-1].append(event)
        if event.type in _ENDS_A_BATCH:
            found.append([])
    return [batch for batch in found if batch]


def _store(ledger: Ledger, batch: Events, change: Callable[[Metrics], Metrics]) -> None:
    for event in batch:
        ledger.append(event)
        if isinstance(event, ev.SummaryStarted):
            with ledger.view() as view:
                result, used = aggregate(fold(view.events()))
            fields = {
                "metrics": dict(result.metrics),
                "counts": result.counts.model_dump(),
                "details": result.details,
                "extra": result.extra,
            }
            ledger.append(
                ev.MetricsComputed(
                    **change(fields),
                    reducers=used,
                    size=ledger.size,
                    root=ledger.root().hex(),
                    source="evaluation",
                )
            )


def _leave(directory: Path) -> None:
    """Put what a killed writer would leave in the place of what closing leaves."""
    killed = directory.with_name(directory.name + ".killed")
    # In a process of its own: to close the file here would drop the writer's locks.
    subprocess.run(["cp", "-r", str(directory), str(killed)], check=True)
    directory.rename(directory.with_name(directory.name + ".closed"))
    killed.rename(directory)


@contextmanager
def another_machine() -> Iterator[None]:
    """Sign as if nothing had been signed before: the signer's memory is of one machine."""
    before = os.environ.get("ACL_STATE_DIR")
    with tempfile.TemporaryDirectory() as state:
        os.environ["ACL_STATE_DIR"] = state
        try:
            yield
        finally:
            if before is None:
                del os.environ["ACL_STATE_DIR"]
            else:
                os.environ["ACL_STATE_DIR"] = before


def _clock() -> Callable[[], tuple[int, int]]:
    numbers = count()
    return lambda: (1_700_000_000_000_000_000 + (n := next(numbers)) * 1_000_000_000, n)


def _entropy(ledger_id: bytes) -> Callable[[int], bytes]:
    numbers = count()

    def draw(wanted: int) -> bytes:
        number = next(numbers)
        return sha256(b"%d" % number).digest()[:wanted] if number else ledger_id

    return draw
