"""`acl demo`: the whole story in a minute, offline, with the commands that a user would type."""

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from acl.output import Json, document, line, message
from ledger.errors import AclError, UsageError
from ledger.memory import STATE_DIR
from runtime.signing import SIGNING_KEY

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BENCHMARK = "acl-repair"
KILL_AFTER_TASKS = 10
PROVEN_TASK = "lists-longest_rise"
PATIENCE_SECONDS = 120


class DemoFailed(AclError):
    """A step of the demo did not do what it shows; this is a fault of acl."""

    hint = "the output above tells which command; --debug shows more"


@app.command()
def demo(
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="A new directory (default: a temporary one)."),
    ] = None,
    json: Json = False,
) -> None:
    """Run, kill and reuse a run, import, verify, replay, export, sign, prove, tamper, audit."""
    root = _new_directory(directory)
    stage = _Stage(root, message if json else line)
    stage.say(f"Everything below happens in {root}")
    _three_agents(stage)
    _kill_and_reuse(stage)
    _import(stage)
    _check(stage)
    _sign(stage)
    _tamper(stage)
    _replace(stage)
    _audit(stage)
    _where_to_look(stage)
    if json:
        document({"path": str(root), "run": _place("large"), "export": "published"})


def _new_directory(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="acl-demo-"))
    try:
        directory.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{directory} exists", hint="name a new directory") from None
    return directory


class _Stage:
    """The directory of the demo, and how it runs and shows commands."""

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self.root = root
        self.environ = {**os.environ, STATE_DIR: str(root / "state")}
        self.environ.pop(SIGNING_KEY, None)
        self.say = say
        self.step = 0

    def title(self, text: str) -> None:
        self.step += 1
        self.say("")
        self.say(f"{self.step}. {text}")

    def command(self, *arguments: str) -> list[str]:
        self.say(f"   $ acl {shlex.join(arguments)}")
        sys.stdout.flush()
        return [sys.executable, "-m", "acl", *arguments]

    def acl(self, *arguments: str, status: int = 0, show: int = 6) -> str:
        """Run one command, show its first lines and the last, and insist on its exit status."""
        done = subprocess.run(  # noqa: S603 - our own program
            self.command(*arguments),
            cwd=self.root,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [text for text in done.stdout.splitlines() if text.strip()]
        for text in _excerpt(lines, show):
            self.say(f"     {text}")
        if done.returncode != status:
            self.say(done.stderr)
            raise DemoFailed(f"`acl {arguments[0]}` exited {done.returncode}, not {status}")
        if status:
            self.say(f"     (exit status {done.returncode})")
        return done.stdout


def _excerpt(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… {len(lines) - most} more lines", lines[-1]]


def _run(harness: str, run_id: str, *more: str) -> list[str]:
    return [
        *("run", "--benchmark", BENCHMARK, "--harness", harness, "--k", "2"),
        *("--run-id", run_id, *more),
    ]


def _place(run_id: str) -> str:
    return f"results/{BENCHMARK}/none/{run_id}"


_RETRIES = (
    *("--harness-param", "inject_errors=0.2", "--max-retries", "2"),
    *("--retry-min-delay", "0"),
)


def _three_agents(stage: _Stage) -> None:
    stage.title("Three agents repair broken functions, twice each; some tries fail and are retried")
    stage.acl(*_run("noop", "noop"), show=3)
    stage.acl(*_run("search", "small", "--harness-param", "budget=5", *_RETRIES), show=5)


def _kill_and_reuse(stage: _Stage) -> None:
    stage.title("The third is killed with SIGKILL in the middle; nothing acknowledged is lost")
    large = ("--harness-param", "budget=200", *_RETRIES)
    process = subprocess.Popen(  # noqa: S603 - our own program
        stage.command(*_run("search", "killed", *large)),
        cwd=stage.root,
        env=stage.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for_tasks(stage.root / _place("killed"), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stage.say("     kill -9")
    stage.acl("ls", show=9)
    stage.title("A new run reuses what it had finished and runs the rest")
    stage.acl(*_run("search", "large", *large, "--reuse-run-id", "killed"), show=6)


def _wait_for_tasks(run: Path, process: subprocess.Popen[bytes]) -> None:
    from ledger import LedgerView

    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if run.joinpath("ledger.sqlite").exists():
            with LedgerView.open(run) as view:
                finished = sum(recorded.type == "task.finished" for recorded in view.events())
            if finished >= KILL_AFTER_TASKS:
                return
        time.sleep(0.1)
    raise DemoFailed("the run that was to be killed ended too early or never got going")


def _import(stage: _Stage) -> None:
    from runtime.importers.samples import unpack_sample

    stage.title("A real run of AgentCompass 1.0.1 becomes a ledger, with its numbers")
    unpack_sample(stage.root / "agentcompass-run")
    stage.acl("import", "agentcompass-run", show=4)


def _check(stage: _Stage) -> None:
    stage.title("Anybody can check a ledger, recompute the metrics and export the files")
    run = _place("large")
    stage.acl("verify", run, show=12)
    stage.acl("replay", run, show=6)
    stage.acl("export", "-f", "details", run, "published", show=3)
    stage.acl("verify", run, "--tree", "published", show=5)


def _sign(stage: _Stage) -> None:
    stage.title("A key signs a checkpoint, which is published; one verdict is proven by itself")
    key = stage.acl("keygen", "--name", "demo.example/key", "--out", "key", show=1).strip()
    signed = ("--signing-key", "key", "-o", "published.checkpoint")
    stage.acl("checkpoint", _place("small"), *signed, show=4)
    verdict = ("--task", PROVEN_TASK, "--attempt", "1")
    stage.acl("prove", _place("small"), *verdict, "-o", "verdict.proof", show=2)
    stage.acl("verify-proof", "verdict.proof", "--key", key, show=13)


def _tamper(stage: _Stage) -> None:
    stage.title("One byte is changed in a copy of the ledger")
    stage.acl("copy", _place("large"), "tampered.sqlite", show=1)
    position = _flip_one_byte(stage.root / "tampered.sqlite")
    stage.say(f"     (byte {position} of tampered.sqlite is now another)")
    stage.acl("verify", "tampered.sqlite", status=4, show=5)


def _flip_one_byte(path: Path) -> int:
    """Change one byte of a stored event in `path`; return its position in the file."""
    with sqlite3.connect(path) as connection:
        (data,) = connection.execute(
            "SELECT data FROM segment ORDER BY length(data) DESC LIMIT 1"
        ).fetchone()
    connection.close()
    raw = bytearray(path.read_bytes())
    # A long row lies in several pages; sixteen of its bytes in a row are on one of them.
    middle = len(data) // 2
    at = next(
        found
        for start in range(middle, len(data))
        if (found := raw.find(data[start : start + 16])) >= 0
    )
    raw[at] ^= 0x01
    path.write_bytes(raw)
    return at


def _replace(stage: _Stage) -> None:
    stage.title("A whole ledger is put in the place of the published one, for its better numbers")
    stage.acl("copy", _place("large"), "replaced.sqlite", show=1)
    stage.say("     By itself it is in order:")
    stage.acl("verify", "replaced.sqlite", show=2)
    stage.say("     Whoever kept three published lines knows better:")
    stage.acl("verify", "replaced.sqlite", "--checkpoint", "published.checkpoint", status=4, show=3)


def _audit(stage: _Stage) -> None:
    stage.title("Every run was entered in a registry before its first attempt, the killed one too")
    stage.acl("audit", "results", show=14)


def _where_to_look(stage: _Stage) -> None:
    stage.say("")
    stage.say("Where to look next:")
    stage.say(f"   {stage.root}/{_place('large')}/ledger.sqlite   the one file that counts")
    stage.say(f"   {stage.root}/{_place('large')}/summary.md      the report, computed from it")
    stage.say(f"   {stage.root}/published/                        the same files, anywhere")
    for command in ("show", "log", "verify"):
        stage.say(f"   acl {command} {stage.root}/{_place('large')}")
