"""Programs that run evaluations: the registry, a recorded loop, a run, and a run that reuses another."""

import asyncio
import fcntl
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from exporters.live import LiveExport
from ledger import LedgerView, fold
from ledger import events as ev
from runtime import Surroundings, Task, record
from runtime.contracts import AttemptContext
from runtime.redact import Redactor
from runtime.registry import LOCK_SECONDS, Registration, Registry, complete, registry_file
from runtime.results import RunResult
from runtime.runner import run
from tests import archive_runs
from tests.crash.faults.standing import Ended, Tell, again, contents, is_empty
from tests.fake_plugins import Listed, Scripted, at_once, plugins, request, task
from tests.ledger_checks import check_ledger

TASKS = [task(name) for name in "abcd"]


def entries(results: Path) -> list[tuple[str, str]]:
    """What the registry holds: type and run, in order."""
    check_ledger(registry_file(results))
    with LedgerView.open(registry_file(results)) as view:
        return [(recorded.type, recorded.event.run_id) for recorded in view.events()]


class Enter:
    """A run that is entered into the registry and sealed, while another one is there already."""

    threads = False

    name = "registry"
    runs = "abc"

    def prepare(self, area: Path) -> None:
        results = area / "results"
        for name in self.runs:
            archive_runs.write(results / "bench" / name, run_id=name)
        registration = self._registration(results, "a")
        registration.open(archive_runs.created("a"), Redactor({}), 1)
        registration.seal()

    def _registration(self, results: Path, name: str, wait: float = LOCK_SECONDS) -> Registration:
        directory = results / "bench" / name
        with LedgerView.open(directory) as view:
            ledger_id = view.ledger_id
        return Registration(Registry(results, wait=wait), directory, ledger_id, tell=print)

    def act(self, area: Path, tell: Tell) -> int | None:
        registration = again(lambda: self._registration(area / "results", "b"))
        registration.open(archive_runs.created("b"), Redactor({}), 1)
        tell("opened", registration.fault)
        registration.seal()
        tell("sealed", registration.fault)
        return 0

    def check(self, area: Path, ended: Ended) -> None:
        results = area / "results"
        assert ended.killed or ended.status in (0, 1), ended
        before = entries(results)
        assert before[:2] == [("registry.opened", "a"), ("registry.sealed", "a")]
        if ["opened", None] in ended.told:
            assert ("registry.opened", "b") in before
        if ended.status == 0 and "b does not" not in ended.said and not ended.said:
            assert ("registry.sealed", "b") in before
        registration = self._registration(results, "c")
        registration.open(archive_runs.created("c"), Redactor({}), 1)
        assert registration.fault is None
        registration.seal()
        # A run whose memo was not kept is found by the second one that comes.
        after = entries(results)
        if ended.status == 0 and ended.told[-1][1] is not None:
            # What could not be entered left word, and the next run took it along.
            assert ("registry.sealed", "b") in after
        if ("registry.opened", "b") in before:
            assert ("registry.sealed", "b") in after
        if ("registry.sealed", "b") not in after:
            complete(results / "bench" / "b", tell=refuse)
        found = entries(results)
        assert sorted(found) == sorted(
            (kind, name) for kind in ("registry.opened", "registry.sealed") for name in self.runs
        )


class EnterLate(Enter):
    """A run that waits in vain, and is entered at its end, in one turn with one that died."""

    name = "registry late"
    runs = "abcd"

    def prepare(self, area: Path) -> None:
        super().prepare(area)
        self._wait_in_vain(area, "d")

    def _wait_in_vain(self, area: Path, name: str) -> Registration:
        """Try to be entered while somebody has the lock; word stays."""
        results = area / "results"
        registration = again(lambda: self._registration(results, name, wait=0.0))
        with ExitStack() as stack:
            # Where even that meets the fault it does not wait.
            with suppress(OSError):
                lock = stack.enter_context((results / "registry.lock").open("rb"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            registration.open(archive_runs.created(name), Redactor({}), 1)
        return registration

    def act(self, area: Path, tell: Tell) -> int | None:
        registration = self._wait_in_vain(area, "b")
        tell("opened", registration.fault)
        registration.seal()
        tell("sealed", registration.fault)
        return 0

    def check(self, area: Path, ended: Ended) -> None:
        super().check(area, ended)
        left = list((area / "results" / "registry.waiting").iterdir())
        # What was not written to its end goes after an hour.
        assert {path.suffix for path in left} <= ({".new"} if ended.killed else set())


def refuse(text: str) -> None:
    raise AssertionError(text)


def around(found: Any = None) -> Surroundings:
    more = {"plugins": found} if found is not None else {}
    return Surroundings(environ={}, sleep=at_once, patience=0.0, alarm=print, **more)


def details(directory: Path) -> LiveExport:
    return LiveExport(directory, home=directory)


def as_told(work: Callable[[], int]) -> int:
    """The status of what the command line does; it tells a system error in one line, too."""
    try:
        return work()
    except OSError as error:
        print(f"acl: {error.strerror}: {error.filename}")
        return 1


class Record:
    """A loop that records two attempts, with the registry and an export of all at the end."""

    name = "record"
    threads = True

    def prepare(self, area: Path) -> None:
        (area / "results").mkdir()

    def act(self, area: Path, tell: Tell) -> int | None:
        return as_told(lambda: self._record(area, tell))

    def _record(self, area: Path, tell: Tell) -> int:
        with record(
            area / "results",
            benchmark="mine",
            model="m",
            projectors=[details],
            surroundings=around(),
        ) as recording:
            for task in ("a", "b"):
                with recording.attempt(task) as one:
                    one.result({"long": "x" * 9000})
                    one.evaluation(correct=True)
                tell(task)
        return 0

    def check(self, area: Path, ended: Ended) -> None:
        results = area / "results"
        told = {task for (task,) in ended.told}
        assert ended.has_status(0, 1, 2, 5), ended
        for ledger in results.rglob("ledger.sqlite"):
            check_ledger(ledger)
            if is_empty(ledger):
                assert not told
                continue
            with LedgerView.open(ledger) as view:
                state = fold(view.events())
                done = {name for name, task in state.tasks.items() if task.first is not None}
                assert told <= done
                assert ended.status != 0 or state.finished is not None
                assert view.sealed or ended.status != 0 or "seal" in ended.said
        assert self.act(area, lambda *_: None) == 0
        assert len(entries(results)) >= 2


class Run:
    """A run of four tasks, one of which fails; all alone, or reusing the one before."""

    threads = True

    def __init__(self, name: str, *, reuses: bool) -> None:
        self.name = name
        self.reuses = reuses

    def _run(self, area: Path, run_id: str, source: str, *, broken: str = "") -> int:
        def act(one: Task, context: AttemptContext) -> RunResult:
            if one.task_id == broken:
                raise RuntimeError("no")
            answer = "wrong" if one.task_id == "b" else "right"
            return RunResult(one.task_id, final_answer=answer, trajectory=["x" * 9000])

        found = plugins(Listed(TASKS), Scripted(act))
        work = run(
            request(output={"run_id": run_id}, runtime={"reuse_run_id": source}),
            results_dir=area / "results",
            surroundings=around(found),
            projectors=[details],
        )

        def done() -> int:
            outcome = asyncio.run(work)
            if outcome.error is not None:
                print("acl:", outcome.error.message)
            return outcome.exit_code

        return as_told(done)

    def prepare(self, area: Path) -> None:
        self._run(area, "first", "", broken="c")

    def act(self, area: Path, tell: Tell) -> int | None:
        return self._run(area, "second", "first" if self.reuses else "")

    def check(self, area: Path, ended: Ended) -> None:
        results = area / "results"
        (first,) = (path.parent for path in results.rglob("first/ledger.sqlite"))
        assert contents(first) == contents(area.parent / "template" / first.relative_to(area))
        assert ended.has_status(0, 1, 2, 5), ended
        second = first.with_name("second")
        if (second / "ledger.sqlite").exists():
            self._check_second(second, ended)
        else:
            assert ended.status != 0
        source = "second" if (second / "run_info.json").exists() else "first"
        assert self._run(area, "third", source) == 0
        with LedgerView.open(first.with_name("third")) as view:
            state = fold(view.events())
        verdicts = {
            name: {attempt.correct for attempt in task.attempts.values()}
            for name, task in state.tasks.items()
        }
        assert verdicts == {"a": {True}, "b": {False}, "c": {True}, "d": {True}}
        assert ("registry.sealed", "third") in entries(results)

    def _check_second(self, second: Path, ended: Ended) -> None:
        check_ledger(second / "ledger.sqlite")
        if is_empty(second):
            assert ended.status != 0
            return
        with LedgerView.open(second) as view:
            events = [one.event for one in view.events()]
            state = fold(view.events())
        reused = {event.task for event in events if isinstance(event, ev.TaskReused)}
        if self.reuses:
            # What cannot be copied for a moment runs again.
            assert reused <= {"a", "b", "d"}, reused
            if ended.killed:
                # One transaction brings all that is taken over.
                assert len(reused) in (0, 3), reused
        if ended.status == 0:
            assert state.finished is not None


PROGRAMS = [Enter(), EnterLate(), Record(), Run("run", reuses=False), Run("reuse", reuses=True)]
