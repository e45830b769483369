"""Small runs in every state that an archive tells of, and snapshots of them."""

from pathlib import Path
from typing import Any

from exporters.archives import Snapshot, snapshot
from ledger import events as ev
from ledger.fold import fold
from ledger.state import RunState
from ledger.store import Ledger
from ledger.view import LedgerView
from tests import events_of as say

CONFIG = b"meta_info: {}\n"
SECOND = 1_000_000_000


class Clock:
    """A second for each look, from a known moment on."""

    def __init__(self, start: int = 1_750_000_000) -> None:
        self.now = start

    def __call__(self) -> tuple[int, int]:
        self.now += 1
        return self.now * SECOND, self.now * SECOND


def created(run_id: str = "r1", **fields: Any) -> ev.RunCreated:
    return say.created(run_id).model_copy(
        update={
            "command": ("acl", "run", "--benchmark", "b c", "--harness", "it's"),
            "packages": {"b": "2", "a": "1"},
            "repos": {"tree": ev.Repo(sha="a" * 40, dirty=False), "other": ev.Repo(sha="b" * 40)},
            **fields,
        }
    )


def source(role: ev.SourceRole, path: str, content: object = "A = 1\n") -> ev.SourceRecorded:
    return ev.SourceRecorded(role=role, name="n", path=path, bytes=6, content=content)


def write(
    directory: Path,
    *more: ev.AnyEvent,
    run_id: str = "r1",
    status: ev.RunStatus | None = "completed",
    exit_code: int = 0,
    seal: bool = True,
    first: ev.RunCreated | None = None,
) -> Path:
    """A run of one task that was solved; without `status` it has no end."""
    directory.mkdir(parents=True, exist_ok=True)
    with Ledger.create(directory, clock=Clock()) as ledger:
        ledger.append(first or created(run_id), *more, ev.RunStarted(), say.selected("t"))
        ledger.append(*say.whole_task("t", say.attempt("t", score=1.0)))
        if status is not None:
            if status == "cancelled":
                name = "SIGTERM" if exit_code == 143 else "SIGINT"
                ledger.append(ev.InterruptRequested(signal=name, count=1))
            ledger.append(*say.ending(status, exit_code))
            if seal:
                ledger.seal()
    return directory


def state_of(run: Path) -> RunState:
    with LedgerView.open(run) as view:
        return fold(view.events())


def shot(run: Path, job: str = "job", ledger_path: str | None = "../r/ledger.sqlite") -> Snapshot:
    """The snapshot of a run; its ledger is read again when files are asked for."""
    with LedgerView.open(run) as view:
        state = fold(view.events())
        made = snapshot(state, view, job=job, config=CONFIG, ledger_path=ledger_path)
        files = list(made.files())
    return Snapshot(made.run_id, made.ledger_id, made.root, made.numbered, lambda: files)
