"""The command line: finds the command, loads it, and turns errors into one line and a status.

A command's module is imported only when it is called, so that `acl --help` stays quick. Its
name is in `COMMANDS` with the line that `--help` shows.
"""

import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from acl import output
from ledger.errors import AclError
from ledger.version import __version__

COMMANDS: Final = {
    "run": ("acl.run", "Run an evaluation; every step is a durable event in its ledger."),
    "import": ("acl.import_", "Turn a result directory of another tool into a sealed ledger."),
    "verify": ("acl.verify", "Check a ledger; say what is proven and what is not."),
    "prove": ("acl.prove", "Write a proof of one event, or that a checkpoint is extended."),
    "verify-proof": ("acl.verify_proof", "Check such a proof; no ledger is needed."),
    "keygen": ("acl.keygen", "Make a key that signs checkpoints."),
    "checkpoint": ("acl.checkpoint", "Print or sign a checkpoint; have witnesses sign it."),
    "witness": ("acl.witness", "Be a witness for the ledgers of others."),
    "replay": ("acl.replay", "Recompute the metrics from the events and compare."),
    "export": ("acl.export", "Project a ledger into the files that other tools read."),
    "show": ("acl.show", "A run at a glance, or one task with its attempts."),
    "ls": ("acl.ls", "List the runs under a results directory."),
    "query": ("acl.query", "Ask a run with SQL: tasks, attempts, calls, events as tables."),
    "log": ("acl.log", "List a run's events; --follow a live one."),
    "audit": ("acl.audit", "Every run that was entered or is on disk, and what became of it."),
    "diff": ("acl.diff", "Compare two runs, or two exported trees."),
    "attest": ("acl.attest", "Sign a statement about a sealed run, or check one."),
    "copy": ("acl.copy", "Make one file of a ledger, live or not."),
    "seal": ("acl.seal", "Seal the ledger of a run that was interrupted."),
    "annotate": ("acl.annotate", "Add a remark to a ledger, open or sealed."),
    "erase": ("acl.erase", "Take recorded content out of a ledger for good, and say so in it."),
    "analyze": ("acl.analyze", "Analyse a run: what failed and why, and what goes with success."),
    "clean": ("acl.clean", "Remove what no run needs any more from an artifacts directory."),
    "agentcompass-hook": ("acl.agentcompass_hook", "Where the hook is that records AgentCompass."),
    "demo": ("acl.demo", "See it all work in a minute, offline."),
}


# Typer brings a click of its own; the base of its usage errors is reached through one it exports.
_WrongUse: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


# What is drawn with rich takes longer than all else of `--help`: only where somebody looks at it.
_MARKUP: Final = "rich" if sys.stdout is not None and sys.stdout.isatty() else None


class LazyCommand(TyperCommand):
    """A command of which the name and line are known; the rest is imported when it is called."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Go on with the real command."""
        module, _ = COMMANDS[str(self.name)]
        command: Any = typer.main.get_command(import_module(module).app)
        for one in (command, *getattr(command, "commands", {}).values()):
            one.rich_markup_mode = _MARKUP
        return command.make_context(info_name, args, parent=parent, **extra)


class LazyCommands(TyperGroup):
    """The group of all commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, name: str) -> Any:
        """The command `name`, or None."""
        if name not in COMMANDS:
            return None
        _, line = COMMANDS[name]
        return LazyCommand(name, help=line, short_help=line)


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=_MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        import sqlite3

        typer.echo(f"acl {__version__} (SQLite {sqlite3.sqlite_version})")
        raise typer.Exit


@app.callback()
def acl(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    """A results store for evaluations of LLM agents that an outsider can check."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status; the process edge of the program."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    sys.exit(call([a for a in arguments if a != "--debug"], debug=debug))


def call(arguments: list[str], *, debug: bool = False) -> int:
    """Run one command line and return its exit status; errors become one line on stderr.

    With `--json` an error is a document too: {error, exit}.
    """
    try:
        status = typer.main.get_command(app)(arguments, prog_name="acl", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    except Exception as error:  # noqa: BLE001 - the process edge: whatever it is, it is one line
        if debug:
            traceback.print_exc()
        message, status = _told(error)
        if message:
            output.message(f"acl: {' '.join(message.split())}")
            if "--json" in arguments:
                output.document({"error": message, "exit": status})
    finally:
        output.flush()
    return status if isinstance(status, int) else 0


def _told(error: Exception) -> tuple[str, int]:
    """What is said of an error, and the exit status that it means."""
    if isinstance(error, _WrongUse):
        return error.format_message(), error.exit_code
    if isinstance(error, AclError):
        return str(error), error.exit_status
    if isinstance(error, OSError):
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), 1
    if isinstance(error, MemoryError):
        return "out of memory; give it more, or a smaller input", 1
    what = f"{type(error).__name__}: {error}"
    return f"{what}; this is a fault of acl: please report it with what --debug shows", 1
