"""Tables of many large answers are written in bounded memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledger import events as ev
from ledger.store import Ledger
from tests import events_of as say

ROOT = Path(__file__).resolve().parents[2]
ATTEMPTS = 160
ANSWER = 1024 * 1024
MOST_GROWTH = 160 * 1024 * 1024
"""A row group of 8 MiB is held as rows, as columns, and compressed; all answers twice are 320 MB."""

_MEASURE = """
import sys
from exporters.tables.files import OneRun
from exporters.tables.results import SPELLINGS
from exporters.tables import ATTEMPTS
from ledger import LedgerView, fold
from tests.memory_peak import peak
import pyarrow, pyarrow.parquet

with LedgerView.open(sys.argv[1]) as view:
    state = fold(view.events())
    before = peak()
    rows = OneRun(state, view).rows(ATTEMPTS)
    written = sum(map(len, SPELLINGS[sys.argv[2]](ATTEMPTS, rows)))
    print(peak() - before, written)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("large") / "run"
    directory.mkdir()
    ids = [f"t{number}" for number in range(ATTEMPTS)]
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening(*ids))
        for task in ids:
            events: list[ev.AnyEvent] = say.whole_task(
                task, say.attempt(task, answer=task * (ANSWER // len(task)))
            )
            ledger.append(*events)
    return directory


@pytest.mark.parametrize("layout", ["parquet", "csv"])
def test_memory_is_bounded_by_a_row_group(run: Path, layout: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(run), layout],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    growth, written = map(int, done.stdout.split())
    assert growth < MOST_GROWTH, f"{growth / 1e6:.0f} MB"
    if layout != "parquet":
        assert written > ATTEMPTS * ANSWER * 0.9
