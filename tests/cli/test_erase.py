"""`acl erase` and `acl annotate`: what is said, what is refused, who else holds it."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import LedgerView, canonical
from ledger import events as ev
from ledger.errors import ValueRefused
from ledger.store import Ledger
from tests.cli.conftest import Acl
from tests.ledger_checks import check_ledger

SECRET = "sk-abcdef1234567890abcdef1234567890"  # nothing of anybody's


def test_an_erasure_says_what_went_and_covers_it_with_a_checkpoint(acl: Acl, sealed: Path) -> None:
    said = acl("erase", sealed, 5, "--reason", "a name was in it")
    assert said.status == 0
    assert "event 5 (result.recorded, task right #1) lost its body" in said.out
    with LedgerView.open(sealed) as view:
        event = view.event(view.size - 1).event
        root = view.root().hex()
    assert event == ev.PayloadErased(sequence=(5,), reason="a name was in it")
    assert root in said.out
    check_ledger(sealed)


def test_the_document_of_an_erasure_has_all_of_it(acl: Acl, killed: Path) -> None:
    found = acl("erase", killed, 5, 6, "--reason", "r", "--json").document()
    assert not (killed / "ledger.sqlite-wal").exists()
    with LedgerView.open(killed) as view:
        assert found["size"] == view.size == found["event"] + 1
        assert found["root"] == view.root().hex()
    assert [one["seq"] for one in found["bodies"]] == [5, 6]
    assert found["bodies"][0] | {"task": "right", "attempt": 1} == found["bodies"][0]
    assert not found["dry_run"]
    assert not found["exports"]


def test_a_dry_run_changes_nothing(acl: Acl, sealed: Path) -> None:
    before = (sealed / "ledger.sqlite").read_bytes()
    said = acl("erase", sealed, 5, "--dry-run")
    assert said.status == 0
    assert "event 5 (result.recorded, task right #1) would lose its body" in said.out
    assert (sealed / "ledger.sqlite").read_bytes() == before
    assert acl("erase", sealed, 0, "--dry-run").status == 2


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((99, "--reason", "r"), "no event 99"),
        ((2**63, "--reason", "r"), f"no event {2**63}"),
        ((0, "--reason", "r"), "cannot be erased"),
        (("--reason", "r"), "nothing was named"),
        ((5,), "needs a reason"),
        ((5, "--reason", "  "), "needs a reason"),
        (("--blob", "xyz", "--reason", "r"), "no digest"),
    ],
)
def test_what_cannot_be_erased_is_one_line_and_status_two(
    acl: Acl, sealed: Path, arguments: tuple[object, ...], why: str
) -> None:
    before = (sealed / "ledger.sqlite").read_bytes()
    said = acl("erase", sealed, *arguments)
    assert (said.status, said.out) == (2, "")
    assert why in said.err
    assert said.err.count("\n") == 1
    assert (sealed / "ledger.sqlite").read_bytes() == before


def test_a_ledger_that_somebody_writes_is_refused_with_who(acl: Acl, killed: Path) -> None:
    with Ledger.open(killed):
        said = acl("erase", killed, 5, "--reason", "r")
    assert said.status == 2
    assert "being written by process" in said.err


def test_secrets_in_a_reason_or_a_remark_are_replaced(acl: Acl, sealed: Path) -> None:
    acl("erase", sealed, 5, "--reason", f"{SECRET} was in it")
    acl("annotate", sealed, "--author", "me", f"{SECRET} was in it")
    with LedgerView.open(sealed) as view:
        told = [view.event(seq).event for seq in (view.size - 2, view.size - 1)]
    assert [one.redactions for one in told] == [1, 1]
    assert SECRET not in str(told)


def test_a_key_signs_what_was_amended(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    vkey = acl("keygen", "--name", "judge", "--out", key).out.strip()
    assert acl("erase", sealed, 5, "--reason", "r", "--signing-key", key).status == 0
    assert acl("annotate", sealed, "--author", "me", "good", "--signing-key", key).status == 0
    found = acl("verify", sealed, "--key", vkey, "--json").document()
    assert found["ok"]
    assert f"the first {found['size']} events are signed by judge" in found["proven"]
    assert found["sealed_at"] == found["size"] - 2


AMENDING = [
    (("annotate", "--author", "me", "good"), "the remark stands, as event"),
    (("erase", 5, "--reason", "r"), "all is erased, by event"),
]


@pytest.mark.parametrize(("amend", "stands"), AMENDING, ids=["annotate", "erase"])
@pytest.mark.parametrize("state", ["sealed", "killed"])
def test_what_stands_unsigned_for_want_of_a_state_directory_is_signed_later(
    acl: Acl,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    amend: tuple[str, ...],
    stands: str,
) -> None:
    run, key = request.getfixturevalue(state), tmp_path / "key"
    vkey = acl("keygen", "--name", "judge", "--out", key).out.strip()
    with monkeypatch.context() as patched:
        patched.setenv("ACL_STATE_DIR", str(key / "no directory"))
        said = acl(amend[0], run, *amend[1:], "--signing-key", key)
    assert (said.status, said.out) == (1, "")
    assert said.err.count("\n") == 1
    for words in (stands, "not signed", "ACL_STATE_DIR", f"acl checkpoint {run} --signing-key"):
        assert words in said.err
    assert acl("checkpoint", run, "--signing-key", key).status == 0
    found = acl("verify", run, "--key", vkey, "--json").document()
    assert found["ok"]
    assert f"the first {found['size']} events are signed by judge" in found["proven"]


@pytest.mark.parametrize(("amend", "stands"), AMENDING, ids=["annotate", "erase"])
def test_what_stands_where_a_signature_is_refused_is_said(
    acl: Acl, sealed: Path, tmp_path: Path, amend: tuple[str, ...], stands: str
) -> None:
    key, older = tmp_path / "key", tmp_path / "an older copy"
    acl("keygen", "--name", "judge", "--out", key)
    shutil.copytree(sealed, older)
    acl("annotate", sealed, "--author", "me", "seen", "--signing-key", key)
    said = acl(amend[0], older, *amend[1:], "--signing-key", key)
    assert (said.status, said.out) == (4, "")
    for words in (stands, "another history", "restore the ledger", f"acl checkpoint '{older}'"):
        assert words in said.err
    with LedgerView.open(older) as view:
        kind = view.event(view.size - 1).type
    assert kind in ("annotation.added", "payload.erased")


def test_a_remark_enters_an_open_and_a_sealed_ledger(acl: Acl, sealed: Path, killed: Path) -> None:
    for run in (sealed, killed):
        found = acl("annotate", run, "--author", "An Auditor", "looks good", "--json").document()
        with LedgerView.open(run) as view:
            event = view.event(found["event"]).event
            assert found["size"] == view.size
        assert event == ev.AnnotationAdded(author="An Auditor", text="looks good")
        check_ledger(run)
        said = acl("show", run)
        assert f"An Auditor (event {found['event']}): looks good" in said.out
    assert acl("annotate", sealed, "--author", "me", " ").status == 2
    assert acl("annotate", sealed, "x").status == 2


def test_files_exported_beside_the_ledger_are_spoken_of(acl: Acl, sealed: Path) -> None:
    (sealed / "details").mkdir()
    assert "export again" in acl("erase", sealed, 5, "--reason", "r").out


# -- what readers are told ------------------------------------------------------------------------


def with_metrics(acl: Acl, results: Path) -> Path:
    arguments = ("--benchmark", "acl-arith", "--harness", "calculator", "--limit", "2")
    said = acl("run", *arguments, "--results-dir", results, "--run-id", "first", "--json")
    return Path(said.lines()[-1]["path"])


def of_type(run: Path, name: str) -> int:
    with LedgerView.open(run) as view:
        return next(one.seq for one in view.events() if one.type == name)


@pytest.mark.parametrize(
    "name",
    [
        "tasks.selected",
        "task.finished",
        "attempt.started",
        "plan.resolved",
        "result.recorded",
        "evaluation.finished",
        "attempt.finished",
        "metrics.computed",
    ],
)
def test_everything_works_past_an_erased_event(acl: Acl, tmp_path: Path, name: str) -> None:
    run = with_metrics(acl, tmp_path / "results")
    seq = of_type(run, name)
    assert acl("erase", run, seq, "--reason", "r").status == 0
    out = tmp_path / "out"
    for command in (
        ("log", run),
        ("show", run),
        ("show", run, "--tasks"),
        ("replay", run),
        ("export", "-f", "details", run, out),
        ("verify", run, "--tree", out),
        ("verify", run, "--tree", run),
    ):
        said = acl(*command)
        assert said.status == 0, said.out + said.err
    files = "".join(file.read_text() for file in sorted(out.rglob("*.json")))
    assert '"reason":"erased by event' in files.replace(": ", ":")
    assert f"note event {seq}" in acl("verify", run).out


def test_numbers_that_need_an_erased_verdict_are_named_and_no_difference(
    acl: Acl, tmp_path: Path
) -> None:
    run = with_metrics(acl, tmp_path / "results")
    acl("erase", run, of_type(run, "evaluation.finished"), "--reason", "r")
    found = acl("replay", run, "--json").document()
    assert found["not_compared"]["correct.accuracy"] == "erased"
    assert "correct.accuracy" not in found["metrics"]["metrics"]
    verdict = acl("verify", run, "--json").document()
    (told,) = [one for one in verdict["findings"] if one["code"] == "metrics_erased"]
    assert "correct.accuracy" in told["message"]
    assert not any("recorded metrics are" in sentence for sentence in verdict["proven"])


# -- copies ---------------------------------------------------------------------------------------


def test_runs_that_copied_it_are_named_with_the_command_that_erases_it_there(
    acl: Acl, tmp_path: Path
) -> None:
    results = tmp_path / "results"
    first = with_metrics(acl, results)
    arguments = ("--benchmark", "acl-arith", "--harness", "calculator", "--limit", "2")
    more = (*arguments, "--results-dir", results)
    for run_id, source in (("second", "first"), ("third", "second")):
        assert acl("run", *more, "--run-id", run_id, "--reuse-run-id", source).status in (0, 1)
    seq = of_type(first, "result.recorded")
    found = acl("erase", first, seq, "--reason", "r", "--json").document()
    assert [Path(one["path"]).name for one in found["copied_by"]] == ["second", "third"]
    with LedgerView.open(first) as view:
        gone = view.event(seq).header.address
    for one in found["copied_by"]:
        with LedgerView.open(one["path"]) as view:
            assert [view.event(copy).header.address for copy in one["events"]] == [gone]
    copy = found["copied_by"][0]
    told = acl("erase", copy["path"], *copy["events"], "--reason", "r", "--json").document()
    assert [one["run_id"] for one in told["copied_from"]] == ["first"]
    assert told["copied_from"][0]["events"] == [seq]
    assert [Path(one["path"]).name for one in told["copied_by"]] == ["third"]
    # What is left of a copy is still known to come from where it does.
    assert acl("verify", copy["path"]).status == 0


def test_a_task_of_which_something_was_erased_runs_again(acl: Acl, tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = with_metrics(acl, results)
    acl("erase", first, of_type(first, "result.recorded"), "--reason", "r")
    arguments = ("--benchmark", "acl-arith", "--harness", "calculator", "--limit", "2")
    acl(
        "run", *arguments, "--results-dir", results, "--run-id", "second", "--reuse-run-id", "first"
    )
    second = first.with_name("second")
    told = json.loads(acl("show", second, "--json").out)
    assert told["counts"]["reused"] == 1
    assert "was erased" in (second / "run.log").read_text()


# -- nothing that remains tells it ------------------------------------------------------------------


def parts(value: object) -> Iterator[object]:
    """A value and everything inside it."""
    yield value
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        for item in value:
            yield from parts(item)


def test_no_event_of_a_run_holds_a_digest_of_anything_short_that_it_recorded(
    acl: Acl, tmp_path: Path
) -> None:
    """Else an erased body could be found by hashing what it may have been."""
    run = with_metrics(acl, tmp_path / "results")
    guesses: dict[str, object] = {}
    bodies = b""
    with LedgerView.open(run) as view:
        for one in view.events():
            bodies += view.raw(one.seq)[1]
            if isinstance(one.event, ev.PlanResolved):
                continue  # a plan has a hash that is told, as the documentation says
            for value in parts(view.resolve(one.event.model_dump(exclude_none=True))):
                try:
                    encoded = canonical.encode(value)
                except ValueRefused:
                    continue
                raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else encoded
                for guess in {encoded, raw}:
                    if len(guess) < 1024:
                        guesses[hashlib.sha256(guess).hexdigest()] = value
    assert len(guesses) > 200
    told = set(re.findall(rb"[0-9a-f]{64}", bodies))
    assert told
    assert {guesses[one.decode()] for one in told if one.decode() in guesses} == set()
