"""Run directories from strangers: read, verified, written to again, and projected."""

from collections.abc import Iterable
from pathlib import Path

from exporters import find_exporter
from exporters.identity import Identity
from exporters.write import write_tree
from ledger import LedgerView, canonical, events, fold, sidefile
from ledger.errors import AclError, RunNotFound
from ledger.store import Ledger
from ledger.verify import verify
from runtime.replay import replay
from tests.fuzz import trees
from tests.fuzz.ledgers import FILE, LedgerRecipes, original_leaves
from tests.fuzz.target import TreeTarget, holds

_KEPT = (FILE, f"{FILE}-wal")
# What stands for more than this is not put together: SQLite and memory are bounded elsewhere.
_BUDGET = 1 << 24
LAYOUTS = ("details", "jobs", "agentcompass", "csv", "jsonl", "tiles", "parquet")


class LedgerTarget(TreeTarget):
    """Mutations of run directories."""

    recipes = LedgerRecipes()
    original: tuple[bytes, bytes]

    def prepare(self, data: bytes, home: Path) -> None:
        trees.write(self.recipes.tree(data), home / "results" / "run")
        self.original = original_leaves(self.recipes, data)


def broken(run: Path, **how: object) -> list[str] | str:
    """The codes of what verify finds broken, or the error that it ends with."""
    try:
        return sorted({one.code for one in verify(run, **how) if one.severity == "broken"})  # type: ignore[arg-type]
    except AclError as error:
        return type(error).__name__


def read_all(run: Path) -> None:
    """Read everything that a ledger holds."""
    with LedgerView.open(run) as view:
        for recorded in view.events():
            for _, value in recorded.event or ():
                try:
                    canonical.resolve(value, view.blob, budget=_BUDGET)
                except RunNotFound:
                    # An erasure may have taken it; verify knows whether it did.
                    continue
        fold(view.events())
        size = view.size
        view.root()
        for seq in {0, size // 2, size - 1}:
            view.prove(seq)
        _ = view.sealed, view.ledger_id
        list(view.published())


class Verifying(LedgerTarget):
    """Readers refuse or agree with verify; what verify calls intact is what was recorded."""

    name = "ledger"

    def run(self, data: bytes, home: Path) -> Iterable[str]:
        run = home / "results" / "run"
        before = kept(run)
        codes = broken(run)
        leaves, checkpoint = self.original
        outside = broken(run, checkpoint=sidefile.parse(checkpoint).checkpoint)
        refused = None
        try:
            read_all(run)
        except AclError as error:
            refused = error
        holds(kept(run) == before, "a reader changed the ledger")
        if codes == []:
            holds(refused is None or isinstance(refused, RunNotFound), f"intact, but {refused!r}")
        if outside == []:
            with LedgerView.open(run) as view:
                found = view.leaves(len(leaves) // 32)
            holds(found == leaves, "other events under the original's checkpoint")
        return (f"{codes}", f"outside {outside}", f"read {type(refused).__name__}")


class Recovering(LedgerTarget):
    """A writer goes on only where nothing is lost, and leaves an intact ledger."""

    name = "recover"

    def run(self, data: bytes, home: Path) -> Iterable[str]:
        run = home / "results" / "run"
        codes = broken(run)
        before = _leaves(run) if codes == [] else b""
        with Ledger.open(run) as ledger:
            ledger.append(events.AnnotationAdded(text="one more", author="somebody"))
            ledger.checkpoint()
        if codes == []:
            after = _leaves(run)
            holds(after.startswith(before), "what was there is there no more")
            holds(len(after) > len(before), "what was appended is not there")
            holds(broken(run) == [], f"intact before it was opened, now {broken(run)}")
        return (f"{codes}",)


def _leaves(run: Path) -> bytes:
    try:
        with LedgerView.open(run) as view:
            return view.leaves()
    except RunNotFound:
        return b""


class Telling(LedgerTarget):
    """Exports and replay of any ledger that can be read; of an intact one they succeed."""

    name = "export"

    def run(self, data: bytes, home: Path) -> Iterable[str]:
        run = home / "results" / "run"
        before = kept(run)
        intact = broken(run) == []
        said = []
        with LedgerView.open(run) as view:
            state = fold(view.events())
            for layout in LAYOUTS:
                try:
                    files, identity = find_exporter(layout)(state, view), Identity.of(state)
                    write_tree(files, home / layout, identity=identity, layout=layout)
                    said.append(f"{layout} written")
                except AclError as error:
                    said.append(f"{layout} {error.message[:40]}")
                    holds(not _unfounded(layout, error, intact), f"intact, but {layout}: {error!r}")
            try:
                said.append(f"replay {replay(view).equal}")
            except AclError as error:
                said.append(f"replay {type(error).__name__}")
        holds(kept(run) == before, "an export changed the ledger")
        return said


def _unfounded(layout: str, error: AclError, intact: bool) -> bool:
    """Whether an exporter calls damaged what verify calls intact."""
    return intact and error.exit_status == 4


def kept(run: Path) -> list[bytes]:
    """What a reader may not change; it may make an empty -wal."""
    return [(run / name).read_bytes() if (run / name).is_file() else b"" for name in _KEPT]
