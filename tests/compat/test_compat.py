"""Ledgers of every released format stay readable, and mean what they meant."""

import json
import shutil
from pathlib import Path

import pytest

from ledger import verify
from tests.compat.freeze import LEDGERS, facts

FROZEN = sorted(LEDGERS.glob("*.sqlite"))


def test_there_is_something_frozen() -> None:
    assert FROZEN


@pytest.mark.parametrize("frozen", FROZEN, ids=lambda path: path.stem)
def test_a_frozen_ledger_verifies_and_means_what_it_meant(frozen: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    shutil.copyfile(frozen, path)
    assert [finding for finding in verify(path) if finding.severity == "broken"] == []
    assert facts(path) == json.loads(frozen.with_suffix(".json").read_text())
