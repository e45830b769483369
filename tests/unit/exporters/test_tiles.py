"""A ledger as a log of tiles, audited by a program of its own."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from exporters.folder import Folder
from exporters.tiles import export_tiles, publish
from ledger import LedgerView, fold, sidefile
from ledger import events as ev
from ledger.errors import ExportRefused, ProofInvalid, UsageError
from ledger.memory import Memory
from ledger.store import Ledger
from tests import events_of as say
from tests.signed_ledgers import LAB, OTHER, clock, entropy, make, notes
from tests.tile_auditor import Wrong, audit

PUBLIC = LAB.verifier.public


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_the_disk():
    """Hundreds of small files are written durably; no test here asks what a power cut leaves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "sync", lambda: None)
        yield


@pytest.fixture
def run(tmp_path):
    return make(tmp_path / "r", answer="42 " * 4000)


def published(run, directory):
    with LedgerView.open(run) as view:
        return publish(view, directory)


def files(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_another_program_finds_everything_in_order(run, tmp_path):
    told = published(run, tmp_path / "t")
    with LedgerView.open(run) as view:
        assert audit(tmp_path / "t", LAB.name, PUBLIC) == (view.size, view.root())
        for recorded in view.events():
            body = (tmp_path / "t" / "body" / recorded.address.hex()).read_bytes()
            assert body == view.raw(recorded.seq)[1]
    assert told.written == len(files(tmp_path / "t"))
    assert told.erased == []


def test_large_values_can_be_put_together_from_the_directory(run, tmp_path):
    published(run, tmp_path / "t")
    answers = set()
    with LedgerView.open(run) as view:
        for recorded in view.events():
            if isinstance(recorded.event, ev.ResultRecorded):
                pieces = [digest.hex() for digest in recorded.event.final_answer.pieces]
                assert pieces
                text = b"".join((tmp_path / "t" / "blob" / one).read_bytes() for one in pieces)
                answers.add(text.decode() + recorded.event.final_answer.rest)
    assert answers == {"42 " * 4000}


@pytest.mark.parametrize("tasks", [1, 42, 90])
def test_sizes_around_full_tiles(tmp_path, tasks):
    run = make(tmp_path / "r", tasks=tasks)
    published(run, tmp_path / "t")
    with LedgerView.open(run) as view:
        assert audit(tmp_path / "t", LAB.name, PUBLIC) == (view.size, view.root())


def grown(directory, tasks, signers=(LAB,)):
    """The run of `tasks` tasks of a hundred, unfinished; more tasks give the same run, later."""
    directory.mkdir(parents=True)
    names = [f"t{number}" for number in range(100)]
    memory = Memory(directory / "memory")
    with Ledger.create(directory, clock=clock(), entropy=entropy(), memory=memory) as ledger:
        ledger.append(*say.opening(*names))
        for name in names[:tasks]:
            ledger.append(*say.whole_task(name, say.attempt(name)))
        ledger.checkpoint(*signers)
    return directory


def test_a_directory_grows_with_the_ledger_and_earlier_tiles_stay(tmp_path):
    target = tmp_path / "t"
    published(grown(tmp_path / "short", 5), target)
    before = files(target)
    told = published(grown(tmp_path / "long", 45), target)
    after = files(target)
    with LedgerView.open(tmp_path / "long") as view:
        assert audit(target, LAB.name, PUBLIC) == (view.size, view.root())
    changed = {path for path in before if after.get(path) != before[path]}
    assert changed == {"checkpoint"}
    assert told.written == len(after) - len(before) + 1


def test_the_same_ledger_again_writes_nothing(run, tmp_path):
    published(run, tmp_path / "t")
    before = files(tmp_path / "t")
    assert published(run, tmp_path / "t").written == 0
    assert files(tmp_path / "t") == before


def test_a_damaged_file_of_the_log_is_written_again(run, tmp_path):
    target = tmp_path / "t"
    published(run, target)
    before = files(target)
    for path in (
        next((target / "tile" / "0").rglob("*.p/*")),
        next((target / "tile" / "entries").rglob("*.p/*")),
        next((target / "body").iterdir()),
        next((target / "blob").iterdir()),
    ):
        path.write_bytes(b"x")
        with pytest.raises((Wrong, ValueError)):
            audit(target, LAB.name, PUBLIC)
        published(run, target)
        assert files(target) == before


def test_events_behind_the_newest_checkpoint_are_not_published(tmp_path):
    run = make(tmp_path / "r", tasks=4, every=3, seal=False)
    told = published(run, tmp_path / "t")
    with LedgerView.open(run) as view:
        assert told.claim.checkpoint.size < view.size
        bodies = {one.address.hex() for one in view.events(0, told.claim.checkpoint.size)}
    assert {path.name for path in (tmp_path / "t" / "body").iterdir()} == bodies
    audit(tmp_path / "t", LAB.name, PUBLIC)


def test_an_earlier_signed_checkpoint_comes_before_a_later_one_that_nobody_signed(tmp_path):
    run = make(tmp_path / "r", seal=False)
    with Ledger.open(run, memory=Memory(tmp_path / "m")) as ledger:
        ledger.append(ev.AnnotationAdded(text="later", author="somebody"))
        ledger.checkpoint()
    assert published(run, tmp_path / "t").claim.signed is not None
    audit(tmp_path / "t", LAB.name, PUBLIC)


def test_without_any_signature_the_bare_checkpoint_is_there(tmp_path):
    run = make(tmp_path / "r", signers=())
    assert published(run, tmp_path / "t").claim.signed is None
    assert (tmp_path / "t" / "checkpoint").read_bytes() == notes(run)[-1]


def test_a_ledger_without_a_checkpoint_has_nothing_to_publish(tmp_path):
    (tmp_path / "r").mkdir()
    with Ledger.create(tmp_path / "r") as ledger:
        ledger.append(*say.opening("t"))
    with pytest.raises(UsageError, match="no checkpoint"):
        published(tmp_path / "r", tmp_path / "t")
    assert not (tmp_path / "t").exists()


def test_another_log_is_refused(run, tmp_path):
    with Ledger.create(_made(tmp_path / "o")) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint(OTHER)
    published(tmp_path / "o", tmp_path / "t")
    before = files(tmp_path / "t")
    with pytest.raises(ExportRefused, match="another log"):
        published(run, tmp_path / "t")
    assert files(tmp_path / "t") == before


def _made(directory):
    directory.mkdir()
    return directory


def test_another_history_of_the_log_is_refused(tmp_path):
    target = tmp_path / "t"
    published(make(tmp_path / "r"), target)
    before = files(target)
    with pytest.raises(ExportRefused, match="another history"):
        published(make(tmp_path / "o", answer="43"), target)
    assert files(target) == before


def test_a_later_state_is_not_taken_back(tmp_path):
    target = tmp_path / "t"
    published(grown(tmp_path / "long", 5), target)
    before = files(target)
    with pytest.raises(ExportRefused, match="later state"):
        published(grown(tmp_path / "short", 2), target)
    assert files(target) == before


def test_a_directory_that_holds_anything_else_is_refused(run, tmp_path):
    target = tmp_path / "t"
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    with pytest.raises(ExportRefused, match=r"notes\.txt"):
        published(run, target)
    assert files(target) == {"notes.txt": b"mine"}


def test_a_run_is_not_published_into_its_own_directory(run):
    before = {path for path in files(run) if path != "ledger.lock"}
    with pytest.raises(ExportRefused):
        published(run, run)
    assert {path for path in files(run) if path != "ledger.lock"} == before


def test_a_file_that_is_no_checkpoint_is_refused(run, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "checkpoint").write_text("1\n")
    with pytest.raises(ExportRefused, match="no checkpoint"):
        published(run, tmp_path / "t")


def test_a_link_in_the_directory_is_never_followed(run, tmp_path):
    target, outside = tmp_path / "t", tmp_path / "outside"
    outside.mkdir()
    published(run, target)
    shutil.rmtree(target / "body")
    (target / "body").symlink_to(outside)
    with pytest.raises(ExportRefused):
        published(run, target)
    assert list(outside.iterdir()) == []


class Killed(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, 5, 20])
def test_an_export_that_was_killed_published_nothing_and_is_finished_later(
    run, tmp_path, monkeypatch, after
):
    target, written = tmp_path / "t", []
    replace = Folder.replace

    def killing(self, file, **how):
        if len(written) == after:
            raise Killed
        written.append(file.path)
        return replace(self, file, **how)

    monkeypatch.setattr(Folder, "replace", killing)
    with pytest.raises(Killed):
        published(run, target)
    monkeypatch.undo()
    assert not (target / "checkpoint").exists()
    # What a killed export of another log may have left.
    (target / "tile" / "0" / "000.p").mkdir(parents=True, exist_ok=True)
    (target / "tile" / "0" / "000.p" / "255").write_bytes(b"x")
    published(run, target)
    audit(target, LAB.name, PUBLIC)
    whole = files(target)
    shutil.rmtree(target)
    published(run, target)
    assert whole == files(target)


def test_the_checkpoint_is_written_after_everything_that_it_covers(run, tmp_path, monkeypatch):
    order = []
    replace, sync = Folder.replace, Folder.sync

    def replacing(self, file, *, durable=True):
        order.append((file.path, durable))
        return replace(self, file, durable=durable)

    monkeypatch.setattr(Folder, "replace", replacing)
    monkeypatch.setattr(Folder, "sync", lambda self: (order.append("names"), sync(self))[1])
    monkeypatch.setattr(os, "sync", lambda: order.append("everything"))
    published(run, tmp_path / "t")
    *before, checkpoint, last = order
    assert (checkpoint, last) == (("checkpoint", True), "names")
    # Either each file was synced when it was written, or all at once.
    settled = [step for step in before if not isinstance(step, tuple)]
    assert settled in (["names"], ["names", "everything"])
    assert before[-len(settled) :] == settled
    each = all(step[1] for step in before if isinstance(step, tuple))
    assert each or settled == ["names", "everything"]
    assert order.count(checkpoint) == 1


def test_a_checkpoint_with_another_root_is_never_published(tmp_path, monkeypatch):
    run, other = make(tmp_path / "r"), make(tmp_path / "o", answer="43")
    lying = notes(other)[-1].decode()
    size = sidefile.parse(lying.encode()).checkpoint.size
    with LedgerView.open(run) as view:
        monkeypatch.setattr(view, "published", lambda: iter([(size, lying)]), raising=False)
        with pytest.raises(ProofInvalid, match="another root"):
            publish(view, tmp_path / "t")
    assert not (tmp_path / "t" / "checkpoint").exists()


def erased(run, *sequence, sign):
    """Erase the bodies of events, with the pieces that only they needed."""
    with Ledger.open(run, memory=Memory(run / "memory"), amends=True) as ledger:
        gone = ledger.erase(sequence, reason="asked for")
        if sign:
            ledger.checkpoint(LAB)
    return gone


def first_result(run):
    with LedgerView.open(run) as view:
        return next(one for one in view.events() if isinstance(one.event, ev.ResultRecorded))


@pytest.mark.parametrize("sign", [True, False])
@pytest.mark.parametrize("published_before", [True, False])
def test_what_was_erased_is_not_there_any_more_and_the_log_still_holds(
    tmp_path, sign, published_before
):
    run = make(tmp_path / "r", tasks=1, every=1, answer="a" * 5000)
    target, result = tmp_path / "t", first_result(run)
    pieces = [digest.hex() for digest in result.event.final_answer.pieces]
    if published_before:
        published(run, target)
        assert all((target / "blob" / one).exists() for one in pieces)
    erased(run, result.seq, sign=sign)
    told = published(run, target)
    assert told.erased == [result.seq]
    assert not (target / "body" / result.address.hex()).exists()
    assert pieces
    assert not any((target / "blob" / one).exists() for one in pieces)
    audit(target, LAB.name, PUBLIC)


def test_as_an_exporter_it_gives_the_same_files(run, tmp_path):
    published(run, tmp_path / "t")
    with LedgerView.open(run) as view:
        state = fold(view.events())
        given = {}
        for file in export_tiles(state, view):
            assert isinstance(file.data, bytes)
            given[file.path] = file.data
            last = file.path
    assert last == "checkpoint"
    assert given == files(tmp_path / "t")


def test_as_an_exporter_it_needs_a_checkpoint_of_that_size(tmp_path):
    run = make(tmp_path / "r", seal=False)
    with LedgerView.open(run) as view:
        state = fold(view.events(0, view.size - 1))
        with pytest.raises(UsageError, match="no checkpoint"):
            list(export_tiles(state, view))


def test_files_under_a_digest_have_it(run, tmp_path):
    published(run, tmp_path / "t")
    named = [path for kind in ("body", "blob") for path in (tmp_path / "t" / kind).iterdir()]
    assert len(named) > 10
    for path in named:
        assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == path.name
