"""Every byte of the smallest sealed ledger, and many bytes of others."""

import os
from pathlib import Path
from random import Random

import pytest

from tests.attacks.flips import Counts, Victim, is_detected, large, small, smallest

# ACL_FLIP_STRIDE=1 tries every byte of the other small ledgers as well, which takes minutes.
STRIDE = int(os.environ.get("ACL_FLIP_STRIDE", "0"))
SHARES = 8
SAMPLES = 150


@pytest.fixture
def say_counts(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]):
    """Print the counts where somebody looks: `pytest -n 0 -s` or in a report."""

    def printed(counts: Counts) -> None:
        request.node.user_properties.append(("flips", str(counts)))
        with capsys.disabled():
            print(f"\n{request.node.name}: {counts}")

    return printed


@pytest.mark.parametrize("share", range(SHARES))
def test_every_flipped_byte_of_the_smallest_sealed_ledger(
    tmp_path: Path, say_counts, share: int
) -> None:
    victim = Victim(smallest(tmp_path / "run", seal=True), "ledger.sqlite", tmp_path)
    counts = victim.try_all(range(share, len(victim.data), SHARES))
    say_counts(counts)
    assert counts.detected > 0
    assert counts.harmless > 0


@pytest.mark.parametrize(
    ("seal", "name", "stride"),
    [
        (True, "ledger.sqlite", 31),
        (False, "ledger.sqlite", 151),
        (False, "ledger.sqlite-wal", 193),
        (True, "ledger.checkpoint", 1),
    ],
)
def test_flipped_bytes_of_a_small_ledger(
    tmp_path: Path, say_counts, seal: bool, name: str, stride: int
) -> None:
    run = small(tmp_path / "run", seal=seal)
    assert not is_detected(run)
    victim = Victim(run, name, tmp_path)
    counts = victim.try_all(range(0, len(victim.data), STRIDE or stride))
    say_counts(counts)
    assert counts.detected > 0


@pytest.mark.parametrize(("name", "stride"), [("ledger.sqlite", 61), ("ledger.sqlite-wal", 41)])
def test_flipped_bytes_of_the_smallest_ledger_that_a_killed_writer_left(
    tmp_path: Path, say_counts, name: str, stride: int
) -> None:
    run = smallest(tmp_path / "run", seal=False)
    victim = Victim(run, name, tmp_path)
    counts = victim.try_all(range(0, len(victim.data), STRIDE or stride))
    say_counts(counts)
    assert counts.detected > 0


def test_sampled_flipped_bytes_of_a_large_ledger(tmp_path: Path, say_counts) -> None:
    victim = Victim(large(tmp_path / "run"), "ledger.sqlite", tmp_path)
    assert len(victim.data) > 500_000
    places = Random(20).sample(range(len(victim.data)), SAMPLES)
    counts = victim.try_all(places)
    say_counts(counts)
    assert counts.detected > SAMPLES // 2
