"""A disk that once does not sync: the next look of a live export brings all to disk."""

import itertools
import os
import threading
from pathlib import Path

import pytest

from exporters.live import LiveExport
from ledger import LedgerView, fold
from ledger.errors import ExportRefused
from tests.crash.faults.projections import Export
from tests.crash.faults.standing import contents

STATES = (3, 9, 14, 17)


class OneRefusal:
    """`os.fsync`, whose `wanted`-th call in whatever thread fails, and no other."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.calls = 0
        self._lock = threading.Lock()
        self._sync = os.fsync

    def __call__(self, file: int) -> None:
        with self._lock:
            self.calls += 1
            refused = self.calls == self.wanted
        if refused:
            raise OSError(5, os.strerror(5))
        self._sync(file)


def follow(run: Path, here: Path) -> int:
    """Look at one state after the other, once more where that was refused; return how often."""
    export, refused = LiveExport(here), 0
    with LedgerView.open(run) as view:
        for size in STATES:
            state = fold(view.events(until=size))
            try:
                export(state, view)
            except ExportRefused:
                refused += 1
                export(state, view)
    return refused


def test_after_a_sync_that_failed_once_the_next_look_brings_all_to_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Export("", "details", over=False).prepare(tmp_path)
    wanted = contents(tmp_path / "reference" / "here")
    for number in itertools.count(1):
        once, here = OneRefusal(number), tmp_path / f"out-{number}" / "here"
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", once)
            refused = follow(tmp_path / "run", here)
        assert contents(here) == wanted
        if once.calls < number:
            break
        assert refused == 1
    # The files of the last state and their directories, at least.
    assert number > len(wanted)
