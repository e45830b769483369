"""Attacks on a results directory, its registry and its witnesses."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from ledger import events as ev
from ledger import note, sidefile, tlog
from ledger.keys import CosigningKey, SigningKey
from ledger.store import Ledger
from runtime.audit import Against, audit, exit_status
from runtime.redact import Redactor
from runtime.registry import Registration, Registry, registry_file
from runtime.registry.owed import entries_of
from runtime.registry.waiting import Word, leave_word
from runtime.witness.judge import format_request
from runtime.witness.server import Witness
from runtime.witness.store import WitnessStore
from tests import events_of as say
from tests.attacks.forging import certify, notes, put_beside, records, relink, replace_events
from tests.attacks.on_history import NAMESAKE, THIEF
from tests.attacks.runs import LAB, another_machine
from tests.ledger_checks import forge

Told = Literal["found", "told", "–"]
Answer = Literal["refused", "signed"]
LAST = "c"


@dataclass
class Results:
    """Three runs that were entered and sealed, and the registry's checkpoint as it was then.

    `before` is a copy of the registry from before the last run.
    """

    home: Path
    kept: bytes = b""
    before: Path = field(default_factory=Path)

    @property
    def directory(self) -> Path:
        """The results directory."""
        return self.home / "results"

    @property
    def registry(self) -> Path:
        """The registry's ledger."""
        return registry_file(self.directory)

    def run(self, name: str) -> Path:
        """The directory of a run."""
        return self.directory / "bench" / name


def set_up_results(home: Path) -> Results:
    """Record three runs."""
    results = Results(home, before=home / "before")
    for name in ("a", "b", LAST):
        if name == LAST:
            results.before.mkdir()
            for path in results.directory.glob("registry*"):
                shutil.copy(path, results.before)
        enter(results.directory, name)
    results.kept = notes(results.registry)[-1]
    return results


def enter(directory: Path, name: str, *, correct: bool = True, registered: bool = True) -> None:
    """Record one run, entered and sealed."""
    run = directory / "bench" / name
    run.mkdir(parents=True)
    first = say.created(name)
    with another_machine(), Ledger.create(run) as ledger:
        registration = Registration(Registry(directory), run, ledger.ledger_id)
        events: list[ev.AnyEvent] = [first]
        if registered:
            registration.open(first, Redactor({}), 1)
            events.append(registration.told())
        ledger.append(*events, ev.RunStarted(), say.selected("t"))
        ledger.append(*say.whole_task("t", say.attempt("t", correct=correct)), *say.ending())
        ledger.checkpoint()
        ledger.seal()
    if registered:
        registration.seal()


def copy_results(results: Results, home: Path) -> Results:
    """Results to spoil."""
    shutil.copytree(results.home, home, dirs_exist_ok=True)
    copied = Results(home, results.kept, home / "before")
    for path in copied.directory.rglob("*.sqlite"):
        path.chmod(0o644)
    return copied


@dataclass(frozen=True)
class RegistryAttack:
    """What somebody does to a results directory, and whether an audit of it finds that.

    `kept` is with a checkpoint of the registry that was kept elsewhere.
    """

    name: str
    does: str
    act: Callable[[Results], None]
    alone: Told
    kept: Told


def seen(results: Results, *, with_kept: bool) -> Told:
    """What an audit says: anything broken or missing, or worth knowing."""
    found = audit(results.directory, Against(), [results.kept] if with_kept else [])
    runs = list(found.runs)
    problems = [*found.registry.problems, *(one for run in runs for one in run.problems)]
    if exit_status(problems):
        return "found"
    return "told" if problems else "–"


def remove_run(results: Results) -> None:
    shutil.rmtree(results.run("a"))


def remove_last_run(results: Results) -> None:
    shutil.rmtree(results.run(LAST))


def swap_runs(results: Results) -> None:
    a, b, aside = results.run("a"), results.run("b"), results.home / "aside"
    a.rename(aside)
    b.rename(a)
    aside.rename(b)


def another_run(results: Results) -> None:
    """Under the same run id and in the same place, with another verdict."""
    shutil.rmtree(results.run("a"))
    enter(results.directory, "a", correct=False, registered=False)


def another_history(results: Results) -> None:
    """The ledger of the run with another verdict, all that hangs on it, and its checkpoints."""
    path = results.run("a") / "ledger.sqlite"
    changed = [
        (head, body.replace(b'"correct":true', b'"correct":false')) for head, body in records(path)
    ]
    replace_events(path, relink(changed))
    certify(path, None)


def unsealed_again(results: Results) -> None:
    """The run as it was before its end."""
    path = results.run("a") / "ledger.sqlite"
    held = records(path)
    forge(path, "DELETE FROM checkpoint", "DROP INDEX blob_digest")
    put_beside(path, None)
    replace_events(path, held[:-2])
    certify(path, None)


def remove_registry(results: Results) -> None:
    for path in results.directory.glob("registry*"):
        path.unlink()


def drop_entry(results: Results) -> None:
    """The entry of a run in the middle, and the run, with all numbers and checkpoints."""
    shutil.rmtree(results.run("b"))
    held = records(results.registry)
    replace_events(
        results.registry, relink([pair for pair in held if b'"run_id":"b"' not in pair[1]])
    )
    forge(results.registry, "DELETE FROM checkpoint")
    put_beside(results.registry, None)
    certify(results.registry, None)


def roll_back_registry(results: Results) -> None:
    """To before the last run, and without that run."""
    shutil.rmtree(results.run(LAST))
    remove_registry(results)
    for path in results.before.iterdir():
        shutil.copy(path, results.directory)


def roll_back_registry_only(results: Results) -> None:
    """To before the last run, which stays."""
    remove_registry(results)
    for path in results.before.iterdir():
        shutil.copy(path, results.directory)


def begin_anew(results: Results) -> None:
    """Everything recorded once more, without the run that was not liked."""
    shutil.rmtree(results.directory)
    for name in ("a", "b"):
        enter(results.directory, name)


def never_entered(results: Results) -> None:
    enter(results.directory, "d", registered=False)


def false_word(results: Results) -> None:
    """A word of a run that waits, with more attempts than it was asked for, for the next run."""
    enter(results.directory, "d", registered=False)
    opened, seal = entries_of(results.run("d"), "bench/d")
    entries = (opened.model_copy(update={"k": 7}), seal)
    assert leave_word(results.directory, Word(since=0, entries=entries), durable=True) is None
    enter(results.directory, "e")


def elsewhere(results: Results) -> None:
    """A run in another results directory, of which this one knows nothing."""
    enter(results.home / "elsewhere", "d")


REGISTRY_ATTACKS: Final = (
    RegistryAttack("run-removed", "deletes the directory of a run", remove_run, "found", "found"),
    RegistryAttack(
        "last-run-removed",
        "deletes the directory of the last run",
        remove_last_run,
        "found",
        "found",
    ),
    RegistryAttack("runs-swapped", "swaps the directories of two runs", swap_runs, "told", "told"),
    RegistryAttack(
        "run-replaced",
        "records a run anew, under its old name, with another verdict",
        another_run,
        "found",
        "found",
    ),
    RegistryAttack(
        "run-rewritten",
        "changes a verdict of a run and all that hangs on it",
        another_history,
        "found",
        "found",
    ),
    RegistryAttack(
        "run-unsealed", "puts a run back to before its end", unsealed_again, "found", "found"
    ),
    RegistryAttack(
        "never-entered", "records a run without entering it", never_entered, "found", "found"
    ),
    RegistryAttack(
        "false-word",
        "leaves word of another request, with which the next run enters one that waits",
        false_word,
        "found",
        "found",
    ),
    RegistryAttack("registry-removed", "deletes the registry", remove_registry, "found", "found"),
    RegistryAttack(
        "entry-dropped",
        "deletes a run, and its entries out of the middle of the registry",
        drop_entry,
        "found",
        "found",
    ),
    RegistryAttack(
        "registry-older",
        "puts an older registry in the place of today's",
        roll_back_registry_only,
        "found",
        "found",
    ),
    RegistryAttack(
        "registry-rolled-back",
        "deletes the last run, and puts an older registry in the place of today's",
        roll_back_registry,
        "–",
        "found",
    ),
    RegistryAttack(
        "begun-anew",
        "records all runs anew, with a new registry, but one",
        begin_anew,
        "–",
        "found",
    ),
    RegistryAttack("elsewhere", "makes a run in another results directory", elsewhere, "–", "–"),
)


# --- witnesses -----------------------------------------------------------------------------------

COSIGNER = CosigningKey("witness.example", b"W" * 32)
ORIGIN = sidefile.signed_origin(LAB.name, bytes(16))
TRUE = b"".join(tlog.leaf_hash(b"true %d" % n) for n in range(30))
FALSE = TRUE[: 32 * 9] + b"".join(tlog.leaf_hash(b"false %d" % n) for n in range(21))
SEEN = 20


@dataclass(frozen=True)
class WitnessAttack:
    """A request to a witness that has cosigned the lab's first 20 events, and its answer."""

    name: str
    does: str
    body: Callable[[], bytes]
    answer: Answer


def _request(
    old: int, size: int, leaves: bytes, key: SigningKey = LAB, origin: str = ORIGIN
) -> bytes:
    path = tlog.prove_consistency(old, size, tlog.subtrees(leaves)).path if old else ()
    text = note.Checkpoint(origin, size, tlog.root_of(leaves, size)).text
    return format_request(old, path, note.sign(text, [key]))


def witness(directory: Path) -> Witness:
    """One that trusts the lab, and has seen its first 20 events."""
    made = Witness(COSIGNER, (LAB.verifier,), WitnessStore(directory), lambda: 1_700_000_000)
    assert made.add_checkpoint(_request(0, SEEN, TRUE)).status == 200
    return made


def _in_the_name_of(key: SigningKey) -> Callable[[], bytes]:
    return lambda: _request(SEEN, 25, TRUE, key)


WITNESS_ATTACKS: Final = (
    WitnessAttack(
        "witness-extends",
        "(an honest lab) shows five more events",
        lambda: _request(SEEN, 25, TRUE),
        "signed",
    ),
    WitnessAttack(
        "witness-fork",
        "the lab shows a second history, with a proof of that one",
        lambda: _request(SEEN, 25, FALSE),
        "refused",
    ),
    WitnessAttack(
        "witness-same-size",
        "the lab shows another root at the size that was seen",
        lambda: _request(SEEN, SEEN, FALSE),
        "refused",
    ),
    WitnessAttack(
        "witness-rollback",
        "the lab shows a part of what was seen",
        lambda: _request(0, 10, TRUE),
        "refused",
    ),
    WitnessAttack(
        "witness-rollback-proven",
        "the lab proves its growth from an older size",
        lambda: _request(10, 25, TRUE),
        "refused",
    ),
    WitnessAttack(
        "witness-anew",
        "the lab begins again under the same origin",
        lambda: _request(0, 25, FALSE),
        "refused",
    ),
    WitnessAttack(
        "witness-thief",
        "signs in the lab's log with a key of another name",
        _in_the_name_of(THIEF),
        "refused",
    ),
    WitnessAttack(
        "witness-namesake",
        "signs in the lab's log with another key of its name",
        _in_the_name_of(NAMESAKE),
        "refused",
    ),
)
