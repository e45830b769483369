"""A ledger is verified and folded in one reading, and its metrics are compared without another."""

from pathlib import Path

import pytest

from ledger import LedgerView, fold, verify
from ledger import events as ev
from ledger.store import Ledger
from ledger.verify import Finding
from runtime.folded import Folded
from runtime.replay import replay, replay_folded
from tests import events_of as say
from tests.cli.conftest import flip_a_stored_byte
from tests.golden.runs import RUNS


def while_verified(path: Path) -> tuple[Folded, list[Finding]]:
    folded = Folded()
    verification = verify(path)
    verification.on_event = folded.take
    return folded, list(verification)


@pytest.mark.parametrize("name", RUNS)
def test_what_a_verifier_hands_on_gives_the_state_that_a_reader_gets(
    tmp_path: Path, name: str
) -> None:
    RUNS[name](tmp_path / name)
    folded, findings = while_verified(tmp_path / name)
    assert not [one for one in findings if one.severity == "broken"]
    with LedgerView.open(tmp_path / name) as view:
        assert folded.state == fold(view.events())


def test_the_root_that_the_metrics_name_is_known_without_the_ledger(tmp_path: Path) -> None:
    RUNS["full"](tmp_path / "full")
    folded, _ = while_verified(tmp_path / "full")
    (computed,) = (event for _, _, event in folded.state.metrics)
    with LedgerView.open(tmp_path / "full") as view:
        assert folded.roots == {computed.size: view.root(computed.size)}
        asked: list[int] = []
        found = replay_folded(folded, lambda size: asked.append(size) or b"")  # type: ignore[func-returns-value]
        assert found == replay(view)
    assert not asked


def test_a_root_of_another_prefix_is_asked_for(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"), *say.whole_task("t", say.attempt("t")))
        size, root = ledger.size, ledger.root().hex()
        told = {"metrics": {}, "counts": {}, "source": "evaluation", "size": size}
        ledger.append(ev.SummaryStarted(), ev.MetricsComputed(**told, root=root))
    folded, _ = while_verified(tmp_path)
    assert size not in folded.roots
    with LedgerView.open(tmp_path) as view:
        found = replay_folded(folded, view.root)
        assert "root" not in [difference.name for difference in found.differences]
        other = replay_folded(folded, lambda _: bytes(32))
        assert "root" in [difference.name for difference in other.differences]


def test_nothing_is_handed_on_behind_what_cannot_be_read(tmp_path: Path) -> None:
    RUNS["full"](tmp_path / "full")
    flip_a_stored_byte(tmp_path / "full" / "ledger.sqlite")
    folded, findings = while_verified(tmp_path / "full")
    first = min(one.seq for one in findings if one.severity == "broken" and one.seq is not None)
    assert folded.state.size <= first
