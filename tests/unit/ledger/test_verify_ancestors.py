"""What verify says of copies whose sources had them from others, with every source gone."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView, canonical
from ledger import events as ev
from ledger.store import Copy, Ledger
from ledger.verify import Finding, verify
from tests import events_of as say
from tests.ledger_checks import broken, check_ledger

Change = Callable[[dict[str, Any]], dict[str, Any]]


class Key:
    """A keyed hash in the place of a signature."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.key_id = hashlib.sha256(name.encode()).digest()[:4]

    def sign(self, text: bytes) -> bytes:
        return hashlib.sha256(b"secret" + text).digest()

    def verify(self, text: bytes, signature: bytes) -> bool:
        return signature == self.sign(text)

    def time_of(self, signature: bytes) -> None:
        return None


LAB = Key("lab")
ASIDE = ("type", "lease", "task", "attempt", "lineage")


def same(fields: dict[str, Any]) -> dict[str, Any]:
    return fields


def first(path: Path, *signers: Key) -> Path:
    """A run of one task, and of one attempt that was left without a verdict."""
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t", "u"))
        ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 9000)))
        ledger.append(ev.TaskStarted(task="u"), ev.AttemptStarted(task="u", attempt=1))
        ledger.append(say.result("u", final_answer="y" * 9000))
        ledger.checkpoint(*signers)
    return path


def told(view: LedgerView, sequence: list[int], before: ev.AnyEvent | None) -> dict[str, Any]:
    """What a reuse says of its source; `before` is the source's own reuse of the same events."""
    leaves = view.leaves()
    fields: dict[str, Any] = {
        "source_run_id": view.path.stem,
        "source_ledger_id": view.ledger_id.hex(),
        "size": view.size,
        "root": view.root().hex(),
        "leaves": canonical.Binary(leaves + bytes(131_072 - len(leaves))),
        "sequence": tuple(sequence),
        "checkpoint": list(view.checkpoints())[-1][1],
    }
    if before is not None:
        whole = {name: view.resolve(value) for name, value in before if name not in ASIDE}
        own = {name: value for name, value in whole.items() if value is not None}
        earlier = view.resolve(getattr(before, "lineage", None)) or {}
        fields |= {"chained": True, "lineage": {view.ledger_id.hex(): own, **earlier}}
    return fields


def reuse_task(source: Path, target: Path, change: Change = same, task: str = "t") -> Path:
    """Copy a whole task of `source` into a new run."""
    with LedgerView.open(source) as view:
        events = [r for r in view.events() if r.task == task]
        before = next((r.event for r in events if r.type == "task.reused"), None)
        wanted = [r for r in events if r.type != "task.reused"]
        fields = change(told(view, [r.seq for r in wanted], before))
        with Ledger.create(target) as ledger:
            ledger.append(*say.opening(task))
            copies = [Copy(r.header, view.raw(r.seq)[1], view.blob) for r in wanted]
            ledger.append(ev.TaskReused.model_validate({"task": task, **fields}), *copies)
            ledger.checkpoint()
    return target


def reuse_attempt(
    source: Path, target: Path, change: Change = same, *, judged: bool = True
) -> Path:
    """Copy the attempt without a verdict into a new run, and judge it there."""
    with LedgerView.open(source) as view:
        events = [r for r in view.events() if r.task == "u" and r.attempt == 1]
        before = next((r.event for r in events if r.type == "attempt.reused"), None)
        wanted = [r for r in events if r.type in ("attempt.started", "result.recorded")]
        fields = change(told(view, [r.seq for r in wanted], before))
        with Ledger.create(target) as ledger:
            ledger.append(*say.opening("u"), ev.TaskStarted(task="u"))
            copies = [Copy(r.header, view.raw(r.seq)[1], view.blob) for r in wanted]
            reused = ev.AttemptReused.model_validate({"task": "u", "attempt": 1, **fields})
            ledger.append(reused, *copies)
            if judged:
                ledger.append(say.verdict("u"))
                end = {"status": "completed", "correct": True}
                ledger.append(ev.AttemptFinished(task="u", attempt=1, **end))
                ledger.append(ev.TaskFinished(task="u", reason="all_attempts", error=False))
            ledger.checkpoint()
    return target


def origins(path: Path, *keys: Key) -> list[tuple[str, str]]:
    """The codes and the beginnings of what is said of origins, in order."""
    found = [f for f in verify(path, verifiers=keys) if f.code.startswith("origin")]
    assert [f for f in found if f.severity == "broken"] == []
    return [(f.code, f.message) for f in found]


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """The third run of a chain of which only it is left; the first was signed."""
    one = first(tmp_path / "one.sqlite", LAB)
    two = reuse_task(one, tmp_path / "two.sqlite")
    three = reuse_task(two, tmp_path / "three.sqlite")
    for path in (one, two):
        for file in tmp_path.glob(f"{path.stem}.*"):
            file.unlink()
    return three


def test_where_a_task_ran_first_is_proven_by_a_signature_over_that_run(chain: Path) -> None:
    check_ledger(chain)
    claimed, signed = origins(chain, LAB)
    assert claimed[0] == "origin_claim"
    assert "this task was held by ledger" in claimed[1]
    assert "(run 'two')" in claimed[1]
    assert signed[0] == "origin_signed"
    assert signed[1].startswith("this task ran in ledger")
    assert signed[1].endswith("(run 'one'), signed by lab")


def test_without_the_key_every_run_of_the_chain_is_a_claim(chain: Path) -> None:
    found = origins(chain)
    assert [code for code, _ in found] == ["origin_claim", "origin_claim"]
    assert all("no given key signed it" in message for _, message in found)


def in_lineage(**changed: Any) -> Change:
    def change(fields: dict[str, Any]) -> dict[str, Any]:
        ((ledger_id, told),) = fields["lineage"].items()
        return {**fields, "lineage": {ledger_id: {**told, **changed}}}

    return change


def lineage_is(value: Any) -> Change:
    return lambda fields: {**fields, "lineage": value}


def also(key: str, value: Any) -> Change:
    return lambda fields: {**fields, "lineage": {**fields["lineage"], key: value}}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (in_lineage(source_ledger_id="00" * 16, checkpoint=None), "copy_altered"),
        (in_lineage(source_ledger_id="no id", checkpoint=None), "copy_altered"),
        (in_lineage(sequence=[3, 4, 5, 6, 8, 7]), "copy_altered"),
        (in_lineage(sequence=[3, 4]), "origin"),
        (in_lineage(sequence="no list"), "origin"),
        (in_lineage(sequence=[None] * 6), "copy_altered"),
        (in_lineage(sequence=[2**70] * 6), "copy_altered"),
        (in_lineage(root="00" * 32), "origin"),
        (in_lineage(size=3), "origin"),
        (in_lineage(size="no size"), "origin"),
        (in_lineage(leaves=None), "origin"),
        (in_lineage(leaves=canonical.Binary(b"short")), "origin"),
        (in_lineage(checkpoint="no checkpoint"), "origin"),
        (in_lineage(checkpoint=7), "origin"),
        (in_lineage(checkpoint="\ud800\n0\n"), "origin"),
        (also("ab" * 16, {}), "origin"),
        (also("ab" * 16, "nothing"), "origin"),
        (lineage_is(["no lineage"]), "origin"),
        (lineage_is("no lineage"), "origin"),
        (lineage_is({"00" * 16: {}}), "origin"),
    ],
)
def test_a_lineage_that_does_not_hold_is_found(tmp_path: Path, change: Change, code: str) -> None:
    one = first(tmp_path / "one.sqlite", LAB)
    two = reuse_task(one, tmp_path / "two.sqlite")
    three = reuse_task(two, tmp_path / "three.sqlite", change)
    assert code in codes(broken(three))


def test_nothing_but_zeros_may_stand_behind_the_leaves(tmp_path: Path) -> None:
    one = first(tmp_path / "one.sqlite")

    def more(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "leaves": canonical.Binary(fields["leaves"].data[:-1] + b"x")}

    assert "origin" in codes(broken(reuse_task(one, tmp_path / "two.sqlite", more)))


def test_a_checkpoint_of_a_longer_tree_proves_nothing(tmp_path: Path) -> None:
    one = first(tmp_path / "one.sqlite", LAB)
    with LedgerView.open(one) as view:
        shorter = view.size - 1
        root, leaves = view.root(shorter).hex(), view.leaves(shorter)

    def cut(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "size": shorter, "root": root, "leaves": canonical.Binary(leaves)}

    found = broken(reuse_task(one, tmp_path / "two.sqlite", cut))
    assert "more events than there were" in found[0].message


def test_a_lineage_that_leads_in_a_circle_ends(tmp_path: Path) -> None:
    one = first(tmp_path / "one.sqlite")
    two = reuse_task(one, tmp_path / "two.sqlite")

    def circle(fields: dict[str, Any]) -> dict[str, Any]:
        ((ledger_id, told),) = fields["lineage"].items()
        return {**fields, "lineage": {ledger_id: {**told, "source_ledger_id": ledger_id}}}

    assert codes(broken(reuse_task(two, tmp_path / "three.sqlite", circle))) & {
        "origin",
        "copy_altered",
    }


def test_a_long_chain_is_followed_to_its_end_and_grows_no_deeper(tmp_path: Path) -> None:
    """A run that reuses the one of the day before does so every day of a year."""
    path = first(tmp_path / "0.sqlite", LAB)
    for number in range(1, 13):
        path = reuse_task(path, tmp_path / f"{number}.sqlite")
    found = origins(path, LAB)
    assert [code for code, _ in found] == ["origin_claim"] * 11 + ["origin_signed"]
    with LedgerView.open(path) as view:
        (event,) = [r.event for r in view.events() if isinstance(r.event, ev.TaskReused)]
    assert event is not None
    assert len(event.lineage) == 11
    assert not any("lineage" in told for told in event.lineage.values())


# -- attempts that came alone -------------------------------------------------------------------


def test_an_attempt_that_came_alone_is_proven_like_a_task(tmp_path: Path) -> None:
    one = first(tmp_path / "one.sqlite", LAB)
    two = reuse_attempt(one, tmp_path / "two.sqlite")
    check_ledger(two)
    ((code, message),) = origins(two, LAB)
    assert code == "origin_signed"
    assert message.startswith("attempt 1 ran in ledger")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda f: {**f, "sequence": tuple(reversed(f["sequence"]))}, "copy_altered"),
        (lambda f: {**f, "sequence": f["sequence"][:1]}, "copy_unnamed"),
        (lambda f: {**f, "sequence": (*f["sequence"], 3)}, "copies_missing"),
        (lambda f: {**f, "root": "00" * 32}, "origin"),
    ],
)
def test_an_attempt_that_is_not_the_sources_is_found(
    tmp_path: Path, change: Change, code: str
) -> None:
    one = first(tmp_path / "one.sqlite")
    assert code in codes(broken(reuse_attempt(one, tmp_path / "two.sqlite", change)))


def test_a_chain_of_attempts_is_followed_to_the_run_that_made_it(tmp_path: Path) -> None:
    one = first(tmp_path / "one.sqlite", LAB)
    two = reuse_attempt(one, tmp_path / "two.sqlite", judged=False)
    three = reuse_attempt(two, tmp_path / "three.sqlite")
    check_ledger(three)
    assert [code for code, _ in origins(three, LAB)] == ["origin_claim", "origin_signed"]


def test_within_a_copied_task_an_attempt_is_followed_to_the_run_that_made_it(
    tmp_path: Path,
) -> None:
    one = first(tmp_path / "one.sqlite", LAB)
    two = reuse_attempt(one, tmp_path / "two.sqlite")
    three = reuse_task(two, tmp_path / "three.sqlite", task="u")
    four = reuse_task(three, tmp_path / "four.sqlite", task="u")
    for path in (three, four):
        check_ledger(path)
    assert [code for code, _ in origins(three, LAB)] == ["origin_claim", "origin_signed"]
    task_there, task_before, attempt = origins(four, LAB)
    assert "held by" in task_there[1]
    assert "(run 'two')" in task_before[1]
    assert attempt[1].startswith("attempt 1 ran in ledger")
    assert attempt[1].endswith("signed by lab")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda f: {**f, "sequence": (*f["sequence"], 3)}, "copy_altered"),
        (lambda f: {**f, "sequence": f["sequence"][::-1]}, "copy_altered"),
        (lambda f: {**f, "root": "00" * 32}, "origin"),
    ],
)
def test_an_attempt_within_a_copied_task_must_be_what_its_own_reuse_names(
    tmp_path: Path, change: Change, code: str
) -> None:
    one = first(tmp_path / "one.sqlite")
    two = reuse_attempt(one, tmp_path / "two.sqlite", change)
    three = reuse_task(two, tmp_path / "three.sqlite", task="u")
    assert code in codes(broken(three))


# -- what nothing can prove ---------------------------------------------------------------------


def test_what_exported_files_say_of_their_ledger_is_a_claim(tmp_path: Path) -> None:
    one = first(tmp_path / "one.sqlite", LAB)
    claim = ev.Claim(run_id="old", ledger_id="ab" * 16, size=5, root="cd" * 32)
    two = reuse_task(one, tmp_path / "two.sqlite", lambda f: {**f, "claim": claim})
    _, (code, message) = origins(two, LAB)
    assert code == "origin_claim"
    assert "(run 'old') is a claim of what was imported" in message


def test_a_claim_stays_one_when_it_is_copied(tmp_path: Path) -> None:
    claim = ev.Claim(run_id="old", ledger_id="ab" * 16, size=5, root="cd" * 32)
    with Ledger.create(tmp_path / "one.sqlite") as ledger:
        ledger.append(*say.opening("t"), ev.TaskStarted(task="t", claim=claim))
        ledger.append(*say.attempt("t"))
        ledger.append(ev.TaskFinished(task="t", reason="all_attempts", error=False))
        ledger.checkpoint(LAB)
    two = reuse_task(tmp_path / "one.sqlite", tmp_path / "two.sqlite")
    assert [code for code, _ in origins(two, LAB)] == ["origin_signed", "origin_claim"]


def test_that_files_are_those_of_the_source_is_a_claim(tmp_path: Path) -> None:
    one = first(tmp_path / "one.sqlite")
    two = reuse_attempt(one, tmp_path / "two.sqlite", judged=False)
    with Ledger.open(two) as ledger:
        ledger.append(
            ev.ArtifactsCollected(task="u", attempt=1, artifacts=(), truncated=True, source_seq=9)
        )
    (found,) = [f for f in check_ledger(two) if f.code == "files_claim"]
    assert found.severity == "unproven"
    assert "event 9 of its source" in found.message
