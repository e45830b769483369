"""Writing exports to a disk: whole, or not at all."""

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import exporters.write
from exporters import OutFile
from exporters.folder import Folder
from exporters.identity import Identity
from exporters.write import clear_abandoned, lock_stage, write_tree
from ledger.errors import ExportRefused, LedgerDamaged

IDENTITY = Identity("run-1", "ab" * 16, 10, "cd" * 32)
OTHER = Identity("run-2", "ef" * 16, 10, "cd" * 32)


def write(
    target: Path,
    files: Iterable[OutFile],
    identity: Identity = IDENTITY,
    layout: str = "details",
    home: Path | None = None,
) -> list[str]:
    entries = write_tree(files, target, identity=identity, layout=layout, home=home)
    return [entry.path for entry in entries]


def tree(root: Path) -> dict[str, bytes]:
    """Everything below a directory but its manifest."""
    found = {p.relative_to(root).as_posix(): p for p in root.rglob("*") if not p.is_dir()}
    return {name: path.read_bytes() for name, path in found.items() if name != "MANIFEST.json"}


def owned(**more: object) -> bytes:
    """A JSON file that says it is of the run of IDENTITY."""
    return json.dumps({**more, "acl": IDENTITY.trailer()}).encode()


TWO = [OutFile("a.json", b"one"), OutFile("details/b.json", [b"tw", b"o"])]


def test_a_first_export_has_its_files_and_a_manifest(tmp_path: Path) -> None:
    target = tmp_path / "new" / "out"
    assert write(target, TWO) == ["a.json", "details/b.json", "MANIFEST.json"]
    assert tree(target) == {"a.json": b"one", "details/b.json": b"two"}
    manifest = json.loads((target / "MANIFEST.json").read_text())
    assert manifest["files"] == [
        {
            "path": "a.json",
            "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
            "size": 3,
        },
        {
            "path": "details/b.json",
            "sha256": "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
            "size": 3,
        },
    ]
    assert manifest["layout"] == "details"
    assert manifest["acl"] == IDENTITY.trailer()
    assert [path.name for path in target.parent.iterdir()] == ["out"]


def test_an_empty_directory_becomes_the_export_and_keeps_its_mode(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir(mode=0o750)
    write(target, TWO)
    assert target.stat().st_mode & 0o777 == 0o750
    assert tree(target)["a.json"] == b"one"


def test_nothing_has_its_final_name_before_all_of_it_is_written(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def files() -> Iterator[OutFile]:
        yield OutFile("a.json", b"one")
        assert not target.exists()
        yield OutFile("b.json", b"two")
        assert not target.exists()

    write(target, files())
    assert set(tree(target)) == {"a.json", "b.json"}


def test_a_projection_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def files() -> Iterator[OutFile]:
        yield OutFile("a.json", b"one")
        raise LedgerDamaged("event 3")

    with pytest.raises(LedgerDamaged):
        write(tmp_path / "out", files())
    assert list(tmp_path.iterdir()) == []


def test_a_projection_that_fails_leaves_the_earlier_export_as_it_was(tmp_path: Path) -> None:
    def files() -> Iterator[OutFile]:
        yield OutFile("a.json", b"changed")
        raise LedgerDamaged("event 3")

    write(tmp_path / "out", TWO)
    before = tree(tmp_path)
    with pytest.raises(LedgerDamaged):
        write(tmp_path / "out", files())
    assert tree(tmp_path) == before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "MANIFEST.json",
        "a.json",
        "details",
    ]


def test_an_export_of_the_same_run_is_brought_up_to_date(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, [*TWO, OutFile("details/_error_b.json", b"error")])
    write(target, [OutFile("a.json", b"newer"), OutFile("retry_details/c.json", b"c")])
    assert tree(target) == {"a.json": b"newer", "retry_details/c.json": b"c"}
    manifest = json.loads((target / "MANIFEST.json").read_text())
    assert [listed["path"] for listed in manifest["files"]] == ["a.json", "retry_details/c.json"]


def test_the_manifest_is_the_last_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    write(target, TWO)
    moved = []
    take = Folder.take

    def watch(self: Folder, other: Folder, path: str) -> None:
        moved.append(path)
        take(self, other, path)

    monkeypatch.setattr(Folder, "take", watch)
    write(target, [OutFile("z.json", b"z"), OutFile("MANIFEST.json.txt", b"no manifest")])
    assert moved == ["z.json", "MANIFEST.json.txt", "MANIFEST.json"]
    assert set(tree(target)) == {"z.json", "MANIFEST.json.txt"}


def test_another_runs_export_is_refused_untouched(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, TWO)
    before = (tree(target), (target / "MANIFEST.json").read_bytes())
    with pytest.raises(ExportRefused, match="another run"):
        write(target, TWO, OTHER)
    assert (tree(target), (target / "MANIFEST.json").read_bytes()) == before


def test_another_layout_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "out", TWO)
    with pytest.raises(ExportRefused, match="layout 'details'"):
        write(tmp_path / "out", TWO, layout="jobs")


def test_a_directory_with_anything_unknown_is_refused_and_the_file_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ExportRefused, match=r"notes\.txt"):
        write(tmp_path, TWO)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_unknown_file_beside_an_earlier_export_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, TWO)
    (target / "details" / "mine.json").write_text("{}")
    with pytest.raises(ExportRefused, match=r"details/mine\.json"):
        write(target, [OutFile("a.json", b"newer")])
    assert (target / "a.json").read_bytes() == b"one"


def test_a_foreign_manifest_is_refused(tmp_path: Path) -> None:
    for text in ("{}", "[]", "no json", '{"files": []}', "[" * 5000):
        (tmp_path / "MANIFEST.json").write_text(text)
        with pytest.raises(ExportRefused, match="not a manifest of ours"):
            write(tmp_path, TWO)


def test_a_manifest_cannot_have_a_file_outside_removed(tmp_path: Path) -> None:
    target, outside = tmp_path / "out", tmp_path / "precious.txt"
    outside.write_text("keep")
    write(target, TWO)
    manifest = json.loads((target / "MANIFEST.json").read_text())
    for path in ("../precious.txt", "/etc/passwd", "details/../../precious.txt", "ledger.sqlite"):
        manifest["files"][0]["path"] = path
        (target / "MANIFEST.json").write_text(json.dumps(manifest))
        with pytest.raises(ExportRefused):
            write(target, TWO)
    assert outside.read_text() == "keep"


def test_the_run_directory_is_a_target_for_its_own_run(tmp_path: Path) -> None:
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.lock", "run.log", "progress.jsonl"):
        (tmp_path / name).write_text(name)
    write(tmp_path, TWO, home=tmp_path)
    write(tmp_path, [OutFile("a.json", b"newer")], home=tmp_path)
    found = tree(tmp_path)
    assert found.pop("a.json") == b"newer"
    assert {name: data.decode() for name, data in found.items()} == {
        name: name
        for name in (
            "ledger.sqlite",
            "ledger.sqlite-wal",
            "ledger.lock",
            "run.log",
            "progress.jsonl",
        )
    }


def test_a_ledger_elsewhere_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_text("another run's")
    with pytest.raises(ExportRefused, match=r"ledger\.sqlite"):
        write(tmp_path, TWO, home=tmp_path / "elsewhere")


def test_a_stray_file_in_the_run_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").write_text("x")
    write(tmp_path, TWO, home=tmp_path)
    assert (tmp_path / ".DS_Store").read_text() == "x"


def test_what_a_killed_live_export_left_is_replaced_or_removed(tmp_path: Path) -> None:
    target = tmp_path / "out"
    (target / "details").mkdir(parents=True)
    (target / "params.json").write_bytes(owned())
    (target / "details" / "_error_b.json").write_bytes(owned())
    (target / "details" / "b.json").write_bytes(owned())
    (target / "details" / ".acl-0011223344556677.tmp").write_text("half")
    write(target, [OutFile("params.json", owned()), OutFile("details/b.json", b"new")])
    assert tree(target) == {"params.json": owned(), "details/b.json": b"new"}


def test_a_live_export_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "params.json").write_bytes(owned())
    with pytest.raises(ExportRefused, match="another run"):
        write(tmp_path, TWO, OTHER, home=tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/x",
        "a/../b",
        "a//b",
        "",
        ".",
        "a/",
        "caf\u00e9.json",
        "a b",
        "a\\b",
        "a\0b",
        ".acl-x",
        "details/.acl-x",
        "x" * 256,
        "ledger.sqlite",
        "ledger",
        "run.log",
        "progress.json",
    ],
)
def test_a_name_that_could_leave_the_target_or_hit_the_run_is_refused(
    tmp_path: Path, path: str
) -> None:
    with pytest.raises(ExportRefused):
        write(tmp_path / "out", [OutFile(path, b"x")])
    assert list(tmp_path.iterdir()) == []


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportRefused):
        write(tmp_path / "out", [OutFile("a", b"1"), OutFile("a", b"2")])
    assert list(tmp_path.iterdir()) == []


def test_the_target_may_be_reached_through_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link" / "out", TWO)
    assert tree(tmp_path / "real" / "out")["a.json"] == b"one"
    (tmp_path / "to-export").symlink_to(tmp_path / "real" / "out")
    write(tmp_path / "to-export", [OutFile("a.json", b"newer")])
    assert tree(tmp_path / "real" / "out") == {"a.json": b"newer"}


def test_no_link_below_the_target_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "run"
    target.mkdir()
    (target / "details").symlink_to(outside)
    with pytest.raises(ExportRefused):
        write(target, TWO, home=target)
    assert list(outside.iterdir()) == []
    assert [path.name for path in target.iterdir()] == ["details"]


def test_a_directory_in_the_place_of_a_file_is_refused_before_anything_changes(
    tmp_path: Path,
) -> None:
    write(tmp_path, TWO, home=tmp_path)
    (tmp_path / "z.json").mkdir()
    (tmp_path / "z.json" / "mine").write_text("keep")
    with pytest.raises(ExportRefused, match=r"z\.json"):
        write(tmp_path, [OutFile("a.json", b"newer"), OutFile("z.json", b"z")], home=tmp_path)
    assert (tmp_path / "a.json").read_bytes() == b"one"
    assert (tmp_path / "z.json" / "mine").read_text() == "keep"


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    target, outside = tmp_path / "out", tmp_path / "precious.txt"
    outside.write_text("keep")
    write(target, TWO)
    (target / "a.json").unlink()
    (target / "a.json").symlink_to(outside)
    write(target, TWO)
    assert outside.read_text() == "keep"
    assert not (target / "a.json").is_symlink()


def test_a_file_is_no_target(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(ExportRefused):
        write(tmp_path / "out", TWO)
    with pytest.raises(ExportRefused):
        write(tmp_path / "out" / "below", TWO)
    assert (tmp_path / "out").read_text() == "x"


def full_disk_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes `count` more bytes."""
    left = count

    def write_some(descriptor: int, chunk: bytes) -> None:
        nonlocal left
        taken = chunk[:left]
        left -= len(taken)
        os.write(descriptor, taken)
        if len(taken) < len(chunk):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("exporters.folder._write", write_some)


@pytest.mark.parametrize("count", range(0, 400, 37))
def test_a_full_disk_leaves_no_half_of_a_first_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    full_disk_after(count, monkeypatch)
    with pytest.raises(ExportRefused, match="No space left"):
        write(tmp_path / "out", TWO)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", range(0, 400, 37))
def test_a_full_disk_leaves_the_earlier_export_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    target = tmp_path / "out"
    write(target, TWO)
    before = (tree(target), (target / "MANIFEST.json").read_bytes())
    full_disk_after(count, monkeypatch)
    with pytest.raises(ExportRefused, match="No space left"):
        write(target, [OutFile("a.json", b"newer"), OutFile("c.json", b"c")])
    assert (tree(target), (target / "MANIFEST.json").read_bytes()) == before


def test_exporters_of_one_target_do_no_harm_to_each_other(tmp_path: Path) -> None:
    target = tmp_path / "out"
    errors = []

    def work(number: int) -> None:
        text = f"{number}".encode() * 1000
        try:
            for _ in range(5):
                write(target, [OutFile(f"details/{n}.json", text) for n in range(10)])
        except ExportRefused as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = tree(target)
    assert len(found) == 10
    assert len(set(found.values())) == 1
    assert sorted(path.name for path in target.iterdir()) == ["MANIFEST.json", "details"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_staging_directory_that_another_clears_up_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Folder.open
    cleared = []

    def open_late(path: Path) -> Folder:
        if not cleared:
            cleared.append(path)
            clear_abandoned(tmp_path, lambda found: found == path)
            assert not path.exists()
        return opened(path)

    with monkeypatch.context() as patch:
        patch.setattr(exporters.write, "Folder", SimpleNamespace(open=open_late))
        write(tmp_path / "out", TWO)
    assert len(cleared) == 1
    assert tree(tmp_path / "out") == {"a.json": b"one", "details/b.json": b"two"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_staging_directory_that_cannot_be_looked_at_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    class Failing(Folder):
        def is_current(self) -> bool:
            raise ExportRefused("cannot be read: Input/output error")

        def close(self) -> None:
            super().close()
            closed.append(self.path)

    monkeypatch.setattr(exporters.write, "Folder", Failing)
    with pytest.raises(ExportRefused):
        lock_stage(tmp_path)
    assert closed == [tmp_path]


KILLED = """
import os, sys
from pathlib import Path
from exporters import OutFile
from exporters.identity import Identity
from exporters.write import write_tree

def files():
    yield OutFile("a.json", b"half")
    os.kill(os.getpid(), 9)

write_tree(files(), Path(sys.argv[1]), identity=Identity("run-1", "ab" * 16, 10, "cd" * 32), layout="details")
"""


def killed(target: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(target)], check=False, cwd=Path(__file__).parents[3]
    )
    assert done.returncode == -9


def test_a_killed_export_leaves_no_file_of_a_final_name_and_the_next_cleans_up(
    tmp_path: Path,
) -> None:
    target = tmp_path / "out"
    killed(target)
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 1  # the staging directory
    write(target, TWO)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    killed(target)
    assert (target / "a.json").read_bytes() == b"one"
    write(target, TWO)
    assert sorted(path.name for path in target.iterdir()) == ["MANIFEST.json", "a.json", "details"]


def test_a_staging_directory_of_a_living_exporter_is_not_cleaned_up(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def files() -> Iterator[OutFile]:
        yield OutFile("a.json", b"slow")
        write(target, TWO)
        yield OutFile("c.json", b"c")

    write(target, files())
    assert tree(target) == {"a.json": b"slow", "c.json": b"c"}


def test_a_target_that_another_exporter_holds_is_waited_for(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, TWO)
    with Folder.open(target) as holder, holder.locked(), Folder.open(target) as second:
        assert not second.try_lock()
        with pytest.raises(ExportRefused, match="another export"), second.locked(wait=0.1):
            pass
    write(target, TWO)


def test_every_file_and_directory_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set()
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    target = tmp_path / "out"
    write(target, TWO)
    places = [tmp_path, target, *target.rglob("*")]
    assert {path.stat().st_ino for path in places} <= synced


def test_no_file_of_the_ledger_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A close of any other descriptor would drop the locks of the writer in this process.
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.lock"):
        (tmp_path / name).write_text("held")
    opened = []
    os_open = os.open

    def watch(path: object, *rest: object, **more: object) -> int:
        opened.append(str(path))
        return os_open(path, *rest, **more)

    monkeypatch.setattr(os, "open", watch)
    write(tmp_path, TWO, home=tmp_path)
    write(tmp_path, TWO, home=tmp_path)
    assert opened
    assert [path for path in opened if Path(path).name.startswith("ledger")] == []


def test_a_record_that_became_normal_leaves_no_stale_error_file(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, [OutFile("params.json", b"p"), OutFile("details/_error_t.json", b"error")])
    later = replace(IDENTITY, size=11)
    write(target, [OutFile("params.json", b"p"), OutFile("details/t.json", b"right")], later)
    assert tree(target) == {"params.json": b"p", "details/t.json": b"right"}


def test_an_earlier_state_may_be_exported_over_a_later_one_on_purpose(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, TWO)
    write(target, [OutFile("a.json", b"before")], replace(IDENTITY, size=3))
    assert tree(target) == {"a.json": b"before"}


def test_an_exporter_that_waited_takes_no_later_state_back(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write(target, [OutFile("a.json", b"first")], replace(IDENTITY, size=3))
    outcome: list[object] = []

    def slow() -> None:
        try:
            write(target, [OutFile("a.json", b"old")], replace(IDENTITY, size=5))
        except ExportRefused as error:
            outcome.append(error)

    with Folder.open(target) as folder, folder.locked():
        waiting = threading.Thread(target=slow)
        waiting.start()
        while not _waits_for(waiting):
            pass
        ended = tmp_path / "other"
        write(ended, [OutFile("a.json", b"new")], replace(IDENTITY, size=9))
        for name in ("a.json", "MANIFEST.json"):
            (ended / name).replace(target / name)
    waiting.join()
    (error,) = outcome
    assert "later state, of 9 events" in str(error)
    assert tree(target) == {"a.json": b"new"}


def _waits_for(thread: threading.Thread) -> bool:
    """Whether the thread has come to the lock: it sleeps between two looks at it."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "locked":
            return True
        frame = frame.f_back
    return False


def test_an_export_made_first_by_another_is_not_taken_back(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def files() -> Iterator[OutFile]:
        yield OutFile("a.json", b"old")
        # While the stage is filled, a quicker exporter makes the target.
        write(target, [OutFile("a.json", b"new")], replace(IDENTITY, size=99))

    with pytest.raises(ExportRefused, match="later state"):
        write(target, files())
    assert tree(target) == {"a.json": b"new"}
