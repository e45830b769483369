"""A ledger from a stranger can do no harm: time, memory, the terminal and other files are safe."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger import LedgerView, canonical
from ledger import events as ev
from ledger.errors import LedgerDamaged, RunNotFound
from ledger.store import Ledger
from tests import events_of as say
from tests.attacks import hostile

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 640 * 1024 * 1024
CPU_SECONDS = 120
# Nobody should have to scroll through more.
OUTPUT = 6_000_000

Build = Callable[[Path], None]


def acl(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own with little memory and time: it must not die of that."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))

    return subprocess.run(
        [sys.executable, "-m", "acl", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        preexec_fn=limit,
        stdin=subprocess.DEVNULL,
        timeout=10 * CPU_SECONDS,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


# What obeys every rule, and is only large: it is read, and nothing is wrong with it.
ONLY_LARGE = {hostile.large_segments, hostile.endless_lists}


@pytest.mark.parametrize("build", hostile.HOSTILE, ids=lambda build: build.__name__)
def test_a_hostile_ledger_is_verified_within_bounds(tmp_path: Path, build: Build) -> None:
    build(tmp_path / "run")
    said = acl("verify", tmp_path / "run")
    assert said.returncode == (0 if build in ONLY_LARGE else 4), said.stderr[-500:]
    assert len(said.stdout) < OUTPUT
    assert b"fault of acl" not in said.stderr
    assert b"out of memory" not in said.stderr


@pytest.mark.parametrize("build", [hostile.deep, hostile.far_damage])
@pytest.mark.parametrize("command", ["show", "log", "export"])
def test_a_hostile_ledger_is_refused_by_who_reads_it(
    tmp_path: Path, build: Build, command: str
) -> None:
    build(tmp_path / "run")
    more = [tmp_path / "out"] if command == "export" else []
    said = acl(command, tmp_path / "run", *more)
    assert said.returncode == 4, said.stderr[-500:]
    assert not (tmp_path / "out").exists()


def test_references_that_stand_for_an_astronomical_value_are_given_up(tmp_path: Path) -> None:
    hostile.endless_lists(tmp_path / "run")
    with LedgerView.open(tmp_path / "run") as view:
        last = list(view.events())[-1].event
        with pytest.raises(LedgerDamaged, match="stand for more than"):
            canonical.resolve(last.payload, view.blob, budget=1 << 22)


def test_what_a_list_takes_in_memory_counts_and_not_its_text() -> None:
    """Three bytes of text are an empty list of 56, and the place for it."""
    piece = b"[" + b",".join([b"[]"] * 100_000) + b"]"
    value = canonical.SpilledList((bytes(32),) * 10, ())
    with pytest.raises(LedgerDamaged, match="stand for more than"):
        canonical.resolve(value, lambda _: piece, budget=20 * len(piece))


# --- names ---------------------------------------------------------------------------------------

NAMES = [
    "n" * 60_000,
    "../../../outside",
    "/outside",
    "a\0b",
    "one\ntwo",
    "\x1b[2J\x1b]0;title\x07",
    "\u202etxt.exe",
    "\ud800",
    ".",
    "..",
    "con/../../x",
    " ",
    "~/x",
    "-rf",
]
CONTROLS = {*range(9), *range(11, 32), 127}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose tasks, run id, benchmark, files and errors have hostile names."""
    home = tmp_path_factory.mktemp("odd")
    run = home / "results" / "run"
    run.mkdir(parents=True)
    created = say.created("../../outside\x1b[2J")
    request = dict(created.request)
    request["benchmark"] = {"id": "../../bench\x1b[2J", "params": {}}
    request["model"] = {**request["model"], "id": "../../model"}
    with Ledger.create(run) as ledger:
        ledger.append(created.model_copy(update={"request": request}), ev.RunStarted())
        ledger.append(say.selected(*NAMES, category="../../category\x1b[2J"))
        for name in NAMES:
            ledger.append(*say.whole_task(name, _attempt(name)))
        ledger.append(*say.ending())
        ledger.checkpoint()
    return run


def _attempt(name: str) -> list[ev.AnyEvent]:
    first, result, *rest = say.attempt(name, answer="\x1b[2J" + name[:50])
    paths = ["../../outside.txt", "/outside.txt", "x/../../../y", "\x1b[2J", "a\0b", ""]
    files = ev.ArtifactsCollected(
        task=name,
        attempt=1,
        artifacts=tuple(ev.Artifact(path=path, bytes=1) for path in paths),
        contents=dict.fromkeys(paths, "x"),
    )
    return [first, result, files, *rest]


@pytest.mark.parametrize("command", ["show", "log", "verify", "show --tasks", "ls", "audit"])
def test_nothing_that_a_terminal_obeys_comes_out_of_a_ledger(odd: Path, command: str) -> None:
    name, *options = command.split()
    said = acl(name, odd.parent if name in ("ls", "audit") else odd, *options)
    # An audit fails, as there is no registry.
    assert said.returncode == (1 if name == "audit" else 0), said.stderr[-500:]
    for output in (said.stdout, said.stderr):
        assert not CONTROLS & set(output), command
        assert "\u202e" not in output.decode()


# The others cannot be an argument of a process.
SAYABLE = [name for name in NAMES[1:] if not {"\0", "\ud800"} & set(name) and name[0] != "-"]


@pytest.mark.parametrize("name", SAYABLE)
def test_a_task_of_any_name_is_shown(odd: Path, name: str) -> None:
    said = acl("show", odd, name)
    assert said.returncode == 0, said.stderr[-500:]
    assert not CONTROLS & set(said.stdout)


def every_path(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


@pytest.mark.parametrize("form", ["details", "jobs", "tiles"])
def test_an_export_writes_nothing_outside_its_directory(
    odd: Path, tmp_path: Path, form: str
) -> None:
    before = every_path(odd.parents[1])
    out = tmp_path / "a" / "b" / "c" / "out"
    out.parent.mkdir(parents=True)
    said = acl("export", "-f", form, odd, out)
    assert said.returncode in (0, 5), said.stderr[-500:]
    assert b"fault of acl" not in said.stderr
    outside = {path for path in every_path(tmp_path) if not path.startswith("a/b/c/out")}
    assert outside == {"a", "a/b", "a/b/c"}
    assert every_path(odd.parents[1]) - before <= {"results/run/ledger.sqlite-shm"}
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


def test_an_export_follows_no_link_in_its_target(tmp_path: Path) -> None:
    run, out, victim = tmp_path / "run", tmp_path / "out", tmp_path / "victim"
    run.mkdir()
    with Ledger.create(run) as ledger:
        ledger.append(*say.opening("t"), *say.whole_task("t", say.attempt("t")), *say.ending())
    victim.mkdir()
    (victim / "precious").write_text("precious")
    out.mkdir()
    (out / "details").symlink_to(victim)
    said = acl("export", run, out)
    assert said.returncode == 5, said.stderr
    assert sorted(path.name for path in victim.iterdir()) == ["precious"]
    assert (victim / "precious").read_text() == "precious"


@pytest.mark.parametrize("name", ["ledger.sqlite", "ledger.sqlite-wal", "ledger.lock", "x"])
def test_a_pipe_in_a_run_directory_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    run = tmp_path / "results" / "run"
    run.mkdir(parents=True)
    with Ledger.create(run) as ledger:
        ledger.append(*say.opening("t"))
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    for command in (["verify", run], ["show", run], ["ls", run.parent]):
        assert b"fault of acl" not in acl(*command).stderr


def test_a_blob_that_nobody_has_is_named_and_not_looked_for_elsewhere(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
    with LedgerView.open(tmp_path) as view, pytest.raises(RunNotFound):
        view.blob(b"../../../etc/passwd")
