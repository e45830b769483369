"""A registry goes on from its last checkpoint; whatever is wrong with the hint, roots are right."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView, resume, tlog
from ledger import events as ev
from ledger.errors import LedgerDamaged, LedgerRolledBack
from ledger.records import Records
from ledger.store import Ledger
from tests.events_of import opening
from tests.ledger_checks import check_ledger, forge


def entry(number: int) -> ev.RegistryOpened:
    return ev.RegistryOpened(
        run_id=f"run {number}",
        path=f"bench/model/{number}",
        ledger_id=f"{number:032x}",
        request_digest="00" * 32,
        planned_tasks=3,
        k=1,
    )


def append(path: Path, *numbers: int, keep: bool = True, resumes: bool = True) -> None:
    with Ledger.open(path, resumes=resumes) as ledger:
        ledger.append(*map(entry, numbers))
        ledger.checkpoint()
        if keep:
            ledger.keep({"last": numbers[-1]})


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    path = tmp_path / "registry.sqlite"
    Ledger.create(path).close()
    for number in range(5):
        append(path, number)
    return path


def read_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Which events an opening that resumes reads in a row: (since, until) of each scan."""
    scans: list[tuple[int, int]] = []
    scan = Records.scan

    def spy(self: Records, since: int, until: int) -> Any:
        scans.append((since, until))
        return scan(self, since, until)

    with monkeypatch.context() as patch:
        patch.setattr(Records, "scan", spy)
        Ledger.open(path, resumes=True).close()
    return scans


def changed(path: Path, **fields: object) -> None:
    place = resume.resume_path(path)
    document = json.loads(place.read_bytes())
    place.write_text(json.dumps({**document, **fields}))


def test_what_was_kept_is_read_again(registry: Path) -> None:
    kept = resume.read(registry)
    assert kept is not None
    with LedgerView.open(registry) as view:
        assert (kept.tree.size, kept.tree.root()) == (5, view.root())
    assert kept.memo == {"last": 4}


def test_an_opening_that_resumes_reads_nothing_before_the_last_checkpoint(
    registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_whole(registry, monkeypatch) == [(5, 5)]
    append(registry, 5, keep=False)  # the hint is one checkpoint behind
    assert read_whole(registry, monkeypatch) == [(0, 6)]


def test_events_behind_the_last_checkpoint_are_read(
    registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(registry, resumes=True) as ledger:
        ledger.append(entry(5), entry(6))
    assert read_whole(registry, monkeypatch) == [(5, 7)]
    append(registry, 7)
    check_ledger(registry)


def test_a_resumed_ledger_has_the_tree_and_sessions_that_reading_it_whole_gives(
    registry: Path,
) -> None:
    with Ledger.open(registry, resumes=True) as resumed:
        root, session = resumed.root(), resumed._writer.tail.session
    with Ledger.open(registry) as whole:
        assert (root, session) == (whole.root(), whole._writer.tail.session)
    append(registry, 5)
    check_ledger(registry)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: resume.resume_path(path).unlink(),
        lambda path: resume.resume_path(path).write_bytes(b""),
        lambda path: resume.resume_path(path).write_bytes(b"\xff{"),
        lambda path: resume.resume_path(path).write_bytes(b"[" * 100_000),
        lambda path: changed(path, size=4),
        lambda path: changed(path, size=True),
        lambda path: changed(path, size="5"),
        lambda path: changed(path, nodes=["00" * 32] * 2),
        lambda path: changed(path, nodes=["00" * 31] * 2),
        lambda path: changed(path, nodes=[]),
        lambda path: changed(path, nodes=None),
        lambda path: changed(path, size=0, nodes=[]),
        lambda path: changed(path, size=2**70, nodes=["00" * 32]),
    ],
)
def test_a_wrong_hint_never_leads_to_a_wrong_root(
    registry: Path, damage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(registry)
    assert read_whole(registry, monkeypatch) == [(0, 5)]
    append(registry, 5)
    check_ledger(registry)


def test_a_hint_that_is_a_link_is_not_followed(registry: Path, tmp_path: Path) -> None:
    place = resume.resume_path(registry)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert resume.read(registry) is None
    append(registry, 5)
    assert not place.is_symlink()
    check_ledger(registry)


def test_the_hint_of_another_registry_is_not_used(registry: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "registry.sqlite"
    Ledger.create(other).close()
    for number in range(5):
        append(other, number)
    resume.resume_path(registry).write_bytes(resume.resume_path(other).read_bytes())
    append(registry, 5)
    check_ledger(registry)


def test_a_checkpoint_file_that_knows_of_more_is_seen(registry: Path, tmp_path: Path) -> None:
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    append(registry, 5)
    for name in ("registry.sqlite", "registry.resume"):
        (tmp_path / name).write_bytes(kept[name])
    with pytest.raises(LedgerRolledBack):
        Ledger.open(registry, resumes=True)


def test_a_checkpoint_file_with_another_root_is_seen(registry: Path) -> None:
    beside = registry.with_suffix(".checkpoint.unsigned")
    origin, size, _ = beside.read_text().splitlines()
    beside.write_text(f"{origin}\n{size}\n{'A' * 43}=\n")
    with pytest.raises(LedgerDamaged):
        Ledger.open(registry, resumes=True)


def test_an_older_checkpoint_file_is_overtaken(
    registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a key signs, the unsigned one beside the ledger stays as it was."""
    beside = registry.with_suffix(".checkpoint.unsigned")
    old = beside.read_bytes()
    append(registry, 5)
    beside.write_bytes(old)
    assert read_whole(registry, monkeypatch) == [(6, 6)]


def test_a_checkpoint_row_that_was_altered_is_not_gone_on_from(registry: Path) -> None:
    text = registry.with_suffix(".checkpoint.unsigned").read_text()
    forge(registry, f"UPDATE checkpoint SET note = '{text.replace('5', '4', 1)}' WHERE id = 4")
    with pytest.raises(LedgerDamaged):
        Ledger.open(registry, resumes=True)


def test_a_run_is_always_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.sqlite"
    with Ledger.create(path) as ledger:
        ledger.append(*opening("t"))
        ledger.checkpoint()
        ledger.keep(None)
    assert read_whole(path, monkeypatch) == [(0, 3)]


def test_a_registry_that_does_not_end_in_an_entry_is_read_whole(
    registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(registry, resumes=True) as ledger:
        ledger.append(ev.AnnotationAdded(text="seen", author="auditor"))
        ledger.checkpoint()
        ledger.keep(None)
    assert read_whole(registry, monkeypatch) == [(0, 6)]


def test_a_tree_resumes_from_its_nodes_and_from_no_others() -> None:
    leaves = [tlog.leaf_hash(bytes([n])) for n in range(20)]
    tree = tlog.Frontier(leaves[:13])
    resumed = tlog.Frontier.resume(tree.size, tree.nodes)
    assert resumed == tree
    for leaf in leaves[13:]:
        resumed.append(leaf)
    assert resumed.root() == tlog.root_of(b"".join(leaves))
