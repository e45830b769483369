"""The command line on run directories from strangers, and a log of tiles that somebody serves."""

import hashlib
import io
import json
import re
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from acl.main import call
from exporters.folder import Folder
from exporters.tiles import publish
from exporters.tiles_check import check_tiles
from ledger import LedgerView
from ledger.errors import ExportRefused
from tests.fuzz import trees
from tests.fuzz.bounds import memory_folder
from tests.fuzz.strings import shape
from tests.fuzz.target import TreeTarget, holds
from tests.fuzz.targets.ledger import LedgerTarget, kept
from tests.signed_ledgers import LAB, make

# Everything that is no text, but for the ends of lines and columns.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NUMBERS = ("0", "1", "5", "-1", "99", "2147483648", "9223372036854775807", "9" * 30)
_TASKS = ("right", "t1", "", "..", "\udcff", "x" * 300)
# RUN, RESULTS and OUT are paths, N a number, T a task, K a verifier key.
READING = (
    "verify RUN --json",
    "verify RUN --key K --json",
    "verify RUN --min-size N --json",
    "show RUN --json",
    "show RUN T --json",
    "show RUN --tasks --json",
    "log RUN --json",
    "log RUN --since N --json",
    "log RUN --task T",
    "ls RESULTS --json",
    "audit RESULTS --json",
    "replay RUN --json",
    "replay RUN --at N --json",
    "diff RUN RUN --json",
    "analyze RUN --json",
    "query RUN SQL --json",
    "prove RUN N -o OUT --json",
    "prove RUN --task T -o OUT --json",
    "export RUN OUT --json",
    "export RUN OUT --salvage --json",
    "export -f jobs RUN OUT --json",
    "export -f tiles RUN OUT --json",
    "export -f csv RESULTS OUT --json",
    "copy RUN OUT",
)
WRITING = (
    "seal RUN --json",
    "annotate RUN text --author me --json",
    "erase RUN N --reason r --json",
    "erase RUN --blob BLOB --reason r --json",
    "checkpoint RUN --json",
)


class Commands(LedgerTarget):
    """A command says one line of what is wrong, as a document where that is asked for."""

    name = "command"

    def run(self, data: bytes, home: Path) -> Iterable[str]:
        # What is asked depends on the input alone.
        random = Random(hashlib.sha256(data).digest())
        run = home / "results" / "run"
        before = kept(run)
        said = [self._said(one, home, random) for one in random.sample(READING, 3)]
        holds(kept(run) == before, f"{said} changed the ledger")
        said.append(self._said(random.choice(WRITING), home, random))
        return said

    def _said(self, command: str, home: Path, random: Random) -> str:
        words = {
            "RUN": str(home / "results" / "run"),
            "RESULTS": str(home / "results"),
            "OUT": str(home / f"out{random.randrange(10**6)}"),
            "N": random.choice(_NUMBERS),
            "BLOB": hashlib.sha256(b"x").hexdigest(),
            "T": random.choice(_TASKS),
            "K": LAB.verifier.encode(),
            "SQL": random.choice(("SELECT * FROM attempts", "SELECT * FROM events", "SELECT 1, x")),
        }
        arguments = [words.get(word, word) for word in command.split()]
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = call(arguments)
        out.flush()
        told, text = err.getvalue(), out.buffer.getvalue()  # type: ignore[attr-defined]
        holds(0 <= status <= 5, f"{command}: status {status}")
        for never in ("fault of acl", "out of memory", "Traceback"):
            holds(never not in told, f"{command}: {told[-300:]}")
        shown = told + text.decode("utf-8", "replace")
        holds(not _CONTROL.search(shown), f"{command}: speaks to the terminal")
        if "--json" in arguments:
            for line in text.splitlines():
                json.loads(line)
            holds(text or command.startswith("log"), f"{command}: no document")
        return f"{command} {status} {shape(told[:200])}"


class Tiles(TreeTarget):
    """What differs from what the ledger gives is found; nobody else's files are written over."""

    name = "tiles"

    def __init__(self) -> None:
        self.recipes = trees.Recipes(self._bases)
        self._before: dict[str, Any] = {}

    def _bases(self) -> dict[str, trees.Tree]:
        found: dict[str, trees.Tree] = {}
        with memory_folder() as folder:
            home = Path(folder)
            with LedgerView.open(make(home / "run")) as view:
                publish(view, home / "tiles")
            held = trees.contents(home / "tiles")
            found["tiles"] = {name: data for name, data in held.items() if isinstance(data, bytes)}
        return found

    def prepare(self, data: bytes, home: Path) -> None:
        trees.write(self.recipes.tree(data), home / "tiles")
        self._before = trees.contents(home / "tiles")
        make(home / "run")

    def run(self, data: bytes, home: Path) -> Iterable[str]:
        honest, tiles = self.recipes.bases["tiles"], home / "tiles"
        tiles.mkdir(exist_ok=True)
        said = []
        with LedgerView.open(home / "run") as view:
            with Folder.open(tiles) as folder:
                codes = sorted({f"{one.severity} {one.code}" for one in self._check(view, folder)})
            if not codes:
                held = {name for name, one in self._before.items() if isinstance(one, bytes)}
                holds(held == {*honest}, "not the files that are published")
                holds(all(self._before[name] == honest[name] for name in held), "a forged tile")
            holds(trees.contents(tiles) == self._before, "looking changed it")
            try:
                publish(view, tiles)
            except ExportRefused as error:
                said.append(shape(error.message))
            else:
                now = trees.contents(tiles)
                holds(all(now.get(name) == one for name, one in honest.items()), "not published")
        return [*codes, *said]

    def _check(self, view: LedgerView, folder: Folder) -> Iterable[Any]:
        return list(check_tiles(view, folder, view.size))
