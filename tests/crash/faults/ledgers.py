"""Programs that write to a ledger itself."""

import shutil
from pathlib import Path

from acl.main import call
from ledger import LedgerView
from ledger import events as ev
from ledger.errors import AlreadySealed, LedgerDead, NotStored
from ledger.store import Ledger, Receipt
from tests import events_of as say
from tests.crash.faults.standing import Ended, Tell, again, check_standing, names_in
from tests.erased import assert_gone, digits, pieces
from tests.signed_ledgers import LAB

ALONE = {"ledger.sqlite", "ledger.lock"}
UNSIGNED = "ledger.checkpoint.unsigned"
MARKER = digits(9600)


def told_of(receipt: Receipt) -> tuple[int, str]:
    return receipt.size, receipt.root.hex()


class Create:
    """An empty ledger, and its first events."""

    threads = False

    name = "create"

    def prepare(self, area: Path) -> None:
        pass

    def act(self, area: Path, tell: Tell) -> int | None:
        with self.made(area) as ledger:
            tell(*told_of(again(lambda: ledger.append(*say.opening("t")))))
        return 0

    def made(self, area: Path) -> Ledger:
        return Ledger.create(area)

    def check(self, area: Path, ended: Ended) -> None:
        path = area / "ledger.sqlite"
        assert ended.has_status(0, 1, 2), ended
        if path.exists():
            size = check_standing(path, ended.told, (0, 3))
            with Ledger.open(area) as ledger:
                assert ledger.size == size
                if not size:
                    ledger.append(*say.opening("t"))
        else:
            assert not ended.told
            with Ledger.create(area) as ledger:
                ledger.append(*say.opening("t"))
        check_standing(path, [], (3,))
        assert names_in(area) - {"state"} == ALONE


class Append:
    """Three commits; what is not stored is given once more, and a dead writer opened again."""

    threads = False

    name = "append"
    SIZES = (3, 9, 15, 21)

    def prepare(self, area: Path) -> None:
        with Ledger.create(area) as ledger:
            ledger.append(*say.opening("a", "b", "c"))

    def act(self, area: Path, tell: Tell) -> int | None:
        ledger = again(lambda: Ledger.open(area))
        try:
            for task in "abc":
                before = ledger.size
                batch = say.whole_task(task, say.attempt(task, answer=task * 30_000))
                try:
                    receipt = ledger.append(*batch)
                except NotStored:
                    assert ledger.size == before
                    receipt = ledger.append(*batch)
                except LedgerDead:
                    ledger.close()
                    ledger = Ledger.open(area)
                    if ledger.size == before:
                        ledger.append(*batch)
                    receipt = ledger.append()
                tell(*told_of(receipt))
        finally:
            ledger.close()
        return 0

    def check(self, area: Path, ended: Ended) -> None:
        assert ended.killed or ended.status == 0, ended
        size = check_standing(area / "ledger.sqlite", ended.told, self.SIZES)
        with Ledger.open(area) as ledger:
            assert ledger.size == size
            for task in "abc"[(size - 3) // 6 :]:
                ledger.append(*say.whole_task(task, say.attempt(task)))
            ledger.append(*say.ending())
            ledger.seal()
        check_standing(area / "ledger.sqlite", ended.told, (24,))
        assert names_in(area) - {"state"} == {*ALONE, UNSIGNED}


class Checkpoint:
    """Checkpoints between commits; signed ones need the memory of what was signed."""

    threads = False

    def __init__(self, name: str, *signers: object) -> None:
        self.name = name
        self.signers = signers

    def prepare(self, area: Path) -> None:
        run = area / "run"
        run.mkdir()
        with Ledger.create(run) as ledger:
            ledger.append(*say.opening("a", "b"))
            ledger.checkpoint(*self.signers)

    def act(self, area: Path, tell: Tell) -> int | None:
        ledger = again(lambda: Ledger.open(area / "run"))
        try:
            for task in "ab":
                batch = say.whole_task(task, say.attempt(task))
                try:
                    again(lambda batch=batch: ledger.append(*batch))
                    checkpoint = again(lambda: ledger.checkpoint(*self.signers))
                except LedgerDead:
                    return 1
                tell(checkpoint.size, checkpoint.root.hex())
        finally:
            ledger.close()
        return 0

    def check(self, area: Path, ended: Ended) -> None:
        run = area / "run"
        path = run / "ledger.sqlite"
        assert ended.killed or ended.status in (0, 1), ended
        size = check_standing(path, ended.told, (3, 9, 15))
        with LedgerView.open(path) as view:
            held = {number for number, _ in view.checkpoints()}
            assert held >= {3, *(told for told, _ in ended.told)}
        with Ledger.open(run) as ledger:
            assert ledger.size == size
            checkpoint = ledger.checkpoint(*self.signers)
            assert checkpoint.size == size
        check_standing(path, ended.told, (size,))
        side = "ledger.checkpoint" if self.signers else UNSIGNED
        assert names_in(run) == {*ALONE, side}


class Seal:
    """`acl seal` of a run that was interrupted."""

    threads = False

    name = "seal"

    def prepare(self, area: Path) -> None:
        run = area / "run"
        run.mkdir()
        with Ledger.create(run) as ledger:
            ledger.append(*say.opening("t"))
            ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 9000)))

    def act(self, area: Path, tell: Tell) -> int | None:
        return call(["seal", str(area / "run")])

    def check(self, area: Path, ended: Ended) -> None:
        run = area / "run"
        ended.is_told_in_one_line(1, 2)
        size = check_standing(run / "ledger.sqlite", [], (9, 10))
        assert ended.status != 0 or size == 10
        try:
            with Ledger.open(run) as ledger:
                ledger.seal()
        except AlreadySealed:
            assert size == 10
        assert call(["seal", str(run)]) == 0
        check_standing(run / "ledger.sqlite", [], (10,))
        with LedgerView.open(run) as view:
            assert [held for held, _ in view.checkpoints()] == [10]
        assert (run / "ledger.sqlite").stat().st_mode & 0o777 == 0o444
        assert names_in(run) == {*ALONE, UNSIGNED}


class Erase:
    """`acl erase` of a large answer, in a run at work or a sealed one."""

    threads = False

    def __init__(self, name: str, *, sealed: bool) -> None:
        self.name = name
        self.sealed = sealed

    def prepare(self, area: Path) -> None:
        run = area / "run"
        run.mkdir()
        with Ledger.create(run) as ledger:
            ledger.append(*say.opening("t"))
            ledger.append(*say.whole_task("t", say.attempt("t", answer=MARKER)))
            ledger.checkpoint()
            if self.sealed:
                ledger.seal()

    def act(self, area: Path, tell: Tell) -> int | None:
        return call(["erase", str(area / "run"), "5", "--reason", "asked to"])

    def check(self, area: Path, ended: Ended) -> None:
        run = area / "run"
        size = 10 if self.sealed else 9
        ended.is_told_in_one_line(1, 2)
        check_standing(run / "ledger.sqlite", [], (size, size + 1))
        with LedgerView.open(run) as view:
            erased = view.event(5).erased
            assert erased is (view.size > size)
            told = [one for one in view.events() if isinstance(one.event, ev.PayloadErased)]
            assert len(told) == int(erased)
        assert ended.status != 0 or erased
        if not erased:
            assert call(["erase", str(run), "5", "--reason", "asked to"]) == 0
        with Ledger.open(run, amends=True) as ledger:
            ledger.checkpoint()
        check_standing(run / "ledger.sqlite", [], (size + 1,))
        assert names_in(run) == {*ALONE, UNSIGNED}
        template = area.parent / "template" / "run" / "ledger.sqlite"
        assert_gone(run / "ledger.sqlite", MARKER, pieces(template, MARKER))
        with LedgerView.open(run) as view:
            assert view.sealed is self.sealed
            if self.sealed:
                assert list(view.checkpoints())[-1][0] == view.size
                assert (run / "ledger.sqlite").stat().st_mode & 0o777 == 0o444


class Annotate:
    """`acl annotate` of a sealed run, or of one that is not."""

    threads = False

    def __init__(self, name: str, *, sealed: bool) -> None:
        self.name = name
        self.sealed = sealed

    def prepare(self, area: Path) -> None:
        Erase("", sealed=self.sealed).prepare(area)

    def act(self, area: Path, tell: Tell) -> int | None:
        return call(["annotate", str(area / "run"), "a remark", "--author", "me"])

    def check(self, area: Path, ended: Ended) -> None:
        run = area / "run"
        size = 10 if self.sealed else 9
        ended.is_told_in_one_line(1, 2)
        now = check_standing(run / "ledger.sqlite", [], (size, size + 1))
        assert ended.status != 0 or now == size + 1
        assert call(["annotate", str(run), "another", "--author", "me"]) == 0
        check_standing(run / "ledger.sqlite", [], (now + 1,))
        with LedgerView.open(run) as view:
            assert view.sealed is self.sealed
            assert list(view.checkpoints())[-1][0] == view.size
        if self.sealed:
            assert (run / "ledger.sqlite").stat().st_mode & 0o777 == 0o444
        assert names_in(run) == {*ALONE, UNSIGNED}


class Copy:
    """`acl copy` of a ledger whose writer died: its -wal holds the events."""

    threads = False

    name = "copy"

    def prepare(self, area: Path) -> None:
        away, run = area / "away", area / "run"
        away.mkdir()
        run.mkdir()
        with Ledger.create(away) as ledger:
            ledger.append(*say.opening("t"))
            ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 9000)))
            ledger.checkpoint()
            for file in away.iterdir():
                if not file.name.endswith("-shm"):
                    shutil.copyfile(file, run / file.name)
        shutil.rmtree(away)

    def act(self, area: Path, tell: Tell) -> int | None:
        return call(["copy", str(area / "run"), str(area / "copy.sqlite")])

    def check(self, area: Path, ended: Ended) -> None:
        copy = area / "copy.sqlite"
        ended.is_told_in_one_line(1, 2)
        if copy.exists() and copy.stat().st_size:
            check_standing(copy, [], (9,))
        else:
            assert ended.status != 0
        if ended.status == 0:
            assert copy.exists()
        elif copy.exists():
            # A kill leaves something behind, which is named to whoever comes next; and a copy that
            # is whole stands where it could not be read to tell of it.
            assert ended.killed or ended.unread
            assert call(["copy", str(area / "run"), str(copy)]) == 2
            copy.unlink()
        if not copy.exists():
            assert call(["copy", str(area / "run"), str(copy)]) == 0
        check_standing(copy, [], (9,))
        assert {p.name for p in area.iterdir()} - {"state"} == {"run", "copy.sqlite"}
        check_standing(area / "run" / "ledger.sqlite", [], (9,))


PROGRAMS = [
    Create(),
    Append(),
    Checkpoint("checkpoint"),
    Checkpoint("signed checkpoint", LAB),
    Seal(),
    Erase("erase", sealed=False),
    Erase("erase sealed", sealed=True),
    Annotate("annotate", sealed=False),
    Annotate("annotate sealed", sealed=True),
    Copy(),
]
