"""What an audit says of runs that are there, gone, moved, altered, or were never entered."""

import fcntl
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import RunNotFound
from ledger.keys import SigningKey
from ledger.opening import LEDGER_NAME
from ledger.store import Ledger
from runtime import record
from runtime.audit import Against, Audit, RunReport, audit, exit_status
from runtime.redact import Redactor
from runtime.registry import Registration, Registry, registry_file
from runtime.surroundings import Surroundings
from tests.events_of import attempt, created, ending, failed_attempt, selected, whole_task
from tests.ledger_checks import forge


def around(**more: object) -> Surroundings:
    return Surroundings(**{"environ": {}, "registry_wait": 0.1, **more})


def run(results: Path, model: str = "m", **more: object) -> Path:
    surroundings = around(**more)
    with (
        record(results, benchmark="mine", model=model, surroundings=surroundings) as recording,
        recording.attempt("1+1") as one,
    ):
        one.result(2)
        one.evaluation(correct=True)
    return recording.path


def entered(results: Path, name: str, events: list[ev.AnyEvent], **execution: object) -> Path:
    """Enter a run of these events, which is then left as a killed one."""
    directory = results / "bench" / name
    directory.mkdir(parents=True)
    first = created(name, **execution)
    with Ledger.create(directory) as ledger:
        registration = Registration(Registry(results), directory, ledger.ledger_id)
        tasks = {event.task for event in events if event.task is not None}
        registration.open(first, Redactor({}), len(tasks))
        ledger.append(first, registration.told(), ev.RunStarted(), selected(*sorted(tasks)))
        ledger.append(*events)
        ledger.checkpoint()
    return directory


def seal(results: Path, directory: Path) -> Path:
    with Ledger.open(directory) as ledger:
        ledger_id = ledger.ledger_id
        ledger.seal()
    Registration(Registry(results), directory, ledger_id).seal()
    return directory


def contents(results: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}


def page(results: Path, **more: object) -> tuple[Audit, list[RunReport], int]:
    before = contents(results)
    found = audit(results, Against(), **more)
    runs = list(found.runs)
    changed = {path for path, data in contents(results).items() if before.get(path) != data}
    running = {Path(report.path).name for report in runs if report.kind == "running"}
    assert {path.parent.name for path in changed} <= running, "an audit writes nothing"
    problems = [*found.registry.problems, *(one for each in runs for one in each.problems)]
    return found, runs, exit_status(problems)


def codes(report: RunReport) -> dict[str, str]:
    return {problem.code: problem.severity for problem in report.problems}


def told(results: Path) -> tuple[dict[str, RunReport], int]:
    _, runs, status = page(results)
    return {f"{report.path}": report for report in runs}, status


def name(results: Path, directory: Path) -> str:
    return directory.relative_to(results).as_posix()


# -- runs that are as they should be -----------------------------------------------------------


def test_runs_are_told_in_the_order_in_which_they_were_entered(tmp_path: Path) -> None:
    directories = [run(tmp_path, model) for model in ("z", "a", "m")]
    found, runs, status = page(tmp_path)
    assert [report.path for report in runs] == [name(tmp_path, one) for one in directories]
    assert {(r.kind, r.status, r.registered, tuple(r.problems)) for r in runs} == {
        ("sealed", "completed", "yes", ())
    }
    assert (found.registry.entries, found.total, status) == (6, 3, 0)
    with LedgerView.open(directories[0]) as view:
        assert (runs[0].size, runs[0].root) == (view.size, view.root().hex())


def test_an_interrupted_run_and_its_open_attempts_are_told(tmp_path: Path) -> None:
    begun = [ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1)]
    directory = entered(tmp_path, "killed", begun)
    reports, status = told(tmp_path)
    report = reports[name(tmp_path, directory)]
    assert (report.kind, report.status) == ("interrupted", "interrupted")
    assert report.attempts.without_end == 1
    assert codes(report) == {"without_end": "note"}
    assert status == 0


def test_a_run_that_goes_on_is_told_as_running(tmp_path: Path) -> None:
    with record(tmp_path, benchmark="b", model="m", surroundings=around()):
        reports, status = told(tmp_path)
    assert [report.kind for report in reports.values()] == ["running"]
    assert status == 0


def test_a_run_that_died_before_its_first_event_is_told_as_empty(tmp_path: Path) -> None:
    directory = tmp_path / "bench" / "empty"
    directory.mkdir(parents=True)
    with Ledger.create(directory) as ledger:
        Registration(Registry(tmp_path), directory, ledger.ledger_id).open(
            created("empty"), Redactor({}), 1
        )
    reports, status = told(tmp_path)
    assert reports["bench/empty"].kind == "empty"
    assert (codes(reports["bench/empty"]), status) == ({"empty": "note"}, 0)


def test_there_must_be_a_directory(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound):
        audit(tmp_path / "nowhere", Against())


# -- what runs cost and rest on ----------------------------------------------------------------


def calls(task: str, *costs: float | None) -> list[ev.AnyEvent]:
    usage = ev.Usage(input_tokens=10, output_tokens=5)
    return [
        event
        for number, cost in enumerate(costs)
        for event in (
            ev.CallStarted(task=task, attempt=1, call_id=f"{cost} {number}", call_index=number),
            ev.CallFinished(
                task=task,
                attempt=1,
                call_id=f"{cost} {number}",
                success=True,
                usage=None if cost is None else usage,
                cost_usd=cost,
            ),
        )
    ]


def retried(task: str, retry: int, scope: str = "attempt") -> ev.AttemptRetried:
    error = ev.ErrorInfo(code="busy", message="busy", phase="run_harness")
    return ev.AttemptRetried(
        task=task,
        attempt=1,
        retry=retry,
        max_retries=3,
        retry_delay_seconds=0.0,
        stage="run_harness",
        scope=scope,
        error=error,
    )


def test_discarded_tries_are_counted_with_what_they_cost(tmp_path: Path) -> None:
    begin, *rest, end = attempt("t")
    more = [*calls("t", 0.5), *rest, end.model_copy(update={"retries": 1})]
    events = [begin, *calls("t", 0.25, None), retried("t", 1), *more]
    directory = entered(tmp_path, "r", whole_task("t", events))
    report = told(tmp_path)[0][name(tmp_path, directory)]
    assert report.attempts.discarded_tries == 1
    spent, discarded = report.attempts.spent, report.attempts.discarded
    assert (spent.calls, spent.cost_usd, spent.unknown_cost) == (3, 0.75, 1)
    assert (discarded.calls, discarded.cost_usd, discarded.unknown_cost) == (2, 0.25, 1)
    assert (discarded.input_tokens, discarded.output_tokens, discarded.unknown_usage) == (10, 5, 1)


def test_a_cost_that_nobody_told_is_unknown_and_not_zero(tmp_path: Path) -> None:
    begin, *rest = attempt("t")
    directory = entered(tmp_path, "r", whole_task("t", [begin, *calls("t", None, None), *rest]))
    spent = told(tmp_path)[0][name(tmp_path, directory)].attempts.spent
    assert (spent.calls, spent.cost_usd, spent.input_tokens) == (2, None, None)


def test_a_call_that_never_ended_is_an_unknown_cost(tmp_path: Path) -> None:
    open_call = ev.CallStarted(task="t", attempt=1, call_id="c", call_index=0)
    begun = [ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1), open_call]
    directory = entered(tmp_path, "r", begun)
    spent = told(tmp_path)[0][name(tmp_path, directory)].attempts.spent
    assert (spent.calls, spent.cost_usd, spent.unknown_cost) == (1, None, 1)


def test_evaluations_that_were_repeated_are_no_discarded_tries(tmp_path: Path) -> None:
    begin, result, judged, end = attempt("t")
    failed = ev.EvaluationFinished(
        task="t",
        attempt=1,
        evaluation_error=ev.ErrorInfo(code="e", message="e", phase="evaluate"),
        evaluator=ev.Evaluator(id="judge", version="1"),
    )
    events = [begin, result, failed, retried("t", 1, "evaluate"), judged]
    events.append(end.model_copy(update={"retries": 1}))
    directory = entered(tmp_path, "r", whole_task("t", events))
    attempts = told(tmp_path)[0][name(tmp_path, directory)].attempts
    assert (attempts.repeated_evaluations, attempts.discarded_tries) == (1, 0)


def test_the_share_behind_a_number_names_what_is_not_in_it(tmp_path: Path) -> None:
    """Planned: two tasks, two attempts each. Made: 3, one of them failed."""
    surroundings = around()
    with record(
        tmp_path, benchmark="b", model="m", k=2, tasks=["a", "b"], surroundings=surroundings
    ) as recording:
        for task, answers in {"a": [True, None], "b": [False]}.items():
            for correct in answers:
                with recording.attempt(task) as one:
                    if correct is None:
                        raise ValueError("the loop failed")
                    one.result(1)
                    one.evaluation(correct=correct)
    report = told(tmp_path)[0][name(tmp_path, recording.path)]
    assert (report.attempts.planned, report.attempts.made, report.attempts.errors) == (4, 3, 1)
    share = {share.metric: share for share in report.metrics}["correct.accuracy"]
    assert (share.planned_tasks, share.planned_attempts) == (2, 4)
    behind = share.attempts + sum(share.left_out_attempts.values())
    assert behind == 4
    assert share.zeros == {"run_error": 1}


def test_a_number_that_was_changed_is_told(tmp_path: Path) -> None:
    counts = {"total": 1, "evaluated": 1, "error": 0, "skipped": 0, "missing": 0}
    events = [*whole_task("t", attempt("t", correct=False)), ev.SummaryStarted()]
    directory = entered(tmp_path, "r", events)
    with LedgerView.open(directory) as view:
        size, root = view.size, view.root().hex()
    use = ev.ReducerUse(metric="correct", name="accuracy", version=1, policy="count_as_zero")
    with Ledger.open(directory) as ledger:
        ledger.append(
            ev.MetricsComputed(
                metrics={"correct.accuracy": 1.0},
                counts=counts,
                reducers=(use,),
                size=size,
                root=root,
                source="evaluation",
            ),
            ev.RunFinished(status="completed", exit_code=0),
        )
    seal(tmp_path, directory)
    reports, status = told(tmp_path)
    assert codes(reports[name(tmp_path, directory)])["metrics_differ"] == "broken"
    assert status == 4


# -- runs that are not where they were ---------------------------------------------------------


def test_a_run_that_was_removed_is_told(tmp_path: Path) -> None:
    kept, gone = run(tmp_path, "a"), run(tmp_path, "b")
    shutil.rmtree(gone)
    reports, status = told(tmp_path)
    assert codes(reports[name(tmp_path, gone)]) == {"missing": "failed"}
    assert (reports[name(tmp_path, gone)].kind, status) == ("missing", 1)
    assert reports[name(tmp_path, gone)].run_id == gone.name
    assert reports[name(tmp_path, kept)].problems == []


def test_a_ledger_that_was_taken_out_of_its_directory_is_rolled_back(tmp_path: Path) -> None:
    directory = run(tmp_path)
    (directory / LEDGER_NAME).unlink()
    reports, status = told(tmp_path)
    report = reports[name(tmp_path, directory)]
    assert (report.kind, status) == ("damaged", 4)
    assert report.registered == "yes"


def test_a_run_that_was_moved_is_found(tmp_path: Path) -> None:
    directory = run(tmp_path)
    (tmp_path / "attic").mkdir()
    directory.rename(tmp_path / "attic" / "moved")
    reports, status = told(tmp_path)
    assert list(reports) == ["attic/moved"]
    assert codes(reports["attic/moved"]) == {"moved": "note"}
    assert status == 0


@pytest.mark.parametrize("place", [".hidden", "copy", "mine/m/inside/deep"])
def test_a_copy_is_told_wherever_it_hides(tmp_path: Path, place: str) -> None:
    directory = run(tmp_path)
    shutil.copytree(directory, tmp_path / place)
    reports, status = told(tmp_path)
    assert codes(reports[place]) == {"copy": "note"}
    assert reports[place].registered == "no"
    assert (codes(reports[name(tmp_path, directory)]), status) == ({}, 0)


def test_a_copy_within_the_directory_of_a_run_is_found(tmp_path: Path) -> None:
    directory = run(tmp_path)
    (directory / "sub").mkdir()
    shutil.copy(directory / LEDGER_NAME, directory / "sub")
    assert codes(told(tmp_path)[0][name(tmp_path, directory / "sub")]) == {"copy": "note"}


def test_a_ledger_in_the_place_of_another_is_told(tmp_path: Path) -> None:
    one, other = run(tmp_path, "a"), run(tmp_path, "b")
    shutil.rmtree(other)
    shutil.copytree(one, other)
    _, runs, status = page(tmp_path)
    at = [(report.kind, codes(report)) for report in runs if report.path == name(tmp_path, other)]
    assert at == [("replaced", {"replaced": "broken"}), ("sealed", {"copy": "note"})]
    assert status == 4


def test_a_ledger_that_was_never_entered_in_the_place_of_one_is_told(tmp_path: Path) -> None:
    directory = run(tmp_path)
    shutil.rmtree(directory)
    directory.mkdir()
    with Ledger.create(directory) as ledger:
        ledger.append(created("x"), ev.RunStarted())
    _, runs, status = page(tmp_path)
    assert [codes(report) for report in runs] == [
        {"replaced": "broken"},
        {"unregistered": "failed"},
    ]
    assert status == 4


def test_a_run_id_that_was_used_again_hides_no_run(tmp_path: Path) -> None:
    first = entered(tmp_path, "again", whole_task("t", attempt("t", correct=False)))
    shutil.rmtree(first)
    entered(tmp_path, "again", whole_task("t", attempt("t")))
    _, runs, status = page(tmp_path)
    assert [(report.kind, report.path) for report in runs] == [
        ("missing", "bench/again"),
        ("interrupted", "bench/again"),
    ]
    assert "another run" in runs[0].problems[0].message
    assert status == 1


def test_an_older_copy_is_seen_by_the_seal_that_was_entered(tmp_path: Path) -> None:
    directory = entered(tmp_path, "r", whole_task("t", attempt("t", correct=False)))
    older = tmp_path.with_name("older")
    shutil.copytree(directory, older)
    seal(tmp_path, directory)
    shutil.rmtree(directory)
    shutil.copytree(older, directory)
    reports, status = told(tmp_path)
    report = reports[name(tmp_path, directory)]
    assert (report.kind, status) == ("damaged", 4)
    assert codes(report)["rolled_back"] == "broken"


def test_another_history_is_seen_by_the_seal_that_was_entered(tmp_path: Path) -> None:
    """The same run, made anew with better verdicts, under the same ledger id."""
    ids = iter([b"\x07" * 16])

    def entropy(count: int) -> bytes:
        return next(ids, bytes(count))

    directory = tmp_path / "bench" / "r"
    for correct in (False, True):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        ids = iter([b"\x07" * 16])
        with Ledger.create(directory, entropy=entropy) as ledger:
            first = created("r")
            registration = Registration(Registry(tmp_path), directory, ledger.ledger_id)
            if not correct:
                registration.open(first, Redactor({}), 1)
            ledger.append(first, ev.RunStarted(), selected("t"))
            ledger.append(*whole_task("t", attempt("t", correct=correct)), *ending())
            ledger.seal()
        if not correct:
            registration.seal()
    reports, status = told(tmp_path)
    assert "checkpoint_root" in codes(reports["bench/r"])
    assert status == 4


def test_a_request_that_is_not_the_one_that_was_entered_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "bench" / "r"
    directory.mkdir(parents=True)
    with Ledger.create(directory) as ledger:
        registration = Registration(Registry(tmp_path), directory, ledger.ledger_id)
        registration.open(created("r", k=5), Redactor({}), 3)
        ledger.append(created("r", k=1), ev.RunStarted(), selected("t"))
    report = told(tmp_path)[0]["bench/r"]
    assert codes(report) == {"request": "broken", "plan": "failed"}
    assert report.attempts.planned == 15


# -- runs that were never entered --------------------------------------------------------------


def test_a_run_that_was_never_entered_is_told(tmp_path: Path) -> None:
    run(tmp_path)
    directory = tmp_path / "bench" / "alien"
    directory.mkdir(parents=True)
    with Ledger.create(directory) as ledger:
        ledger.append(created("alien"), ev.RunStarted())
    reports, status = told(tmp_path)
    assert codes(reports["bench/alien"]) == {"unregistered": "failed"}
    assert status == 1


def test_a_run_that_was_entered_late_is_told(tmp_path: Path) -> None:
    with ExitStack() as stack:
        lock = stack.enter_context((tmp_path / "registry.lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        late = run(tmp_path, "late")
    run(tmp_path, "next")
    reports, status = told(tmp_path)
    report = reports[name(tmp_path, late)]
    assert report.registered == "late"
    assert codes(report) == {"was_unregistered": "note", "late": "note"}
    assert status == 0


# -- the registry ------------------------------------------------------------------------------


def test_without_a_registry_runs_are_told_all_the_same(tmp_path: Path) -> None:
    directory = run(tmp_path)
    for path in tmp_path.glob("registry.*"):
        path.unlink()
    found, runs, status = page(tmp_path)
    assert [problem.code for problem in found.registry.problems] == ["no_registry"]
    assert (runs[0].path, runs[0].kind) == (name(tmp_path, directory), "sealed")
    assert codes(runs[0]) == {"registry_gone": "failed"}
    assert status == 1


def test_a_registry_of_which_a_checkpoint_is_left_is_missed(tmp_path: Path) -> None:
    run(tmp_path)
    registry_file(tmp_path).unlink()
    found, _, status = page(tmp_path)
    assert [problem.code for problem in found.registry.problems] == ["registry_gone"]
    assert status == 4


def flipped(file: Path) -> None:
    """Damage the first entry of a registry that has several segments."""
    forge(file, "UPDATE segment SET data = zeroblob(length(data)) WHERE id = 0")


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def nonsense(file: Path) -> None:
    file.write_bytes(b"not a database" * 1000)


def a_trigger(file: Path) -> None:
    forge(file, "CREATE TRIGGER theirs AFTER INSERT ON event BEGIN SELECT 1; END")


@pytest.mark.parametrize("damage", [flipped, cut, nonsense, a_trigger])
def test_a_damaged_registry_hides_no_run(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    directories = [run(tmp_path, model) for model in "abc"]
    damage(registry_file(tmp_path))
    found, runs, status = page(tmp_path)
    assert {report.path for report in runs} == {name(tmp_path, one) for one in directories}
    assert {report.kind for report in runs} == {"sealed"}
    assert any(problem.severity == "broken" for problem in found.registry.problems)
    assert status == 4


def test_one_damaged_entry_does_not_hide_the_others(tmp_path: Path) -> None:
    first, second = run(tmp_path, "a"), run(tmp_path, "b")
    shutil.rmtree(second)
    flipped(registry_file(tmp_path))
    reports, status = told(tmp_path)
    assert reports[name(tmp_path, second)].kind == "missing"
    assert name(tmp_path, first) in reports
    assert status == 4


def test_a_registry_that_was_begun_anew_is_seen_by_the_runs_before_it(tmp_path: Path) -> None:
    first = run(tmp_path, "a")
    for path in tmp_path.glob("registry.*"):
        path.unlink()
    second = run(tmp_path, "b")
    reports, status = told(tmp_path)
    assert codes(reports[name(tmp_path, first)]) == {
        "registry_other": "failed",
        "unregistered": "failed",
    }
    assert codes(reports[name(tmp_path, second)]) == {}
    assert status == 1


def test_a_registry_that_was_rolled_back_is_seen_by_the_runs_after_it(tmp_path: Path) -> None:
    """With all its side files, so that nothing beside it knows better."""
    bad = run(tmp_path, "a")
    older = {path: path.read_bytes() for path in tmp_path.glob("registry.*")}
    later = run(tmp_path, "b")
    for path, data in older.items():
        path.write_bytes(data)
    reports, status = told(tmp_path)
    assert codes(reports[name(tmp_path, later)]) == {
        "registry_rolled_back": "broken",
        "unregistered": "failed",
    }
    assert codes(reports[name(tmp_path, bad)]) == {}
    assert status == 4


def test_a_registry_that_was_written_anew_is_seen_by_the_runs_in_it(tmp_path: Path) -> None:
    """A bad run is left out of a new history of the registry, under the same id."""
    good = run(tmp_path, "good")
    with LedgerView.open(registry_file(tmp_path)) as view:
        ids = view.ledger_id
    shutil.rmtree(run(tmp_path, "bad"))
    later = run(tmp_path, "later")
    with LedgerView.open(registry_file(tmp_path)) as view:
        kept = [recorded.event for recorded in view.events()]
    for path in tmp_path.glob("registry.*"):
        path.unlink()
    drawn = iter([ids])
    forged = Ledger.create(
        registry_file(tmp_path), entropy=lambda count: next(drawn, os.urandom(count))
    )
    with forged as ledger:
        ledger.append(*[event for event in kept if "bad" not in event.path])
        ledger.append(*[event for event in kept if "later" in event.path])
        ledger.checkpoint()
    reports, status = told(tmp_path)
    for one in (good, later):
        assert codes(reports[name(tmp_path, one)])["registry_rewritten"] == "broken"
    assert status == 4


def test_a_checkpoint_kept_elsewhere_shows_that_entries_are_gone(tmp_path: Path) -> None:
    run(tmp_path, "a")
    older = {path: path.read_bytes() for path in tmp_path.glob("registry.*")}
    bad = run(tmp_path, "bad")
    checkpoint = (tmp_path / "registry.checkpoint.unsigned").read_bytes()
    shutil.rmtree(bad)
    for path, data in older.items():
        path.write_bytes(data)
    assert page(tmp_path)[2] == 0  # nothing is left of it
    found, _, status = page(tmp_path, checkpoints=[checkpoint])
    assert [problem.code for problem in found.registry.problems] == ["rolled_back"]
    assert status == 4


# -- signatures --------------------------------------------------------------------------------


def test_who_signed_is_told_by_the_keys_that_were_brought(tmp_path: Path) -> None:
    key = SigningKey.generate("lab")
    run(tmp_path, "a", signers=[key])
    run(tmp_path, "b")
    found = audit(tmp_path, Against(verifiers=[key.verifier]))
    signed, unsigned = list(found.runs)
    assert [text for text in signed.signatures if "signed by lab" in text]
    assert signed.unproven == []
    assert unsigned.signatures == []
    assert "no signature" in unsigned.unproven[0]
    assert any("signed by lab" in text for text in found.registry.signatures)
    assert not found.registry.problems


def test_a_failed_attempt_counts_as_an_error_and_is_made(tmp_path: Path) -> None:
    events = whole_task("t", failed_attempt("t"), error=True)
    directory = entered(tmp_path, "r", events)
    attempts = told(tmp_path)[0][name(tmp_path, directory)].attempts
    assert (attempts.planned, attempts.made, attempts.errors) == (1, 1, 1)
