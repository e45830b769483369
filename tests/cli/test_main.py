import sqlite3
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from acl.main import COMMANDS
from tests.cli.conftest import Acl, flip_a_stored_byte


def test_version_is_told_with_that_of_sqlite(acl: Acl) -> None:
    from ledger.version import __version__

    assert acl("--version").out == f"acl {__version__} (SQLite {sqlite3.sqlite_version})\n"


def test_help_names_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acl", "--help"], capture_output=True, text=True, check=True
    )
    for name in COMMANDS:
        assert f" {name} " in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(acl: Acl, name: str) -> None:
    said = acl(name, "--help")
    assert said.status == 0
    assert "Usage" in said.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_json(name: str) -> None:
    command: Any = typer.main.get_command(import_module(COMMANDS[name][0]).app)
    for one in getattr(command, "commands", {"": command}).values():
        assert "--json" in {option for parameter in one.params for option in parameter.opts}


@pytest.mark.parametrize("words", [("verify",), ("witness",), ("witness", "serve")])
def test_help_that_no_terminal_shows_is_plain_text(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acl", *words, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"Usage: acl {' '.join(words)} ")
    assert "─" not in done.stdout


@pytest.mark.parametrize("arguments", [("nope",), ("verify",), ("log", "x", "--since", "-1")])
def test_wrong_use_is_one_line_and_exits_2(acl: Acl, arguments: tuple[str, ...]) -> None:
    said = acl(*arguments)
    assert said.status == 2
    assert said.err.startswith("acl: ")
    assert said.err.count("\n") == 1


def test_a_reader_that_goes_away_is_no_failure(sealed: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m acl log {sealed} | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "run.created" in done.stdout
    assert done.stderr == ""


LITTLE_ROOM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from acl.main import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("room", "arguments"),
    [
        (16, "prove {run} 3 -o {out}"),
        (16, "checkpoint {run} -o {out}"),
        (16, "keygen --name lab --out {out}"),
        (8192, "copy {run} {out}"),
    ],
)
def test_a_file_that_there_is_no_room_for_is_named_and_no_damage(
    sealed: Path, tmp_path: Path, room: int, arguments: str
) -> None:
    out = tmp_path / "new"
    words = arguments.format(run=sealed, out=out).split()
    said = subprocess.run(
        [sys.executable, "-c", LITTLE_ROOM, str(room), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 1
    assert f"{out} was not written" in said.stderr
    assert said.stderr.count("\n") == 1
    assert not out.exists()


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "acl", "--debug", "verify", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" in done.stderr


def test_the_exit_status_does_not_depend_on_who_reads(sealed: Path) -> None:
    flip_a_stored_byte(sealed / "ledger.sqlite")
    for reader in ("head -1", "true"):
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m acl verify {sealed} | {reader}; exit $PIPESTATUS"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 4
        assert done.stderr == ""


def test_a_closed_stdout_is_no_failure(sealed: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m acl show {sealed} >&-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_with_json_an_error_is_a_document_too(acl: Acl, tmp_path: Path) -> None:
    said = acl("verify", tmp_path / "nowhere", "--json")
    assert said.document()["exit"] == said.status == 2
    assert "nowhere" in said.document()["error"]


def test_a_fault_of_ours_is_one_line_that_asks_for_a_report(
    acl: Acl, sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("acl.ls._rows", broken)
    said = acl("ls", sealed.parents[2])
    assert said.status == 1
    assert said.err.startswith("acl: ZeroDivisionError: oops; this is a fault of acl")
    assert said.err.count("\n") == 1
