"""Programs that write files from a ledger: exports, live ones, archives."""

from pathlib import Path

from acl.main import call
from exporters.archives import archive
from exporters.live import LiveExport
from exporters.occupant import MANIFEST
from ledger import LedgerView, fold
from ledger.store import Ledger
from tests import archive_runs
from tests import events_of as say
from tests.crash.faults.standing import Ended, Tell, again, check_standing, contents
from tests.crash.test_archives import check as check_archives


class Export:
    """`acl export` to a directory that is not there, or over the export of an earlier state."""

    threads = False

    def __init__(self, name: str, layout: str, *, over: bool) -> None:
        self.name = name
        self.layout = layout
        self.over = over

    def prepare(self, area: Path) -> None:
        run = area / "run"
        run.mkdir()
        with Ledger.create(run, clock=archive_runs.Clock()) as ledger:
            ledger.append(*say.opening("a", "b"))
            ledger.append(*say.whole_task("a", say.attempt("a", answer="x" * 9000)))
            if self.over:
                ledger.checkpoint()
                assert call(self._command(area / "run", area / "out" / "here")) == 0
            ledger.append(*say.whole_task("b", say.failed_attempt("b"), error=True))
            ledger.append(*say.ending())
            ledger.seal()
        assert call(self._command(run, area / "reference" / "here")) == 0

    def _command(self, run: Path, target: Path) -> list[str]:
        force = ["--force"] if self.layout == "jobs" else []
        return ["export", "-f", self.layout, str(run), str(target), *force]

    def act(self, area: Path, tell: Tell) -> int | None:
        return call(self._command(area / "run", area / "out" / "here"))

    def check(self, area: Path, ended: Ended) -> None:
        ended.is_told_in_one_line(1, 2, 5)
        run, out, wanted = area / "run", area / "out", contents(area / "reference")
        ledger = contents(run)
        found = self._found(out)
        if ended.status == 0 and "has no analysis" not in ended.said:
            assert found == wanted
        elif not self.over and self.layout in {"details", "agentcompass"}:
            # It gets its name whole.
            assert found == wanted or not [path for path in found if path.startswith("here/")]
        elif not self.over and "here/checkpoint" in found:
            assert found == wanted
        assert call(self._command(run, out / "here")) == 0
        assert self._found(out) == wanted
        assert {path.name for path in area.iterdir()} - {"state"} == {"run", "out", "reference"}
        assert contents(run) == ledger
        check_standing(run / "ledger.sqlite", [], (17,))

    def _found(self, out: Path) -> dict[str, str]:
        """The files that are there; of a log the shorter pieces of an earlier state stay."""
        found = contents(out)
        if self.layout == "tiles" and self.over:
            return {path: data for path, data in found.items() if path in self._tiles(out)}
        return found

    def _tiles(self, out: Path) -> set[str]:
        return set(contents(out.with_name("reference")))


class Live:
    """A live export that follows a run state by state, and is called again where it failed."""

    threads = False

    name = "live export"

    def prepare(self, area: Path) -> None:
        Export("", "details", over=False).prepare(area)

    def act(self, area: Path, tell: Tell) -> int | None:
        follow = LiveExport(area / "out" / "here")
        with again(lambda: LedgerView.open(area / "run")) as view:
            for size in (3, 9, 14, 17):
                state = again(lambda size=size: fold(view.events(until=size)))
                again(lambda state=state: follow(state, view))
                tell(size)
        return 0

    def check(self, area: Path, ended: Ended) -> None:
        assert ended.has_status(0, *([5] if ended.lasting else [])), ended
        here, wanted = area / "out" / "here", contents(area / "reference" / "here")
        if ended.status == 0:
            assert contents(here) == wanted
        elif (here / MANIFEST).exists():
            with LedgerView.open(area / "run") as view:
                LiveExport(here)(fold(view.events()), view)
        with LedgerView.open(area / "run") as view:
            LiveExport(here)(fold(view.events()), view)
        assert contents(here) == wanted
        assert {path.name for path in (area / "out").iterdir()} == {"here"}


class Archive:
    """An archive of a run beside that of an earlier one."""

    threads = False

    name = "archive"

    def prepare(self, area: Path) -> None:
        archive_runs.write(area / "earlier", run_id="r0")
        archive_runs.write(area / "run")
        archive(area / "artifacts", archive_runs.shot(area / "earlier"))

    def act(self, area: Path, tell: Tell) -> int | None:
        shot = again(lambda: archive_runs.shot(area / "run"))
        tell(again(lambda: archive(area / "artifacts", shot)).id)
        return 0

    def check(self, area: Path, ended: Ended) -> None:
        artifacts = area / "artifacts"
        assert ended.killed or ended.status == 0, ended
        archived = archive(artifacts, archive_runs.shot(area / "run"))
        check_archives(artifacts)
        assert archived.id == "run_002"
        assert archived.is_new is not bool(ended.told) or not ended.told


PROGRAMS = [
    *(
        Export(f"export {layout}{' over' if over else ''}", layout, over=over)
        for layout in ("details", "agentcompass", "jobs", "tiles")
        for over in (False, True)
    ),
    Live(),
    Archive(),
]
