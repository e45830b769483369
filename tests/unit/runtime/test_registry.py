"""Every run is entered in the registry of its results directory, or says that it is not."""

import errno
import fcntl
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import (
    LedgerLocked,
    LedgerRolledBack,
    LedgerStateError,
    NotStored,
    RunNotFound,
    UsageError,
)
from ledger.keys import SigningKey
from ledger.opening import LEDGER_NAME
from ledger.store import Ledger
from ledger.verify import verify
from runtime import record
from runtime.redact import Redactor
from runtime.registry import (
    REGISTERED,
    UNREGISTERED,
    Registration,
    Registry,
    complete,
    find_results_dir,
    registry_file,
    request_digest,
)
from runtime.registry.owed import entries_of
from runtime.registry.places import locate
from runtime.registry.waiting import Word, leave_word, take_back
from runtime.surroundings import Surroundings
from tests.events_of import attempt, created, ending, opening, whole_task
from tests.ledger_checks import check_ledger


def around(**more: object) -> Surroundings:
    return Surroundings(**{"environ": {}, "registry_wait": 0.2, **more})


def run(results: Path, **more: object) -> Path:
    """Record a small run; return its directory."""
    surroundings = around(**more)
    with (
        record(results, benchmark="mine", model="m", surroundings=surroundings) as recording,
        recording.attempt("1+1") as one,
    ):
        one.result(2)
        one.evaluation(correct=True)
    return recording.path


def entries(results: Path) -> list[ev.AnyEvent]:
    check_ledger(registry_file(results))
    with LedgerView.open(registry_file(results)) as view:
        return [recorded.event for recorded in view.events()]


def types(results: Path) -> list[tuple[str, str]]:
    return [(entry.type, entry.run_id) for entry in entries(results)]


def extensions(directory: Path) -> dict[str, object]:
    with LedgerView.open(directory) as view:
        events = [recorded.event for recorded in view.events()]
    return {e.name: e.payload for e in events if isinstance(e, ev.ExtensionRecorded)}


@contextmanager
def held(results: Path) -> Iterator[None]:
    """The lock of the registry, held by somebody who does not let go."""
    results.mkdir(exist_ok=True)
    file = os.open(results / "registry.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(file)


def half_run(results: Path, name: str = "half", *, sealed: bool = False) -> Path:
    """A run that was not recorded by a program that enters runs."""
    directory = results / "mine" / "m" / name
    directory.mkdir(parents=True)
    with Ledger.create(directory) as ledger:
        ledger.append(*opening("t"), *whole_task("t", attempt("t")), *ending())
        if sealed:
            ledger.seal()
    return directory


# -- entering ----------------------------------------------------------------------------------


def test_a_run_is_entered_when_opened_and_when_sealed(tmp_path: Path) -> None:
    directory = run(tmp_path)
    opened, sealed = entries(tmp_path)
    with LedgerView.open(directory) as view:
        first, ledger_id, size, root = view.event(0), view.ledger_id, view.size, view.root()
        notes = [note for _, note in view.checkpoints()]
    path = directory.relative_to(tmp_path).as_posix()
    assert opened == ev.RegistryOpened(
        run_id=directory.name,
        path=path,
        ledger_id=ledger_id.hex(),
        request_digest=request_digest(first.event.request),
        planned_tasks=0,
        k=1,
    )
    assert sealed == ev.RegistrySealed(
        run_id=directory.name,
        path=path,
        ledger_id=ledger_id.hex(),
        size=size,
        root=root.hex(),
        checkpoint=notes[-1],
    )


def test_the_plan_is_entered_before_the_first_event(tmp_path: Path) -> None:
    with record(
        tmp_path, benchmark="b", model="m", k=3, tasks=["a", "b"], surroundings=around()
    ) as recording:
        (opened,) = entries(tmp_path)
        with LedgerView.open(recording.path) as view:
            began = view.event(0).wall_ns
    assert (opened.planned_tasks, opened.k) == (2, 3)
    with LedgerView.open(registry_file(tmp_path)) as view:
        assert view.event(0).wall_ns < began


def test_a_run_says_where_it_was_entered(tmp_path: Path) -> None:
    run(tmp_path)
    told = extensions(run(tmp_path))[REGISTERED]
    with LedgerView.open(registry_file(tmp_path)) as view:
        assert told == {
            "registry": view.ledger_id.hex(),
            "seq": 2,
            "size": 3,
            "root": view.root(3).hex(),
        }


def test_each_entry_is_covered_by_a_checkpoint(tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path)
    with LedgerView.open(registry_file(tmp_path)) as view:
        assert [size for size, _ in view.checkpoints()] == [1, 2, 3, 4]


def test_secrets_of_a_request_are_not_in_its_digest(tmp_path: Path) -> None:
    """Else whoever guesses a short secret could tell that it is the one."""
    with_secret = created("r", note="hunter2-secret-value")
    directory = tmp_path / "b" / "r"
    registration = Registration(Registry(tmp_path), directory, bytes(16))
    registration.open(with_secret, Redactor({}, ["hunter2-secret-value"]), 1)
    (opened,) = entries(tmp_path)
    assert opened.request_digest != request_digest(with_secret.request)


def test_two_results_directories_have_a_registry_each(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    first, second = run(one), run(other)
    assert types(one) == [("registry.opened", first.name), ("registry.sealed", first.name)]
    assert types(other) == [("registry.opened", second.name), ("registry.sealed", second.name)]
    assert find_results_dir(first) == one


@pytest.mark.parametrize(
    "name", ["with space", "ünïcode ✓", "line\nbreak", os.fsdecode(b"\xff\xfe")]
)
def test_paths_and_run_ids_of_any_characters_are_entered(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name / name
    directory.mkdir(parents=True)
    with Ledger.create(directory) as ledger:
        registration = Registration(Registry(tmp_path), directory, ledger.ledger_id)
        registration.open(created(name), Redactor({}), 1)
        ledger.append(created(name), ev.RunStarted())
        ledger.append(ev.RunFinished(status="failed", exit_code=1))
        ledger.seal()
    registration.seal()
    assert registration.fault is None
    opened, sealed = entries(tmp_path)
    assert opened.run_id == sealed.run_id == name
    assert opened.path == sealed.path == f"{name}/{name}"
    assert locate(tmp_path, opened.path) == directory


# -- what cannot be entered --------------------------------------------------------------------


def test_a_run_that_waits_in_vain_goes_on_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with held(tmp_path), caplog.at_level(logging.ERROR):
        directory = run(tmp_path)
    reason = extensions(directory)[UNREGISTERED]["reason"]
    assert "is being written" in reason
    assert "the run is not in the registry" in (directory / "run.log").read_text()
    check_ledger(directory / LEDGER_NAME)


def test_a_run_that_was_not_entered_is_entered_by_the_next(tmp_path: Path) -> None:
    with held(tmp_path):
        first = run(tmp_path)
    second = run(tmp_path)
    assert sorted(types(tmp_path)) == sorted(
        (kind, one.name)
        for one in (first, second)
        for kind in ("registry.opened", "registry.sealed")
    )
    assert list((tmp_path / "registry.waiting").iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_what_stands_where_runs_wait_is_named_and_left_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    waiting, elsewhere = tmp_path / "registry.waiting", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "file":
        waiting.write_text("mine")
    elif kind == "link":
        waiting.symlink_to(elsewhere)
    else:
        os.mkfifo(waiting)
    with held(tmp_path), caplog.at_level(logging.ERROR):
        directory = run(tmp_path)
    assert f"{waiting} is not a directory" in (directory / "run.log").read_text()
    assert list(elsewhere.iterdir()) == []
    (elsewhere / "00").write_text("theirs")
    take_back(tmp_path, "00")
    assert (elsewhere / "00").exists()
    check_ledger(directory / LEDGER_NAME)


def test_a_run_whose_registry_is_free_again_enters_itself_at_its_end(tmp_path: Path) -> None:
    with held(tmp_path):
        recording = record(tmp_path, benchmark="mine", model="m", surroundings=around())
        one = recording.__enter__()
    recording.__exit__(None, None, None)
    assert types(tmp_path) == [("registry.opened", one.run_id), ("registry.sealed", one.run_id)]


def test_a_required_registry_is_missed_before_any_attempt(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(UsageError, match="not in the registry") as raised:
        run(tmp_path, require_registry=True)
    assert raised.value.exit_status == 2
    (ledger,) = tmp_path.rglob(LEDGER_NAME)
    with LedgerView.open(ledger) as view:
        kinds = [recorded.type for recorded in view.events()]
        finished = next(e.event for e in view.events() if e.type == "run.finished")
    assert "attempt.started" not in kinds
    assert kinds[-1] == "ledger.sealed"
    assert (finished.status, finished.exit_code) == ("failed", 2)


def flip_a_byte(results: Path) -> None:
    file = registry_file(results)
    data = bytearray(file.read_bytes())
    place = data.index(b"SQLite")  # the header of the file
    data[place] ^= 1
    file.write_bytes(bytes(data))


def no_database(results: Path) -> None:
    registry_file(results).write_bytes(b"not a database" * 100)


def taken_away(results: Path) -> None:
    registry_file(results).unlink()


def a_link(results: Path) -> None:
    shutil.move(registry_file(results), results / "elsewhere.sqlite")
    registry_file(results).symlink_to(results / "elsewhere.sqlite")


def a_directory(results: Path) -> None:
    registry_file(results).unlink()
    registry_file(results).mkdir()


def an_older_copy(results: Path) -> None:
    copy = registry_file(results).read_bytes()
    run(results)
    registry_file(results).write_bytes(copy)


def a_wal_that_is_a_directory(results: Path) -> None:
    (results / "registry.sqlite-wal").mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_byte,
        no_database,
        taken_away,
        a_link,
        a_directory,
        an_older_copy,
        a_wal_that_is_a_directory,
    ],
)
def test_a_registry_that_cannot_be_trusted_does_not_stop_a_run(
    tmp_path: Path, damage: object
) -> None:
    run(tmp_path)
    damage(tmp_path)
    directory = run(tmp_path)
    assert "registry." in extensions(directory)[UNREGISTERED]["reason"]
    check_ledger(directory / LEDGER_NAME)
    assert [path.name for path in (tmp_path / "registry.waiting").iterdir()]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_does_not_stop_a_run(tmp_path: Path) -> None:
    directory = tmp_path / "b" / "r"
    directory.mkdir(parents=True)
    tmp_path.chmod(0o555)
    try:
        registration = Registration(Registry(tmp_path), directory, bytes(16))
        registration.open(created("r"), Redactor({}), 1)
    finally:
        tmp_path.chmod(0o755)
    assert registration.fault is not None


def test_a_registry_older_than_what_our_key_signed_is_not_gone_on_with(tmp_path: Path) -> None:
    """With all that is beside it, so that only the signer's own memory tells."""
    key = SigningKey.generate("lab")
    run(tmp_path, signers=[key])
    older = {path: path.read_bytes() for path in tmp_path.glob("registry.*")}
    run(tmp_path, signers=[key])
    for path, data in older.items():
        path.write_bytes(data)
    directory = run(tmp_path, signers=[key])
    assert "another tree was signed" in extensions(directory)[UNREGISTERED]["reason"]
    assert len(entries(tmp_path)) == 2


def test_each_entry_is_signed_by_the_keys_of_its_run(tmp_path: Path) -> None:
    lab, other = SigningKey.generate("lab"), SigningKey.generate("other")
    run(tmp_path, signers=[lab])
    run(tmp_path, signers=[other])
    run(tmp_path)
    run(tmp_path, signers=[lab, other])
    found = list(verify(registry_file(tmp_path), verifiers=[lab.verifier, other.verifier]))
    assert [finding for finding in found if finding.severity == "broken"] == []
    told = {finding.message for finding in found if finding.code == "signed"}
    assert told == {f"the first 8 events are signed by {name}" for name in ("lab", "other")}


def test_a_registry_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    run(tmp_path)
    registry_file(tmp_path).unlink()
    with pytest.raises(LedgerRolledBack):
        Registry(tmp_path).enter(*entries_of_nobody())


def entries_of_nobody() -> list[ev.RegistryOpened]:
    return [
        ev.RegistryOpened(
            run_id="r",
            path="a/r",
            ledger_id="11" * 16,
            request_digest="00" * 32,
            planned_tasks=1,
            k=1,
        )
    ]


# -- what runs left to the next ----------------------------------------------------------------


def test_a_run_that_died_before_it_entered_its_seal_is_completed(tmp_path: Path) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        ledger_id = view.ledger_id
    Registration(Registry(tmp_path), directory, ledger_id).open(created("r1"), Redactor({}), 1)
    other = run(tmp_path)
    assert ("registry.sealed", "r1") not in types(tmp_path)
    with Ledger.open(directory) as ledger:
        ledger.seal()
    third = run(tmp_path)
    assert types(tmp_path)[-3:] == [
        ("registry.opened", third.name),
        ("registry.sealed", "r1"),
        ("registry.sealed", third.name),
    ]
    assert ("registry.sealed", other.name) in types(tmp_path)


def test_a_seal_that_another_run_entered_is_not_entered_again(tmp_path: Path) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        registration = Registration(Registry(tmp_path), directory, view.ledger_id)
    registration.open(created("r1"), Redactor({}), 1)
    with Ledger.open(directory) as ledger:
        ledger.seal()
    run(tmp_path)
    registration.seal()
    assert types(tmp_path).count(("registry.sealed", "r1")) == 1


def test_it_is_completed_also_where_what_was_kept_is_lost(tmp_path: Path) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        Registration(Registry(tmp_path), directory, view.ledger_id).open(
            created("r1"), Redactor({}), 1
        )
    with Ledger.open(directory) as ledger:
        ledger.seal()
    (tmp_path / "registry.resume").unlink()
    run(tmp_path)  # reads the registry whole
    run(tmp_path)
    assert ("registry.sealed", "r1") in types(tmp_path)


def test_sealing_an_interrupted_run_completes_its_entry(tmp_path: Path) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        Registration(Registry(tmp_path), directory, view.ledger_id).open(
            created("r1"), Redactor({}), 1
        )
    with Ledger.open(directory) as ledger:
        ledger.seal()
    told: list[str] = []
    complete(directory, tell=told.append)
    assert told == []
    assert types(tmp_path) == [("registry.opened", "r1"), ("registry.sealed", "r1")]


def test_a_run_below_no_registry_is_not_completed(tmp_path: Path) -> None:
    directory = half_run(tmp_path, sealed=True)
    complete(directory, tell=pytest.fail)
    assert not registry_file(tmp_path).exists()


def test_a_run_that_is_not_sealed_is_looked_at_again_later(tmp_path: Path) -> None:
    directories = [half_run(tmp_path, f"half {n}") for n in range(20)]
    for directory in directories:
        with LedgerView.open(directory) as view:
            Registration(Registry(tmp_path), directory, view.ledger_id).open(
                created(directory.name), Redactor({}), 1
            )
    for directory in directories:
        with Ledger.open(directory) as ledger:
            ledger.seal()
    run(tmp_path)
    run(tmp_path)
    sealed = {run_id for kind, run_id in types(tmp_path) if kind == "registry.sealed"}
    assert {directory.name for directory in directories} < sealed


@pytest.mark.parametrize(
    "path", ["../outside", "/etc", "mine/../../outside", "", ".", "a//b", "a\0b", "link/run"]
)
def test_a_registry_cannot_name_places_elsewhere(tmp_path: Path, path: str) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "link").symlink_to(tmp_path)
    assert locate(results, path) is None


def test_a_seal_that_waits_and_is_looked_for_as_well_is_entered_once(tmp_path: Path) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        registration = Registration(Registry(tmp_path, wait=0.0), directory, view.ledger_id)
    registration.open(created("r1"), Redactor({}), 1)
    with Ledger.open(directory) as ledger:
        ledger.seal()
    with held(tmp_path):
        registration.seal()
    assert types(tmp_path) == [("registry.opened", "r1")]
    assert list((tmp_path / "registry.waiting").iterdir())
    run(tmp_path)
    assert types(tmp_path).count(("registry.sealed", "r1")) == 1
    assert not list((tmp_path / "registry.waiting").iterdir())


def test_a_seal_that_cannot_be_read_now_is_entered_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Registration) -> list[ev.AnyEvent]:
        raise OSError(errno.EIO, "the disk fails")

    with monkeypatch.context() as patch:
        patch.setattr(Registration, "_entries", fails)
        first = run(tmp_path)
    assert types(tmp_path) == [("registry.opened", first.name)]
    run(tmp_path)
    assert types(tmp_path).count(("registry.sealed", first.name)) == 1


def test_what_waits_is_entered_only_if_the_ledger_is_the_one_that_waits(tmp_path: Path) -> None:
    path = half_run(tmp_path, sealed=True).relative_to(tmp_path).as_posix()
    (opened,) = entries_of_nobody()
    for ledger_id, place in (("22" * 16, path), ("33" * 16, "../../etc"), ("44" * 16, "mine/gone")):
        entry = opened.model_copy(update={"ledger_id": ledger_id, "path": place})
        assert leave_word(tmp_path, Word(since=0, entries=(entry,)), durable=True) is None
    folder = tmp_path / "registry.waiting"
    (folder / ("55" * 16)).write_bytes((folder / ("22" * 16)).read_bytes())
    (folder / "66").write_bytes(b"\xff[")
    (folder / "77").write_text(json.dumps({"since": 0, "entries": []}))
    (folder / "88").write_text("[" * 60_000)
    other = run(tmp_path)
    assert {run_id for _, run_id in types(tmp_path)} == {other.name}
    assert len(list(folder.iterdir())) == 7


def test_a_word_that_became_void_is_removed_after_an_hour(tmp_path: Path) -> None:
    folder = tmp_path / "registry.waiting"
    folder.mkdir()
    for name, age in (("young", 0.0), ("old", 2 * 3600.0)):
        (folder / name).write_text("no word")
        then = time.time() - age
        os.utime(folder / name, (then, then))
    run(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["young"]


def test_a_memo_that_is_none_is_not_believed(tmp_path: Path) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        Registration(Registry(tmp_path), directory, view.ledger_id).open(
            created("r1"), Redactor({}), 1
        )
    kept = tmp_path / "registry.resume"
    document = json.loads(kept.read_text())
    with Ledger.open(directory) as ledger:
        ledger.seal()
    for memo in (None, [], {"unsealed": 3}, {"unsealed": [[1, 2, 3]]}, {"unsealed": [["a"]]}):
        kept.write_text(json.dumps({**document, "memo": memo}))
        run(tmp_path)
        kept_now = json.loads(kept.read_text())
        document = kept_now
    assert ("registry.sealed", "r1") in types(tmp_path)


def test_nothing_to_enter_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path)
    before = entries(tmp_path)
    assert Registry(tmp_path).enter() is None
    assert entries(tmp_path) == before


def test_an_empty_registry_is_gone_on_with(tmp_path: Path) -> None:
    """A run died after it had made the file, and before its entry."""
    Ledger.create(registry_file(tmp_path)).close()
    with pytest.raises(RunNotFound):
        LedgerView.open(registry_file(tmp_path))
    directory = run(tmp_path)
    assert types(tmp_path)[0] == ("registry.opened", directory.name)


def test_a_run_that_was_left_in_the_middle_is_looked_at_once_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands beside a ledger whose writer died is evidence, its -shm file too."""
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        Registration(Registry(tmp_path), directory, view.ledger_id).open(
            created("r1"), Redactor({}), 1
        )
    with Ledger.open(directory) as ledger:
        ledger.append(ev.AnnotationAdded(text="seen", author="auditor"))
        copied = {path.name: path.read_bytes() for path in directory.iterdir()}
    for name, data in copied.items():
        (directory / name).write_bytes(data)
    looks: list[Path] = []
    opens = LedgerView.open

    def spy(path: Path, **how: object) -> LedgerView:
        looks.append(Path(path))
        return opens(path, **how)

    monkeypatch.setattr(LedgerView, "open", spy)
    for _ in range(3):
        run(tmp_path)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == copied
    assert looks.count(directory) == 1


def test_a_run_that_somebody_else_entered_meanwhile_is_not_entered_again(tmp_path: Path) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        ledger_id = view.ledger_id
    registration = Registration(Registry(tmp_path, wait=0.0), directory, ledger_id)
    with held(tmp_path):
        registration.open(created("r1"), Redactor({}), 1)
    assert registration.fault is not None
    with Ledger.open(directory) as ledger:
        ledger.seal()
    other = run(tmp_path)
    registration.seal()
    assert sorted(types(tmp_path)) == sorted(
        (kind, run_id)
        for run_id in ("r1", other.name)
        for kind in ("registry.opened", "registry.sealed")
    )


def test_a_run_that_waits_although_it_was_entered_is_not_entered_again(tmp_path: Path) -> None:
    """Who entered it died before the word that it waits was taken back."""
    with held(tmp_path):
        first = run(tmp_path)
    (word,) = (tmp_path / "registry.waiting").iterdir()
    content = word.read_bytes()
    run(tmp_path)
    word.write_bytes(content)
    run(tmp_path)
    assert [kind for kind, run_id in types(tmp_path) if run_id == first.name] == [
        "registry.opened",
        "registry.sealed",
    ]
    assert not word.exists()


def test_a_run_that_waits_although_it_was_entered_is_completed_when_it_is_sealed(
    tmp_path: Path,
) -> None:
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        registration = Registration(Registry(tmp_path, wait=0.0), directory, view.ledger_id)
    with held(tmp_path):
        registration.open(created("r1"), Redactor({}), 1)
    (word,) = (tmp_path / "registry.waiting").iterdir()
    content = word.read_bytes()
    run(tmp_path)
    with Ledger.open(directory) as ledger:
        ledger.seal()
    word.write_bytes(content)
    run(tmp_path)
    assert [kind for kind, run_id in types(tmp_path) if run_id == "r1"] == [
        "registry.opened",
        "registry.sealed",
    ]
    assert not word.exists()


def test_a_word_of_a_registry_that_was_longer_enters_nobody_twice(tmp_path: Path) -> None:
    """The registry was moved away and begun anew while the word was there."""
    directory = half_run(tmp_path, sealed=True)
    path = directory.relative_to(tmp_path).as_posix()
    run(tmp_path)
    complete(directory, tell=pytest.fail)
    word = Word(since=1000, entries=tuple(entries_of(directory, path)))
    assert leave_word(tmp_path, word, durable=True) is None
    run(tmp_path)
    assert [kind for kind, run_id in types(tmp_path) if run_id == "r1"] == [
        "registry.opened",
        "registry.sealed",
    ]


def test_completing_a_run_twice_enters_it_once(tmp_path: Path) -> None:
    run(tmp_path)
    directory = half_run(tmp_path, sealed=True)
    complete(directory, tell=pytest.fail)
    complete(directory, tell=pytest.fail)
    assert [kind for kind, run_id in types(tmp_path) if run_id == "r1"] == [
        "registry.opened",
        "registry.sealed",
    ]


# -- many who wait -----------------------------------------------------------------------------


def waiting_for(results: Path, *, kind: type[Registry] = Registry, **more: object) -> Registration:
    """A run whose ledger is there, and that will ask to be entered."""
    directory = results / "mine" / "m" / f"run {len(list(results.rglob(LEDGER_NAME)))}"
    directory.mkdir(parents=True)
    with Ledger.create(directory) as ledger:
        return Registration(kind(results, **more), directory, ledger.ledger_id)


def enter_all(results: Path, registrations: list[Registration]) -> None:
    """Have all of them wait for the lock at once, and let go of it then."""
    with ExitStack() as stack:
        lock = stack.enter_context(ExitStack())
        lock.enter_context(held(results))
        pool = stack.enter_context(ThreadPoolExecutor(len(registrations)))
        done = [
            pool.submit(one.open, created(f"r{number}"), Redactor({}), 1)
            for number, one in enumerate(registrations)
        ]
        wait_for_words(results, len(registrations))
        lock.close()
        for one in done:
            one.result()


def wait_for_words(results: Path, count: int) -> None:
    folder = results / "registry.waiting"
    while not folder.exists() or len(words_in(folder)) < count:
        time.sleep(0.01)


def words_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix != ".new"]


def test_whoever_has_the_lock_enters_all_who_wait_in_one_turn(tmp_path: Path) -> None:
    registrations = [waiting_for(tmp_path) for _ in range(8)]
    enter_all(tmp_path, registrations)
    assert sorted(types(tmp_path)) == [("registry.opened", f"r{number}") for number in range(8)]
    assert [one.fault for one in registrations] == [None] * 8
    with LedgerView.open(registry_file(tmp_path)) as view:
        assert [size for size, _ in view.checkpoints()] == [8]
        for number, one in enumerate(registrations):
            told = one.told()
            assert told.name == REGISTERED
            assert view.event(told.payload["seq"]).event.run_id == f"r{number}"
            assert told.payload["registry"] == view.ledger_id.hex()
            assert told.payload["size"] == 8
            assert told.payload["root"] == view.root(8).hex()
    assert not words_in(tmp_path / "registry.waiting")


def test_who_is_entered_by_a_run_of_another_key_signs_too(tmp_path: Path) -> None:
    keys = [SigningKey.generate(f"lab{number}") for number in range(3)]
    registrations = [waiting_for(tmp_path, signers=[key]) for key in keys]
    enter_all(tmp_path, [*registrations, waiting_for(tmp_path)])
    assert len(entries(tmp_path)) == 4
    assert [one.fault for one in registrations] == [None] * 3
    found = list(verify(registry_file(tmp_path), verifiers=[key.verifier for key in keys]))
    assert [finding for finding in found if finding.severity == "broken"] == []
    told = {finding.message for finding in found if finding.code == "signed"}
    assert told == {f"the first 4 events are signed by {key.name}" for key in keys}


def test_an_entry_that_another_run_made_and_did_not_cover_is_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who entered it died between its commit and its checkpoint."""
    first, second = waiting_for(tmp_path), waiting_for(tmp_path, wait=0.0)
    with held(tmp_path):
        second.open(created("second"), Redactor({}), 1)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Registry, "_checkpoint", dies)
        with pytest.raises(KeyboardInterrupt):
            first.open(created("first"), Redactor({}), 1)
    assert types(tmp_path) == [("registry.opened", "first"), ("registry.opened", "second")]
    second.open(created("second"), Redactor({}), 1)
    assert len(entries(tmp_path)) == 2
    assert second.fault is None
    with LedgerView.open(registry_file(tmp_path)) as view:
        assert [size for size, _ in view.checkpoints()] == [2]
        told = second.told().payload
        assert (told["seq"], told["size"], told["root"]) == (1, 2, view.root(2).hex())
    assert not words_in(tmp_path / "registry.waiting")


def test_words_stay_where_what_they_ask_for_was_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = waiting_for(tmp_path), waiting_for(tmp_path, wait=0.0)
    with held(tmp_path):
        second.open(created("second"), Redactor({}), 1)
    with monkeypatch.context() as patch:
        failure = NotStored("the disk is full")
        patch.setattr(Ledger, "append_group", lambda _, batches: [failure] * len(batches))
        first.open(created("first"), Redactor({}), 1)
    assert first.fault == "the disk is full"
    assert len(words_in(tmp_path / "registry.waiting")) == 2
    run(tmp_path)
    assert {("registry.opened", "first"), ("registry.opened", "second")} < set(types(tmp_path))
    assert not words_in(tmp_path / "registry.waiting")


def test_a_word_stays_where_the_registry_takes_only_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = waiting_for(tmp_path), waiting_for(tmp_path, wait=0.0)
    with held(tmp_path):
        second.open(created("second"), Redactor({}), 1)
    real = Ledger.append_group

    def takes_one(ledger: Ledger, batches: list[list[ev.AnyEvent]]) -> list[object]:
        failure = LedgerStateError("no")
        return [*real(ledger, batches[:1]), *(failure for _ in batches[1:])]

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append_group", takes_one)
        first.open(created("first"), Redactor({}), 1)
    assert types(tmp_path) == [("registry.opened", "first")]
    assert len(words_in(tmp_path / "registry.waiting")) == 1
    second.open(created("second"), Redactor({}), 1)
    assert types(tmp_path) == [("registry.opened", "first"), ("registry.opened", "second")]


class Behind(Registry):
    """Somebody else has the lock, whenever it is asked for."""

    def _open(self, path: Path) -> Ledger:
        raise LedgerLocked(str(path), "somebody")


def test_who_was_entered_by_another_goes_on_without_the_lock(tmp_path: Path) -> None:
    first, second = waiting_for(tmp_path), waiting_for(tmp_path, kind=Behind)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(second.open, created("second"), Redactor({}), 1)
        wait_for_words(tmp_path, 1)
        first.open(created("first"), Redactor({}), 1)
        done.result()
    assert second.fault is None
    assert types(tmp_path) == [("registry.opened", "first"), ("registry.opened", "second")]
    assert second.told().payload["seq"] == 1


def test_a_seal_is_not_entered_where_the_run_is_not(tmp_path: Path) -> None:
    """The registry was moved away and begun anew while the run went on."""
    directory = half_run(tmp_path)
    with LedgerView.open(directory) as view:
        registration = Registration(Registry(tmp_path), directory, view.ledger_id)
    registration.open(created("r1"), Redactor({}), 1)
    for path in tmp_path.glob("registry.*"):
        path.unlink() if path.is_file() else path.rmdir()
    other = run(tmp_path)
    with Ledger.open(directory) as ledger:
        ledger.seal()
    registration.seal()
    assert {run_id for _, run_id in types(tmp_path)} == {other.name}
