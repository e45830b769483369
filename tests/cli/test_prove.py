"""`acl prove` and `acl verify-proof`, as somebody uses them who has the file and perhaps a key."""

import json
import shutil
from pathlib import Path

import pytest

from ledger import LedgerView, note
from ledger import events as ev
from ledger.memory import Memory
from ledger.store import Ledger
from tests import events_of as say
from tests.signed_ledgers import LAB, OTHER, SAME_NAME, WITNESS, make, notes

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "vectors" / "proof.json").read_bytes())
KEY = LAB.verifier.encode()


@pytest.fixture
def run(tmp_path):
    return make(tmp_path / "r")


@pytest.fixture
def forked(tmp_path):
    return make(tmp_path / "o", answer="43")


def of_two_attempts(directory):
    directory.mkdir()
    tries = [say.attempt("t", 1, correct=False), say.attempt("t", 2), say.failed_attempt("t", 3)]
    with Ledger.create(directory) as ledger:
        ledger.append(*say.opening("t", "u", "v", k=3))
        ledger.append(*say.whole_task("t", *tries, error=True))
        ledger.append(ev.TaskStarted(task="u"), ev.AttemptStarted(task="u", attempt=1))
        ledger.checkpoint(LAB)
    return directory


# -- one event ------------------------------------------------------------------------------------


def test_a_proof_is_checked_where_there_is_no_ledger(acl, run, tmp_path):
    done = acl("prove", run, 7, "-o", "p.tlog-proof")
    assert done.status == 0
    assert "event 7" in done.out
    shutil.rmtree(run)
    checked = acl("verify-proof", "p.tlog-proof", "--key", KEY)
    assert checked.status == 0, checked.err
    assert "OK: event 7" in checked.out
    assert "lab.example" in checked.out
    assert (tmp_path / "p.tlog-proof").read_bytes().startswith(b"c2sp.org/tlog-proof@v1\n")


def test_the_verdict_on_a_task_is_proven_by_its_name(acl, run):
    told = acl("prove", run, "--task", "t2", "-o", "p", "--json").document()
    assert (told["kind"], told["type"], told["task"]) == ("event", "evaluation.finished", "t2")
    shown = acl("verify-proof", "p", "--key", KEY, "--json").document()
    assert shown["ok"] is True
    assert shown["event"]["seq"] == told["seq"]
    assert shown["event"]["task"] == "t2"
    assert shown["event"]["event"]["correct"] is True
    assert shown["event"]["event"]["score"] == 1.0
    assert shown["signed_by"] == ["lab.example"]
    assert shown["checkpoint"]["size"] == told["size"]


def test_of_several_attempts_one_must_be_named(acl, tmp_path):
    run = of_two_attempts(tmp_path / "two")
    refused = acl("prove", run, "--task", "t", "-o", "p")
    assert refused.status == 2
    assert "1, 2, 3" in refused.err
    assert not (tmp_path / "p").exists()
    second = acl("prove", run, "--task", "t", "--attempt", 2, "-o", "p", "--json").document()
    assert (second["attempt"], second["type"]) == (2, "evaluation.finished")


def test_an_attempt_without_a_verdict_is_proven_by_its_end(acl, tmp_path):
    run = of_two_attempts(tmp_path / "two")
    told = acl("prove", run, "--task", "t", "--attempt", 3, "-o", "p", "--json").document()
    assert told["type"] == "attempt.finished"


def test_an_attempt_that_never_ended_has_only_its_beginning(acl, tmp_path):
    run = of_two_attempts(tmp_path / "two")
    refused = acl("prove", run, "--task", "u", "-o", "p")
    assert refused.status == 2
    assert "has not ended" in refused.err
    begun = acl("prove", run, "--task", "u", "--event", "attempt.started", "-o", "p", "--json")
    assert begun.document()["type"] == "attempt.started"


def test_any_event_of_a_task_can_be_named_by_its_type(acl, tmp_path):
    run = of_two_attempts(tmp_path / "two")
    args = ("prove", run, "--task", "t", "--event", "result.recorded")
    last = acl(*args, "-o", "p", "--json").document()
    first = acl(*args, "--attempt", 1, "-o", "q", "--json").document()
    assert (last["attempt"], first["attempt"]) == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--task", "nobody"), "no task"),
        (("--task", "v"), "no attempt"),
        (("--task", "t", "--attempt", 4), "no attempt 4"),
        (("--task", "t", "--event", "call.finished"), "no call.finished"),
        (("--task", "t", "--event", "nonsense"), "no event type"),
        ((99,), "no event 99"),
        ((), "name one of"),
        ((1, "--task", "t"), "name one of"),
        ((1, "--attempt", 2), "go with --task"),
        ((1, "--to", "x"), "goes with --from"),
        ((1, "--checkpoint", "absent"), "cannot read"),
    ],
)
def test_what_cannot_be_meant_is_wrong_use(acl, tmp_path, arguments, why):
    refused = acl("prove", of_two_attempts(tmp_path / "two"), *arguments, "-o", "p")
    assert refused.status == 2, refused
    assert why in refused.err
    assert not (tmp_path / "p").exists()


def test_a_file_is_never_replaced(acl, run, tmp_path):
    (tmp_path / "p").write_text("evidence")
    refused = acl("prove", run, 1, "-o", "p")
    assert refused.status == 2
    assert (tmp_path / "p").read_text() == "evidence"


def test_an_event_that_no_checkpoint_covers_yet(acl, tmp_path):
    run = make(tmp_path / "r", tasks=1, seal=False)
    with LedgerView.open(run) as view:
        last = view.size - 1
    refused = acl("prove", run, last, "-o", "p")
    assert refused.status == 2
    assert "acl checkpoint" in refused.err


def test_another_checkpoint_can_be_named(acl, run, tmp_path):
    data = notes(run)[1]
    signed = note.parse_note(data)
    line = note.Signature(WITNESS.name, WITNESS.key_id, WITNESS.cosign(signed.text, 1_700_000_123))
    whole = note.format_note(note.SignedNote(signed.text, (*signed.signatures, line)))
    (tmp_path / "cosigned").write_bytes(whole)
    assert acl("prove", run, 4, "--checkpoint", "cosigned", "-o", "p").status == 0
    keys = ("--key", KEY, "--key", WITNESS.verifier.encode())
    told = acl("verify-proof", "p", *keys, "--checkpoint", "cosigned", "--json").document()
    assert told["signed_by"] == ["lab.example", "witness.example/w"]
    assert any("2023-11-14T22:15:23Z" in sentence for sentence in told["proven"])
    assert any("given one" in sentence for sentence in told["proven"])


def test_a_checkpoint_of_another_history_is_no_ground_for_a_proof(acl, run, forked, tmp_path):
    (tmp_path / "c").write_bytes(notes(forked)[-1])
    refused = acl("prove", run, 4, "--checkpoint", "c", "-o", "p")
    assert refused.status == 4
    assert "another root" in refused.err
    assert not (tmp_path / "p").exists()


def test_without_a_key_it_says_that_nobody_is_proven_to_have_signed(acl, run):
    acl("prove", run, 7, "-o", "p")
    told = acl("verify-proof", "p", "--json").document()
    assert told["ok"] is True
    assert told["signed_by"] == []
    assert any("no key was given" in sentence for sentence in told["unproven"])
    assert not any("signed" in sentence for sentence in told["proven"])


@pytest.mark.parametrize("key", [OTHER, SAME_NAME], ids=["another", "another of the same name"])
def test_another_key_exits_as_broken(acl, run, key):
    acl("prove", run, 7, "-o", "p")
    refused = acl("verify-proof", "p", "--key", key.verifier.encode(), "--json")
    assert refused.status == 4
    assert refused.document()["exit"] == 4


def test_a_ledger_that_nobody_signs_gives_proofs_that_say_so(acl, tmp_path):
    bare = make(tmp_path / "u", signers=())
    assert "signed by nobody" in acl("prove", bare, 7, "-o", "p").out
    told = acl("verify-proof", "p", "--json").document()
    assert any("nobody signed" in sentence for sentence in told["unproven"])
    assert acl("verify-proof", "p", "--key", KEY).status == 4
    (tmp_path / "c").write_bytes(notes(bare)[-1])
    held = acl("verify-proof", "p", "--checkpoint", "c", "--json").document()
    assert any("given one" in sentence for sentence in held["proven"])


def test_a_kept_checkpoint_that_contradicts_exits_as_broken(acl, run, forked, tmp_path):
    acl("prove", run, 4, "-o", "p")
    (tmp_path / "c").write_bytes(notes(forked)[-1])
    refused = acl("verify-proof", "p", "--checkpoint", "c")
    assert refused.status == 4
    assert "another root" in refused.err


def test_a_kept_checkpoint_of_another_size_says_nothing_yet(acl, run, tmp_path):
    acl("prove", run, 4, "-o", "p")
    (tmp_path / "c").write_bytes(notes(run)[0])
    told = acl("verify-proof", "p", "--key", KEY, "--checkpoint", "c", "--json").document()
    assert told["compared"] is False
    assert any("--from" in sentence for sentence in told["unproven"])


def test_what_a_proof_does_not_show_is_said(acl, run):
    acl("prove", run, "--task", "t1", "-o", "p")
    told = acl("verify-proof", "p", "--key", KEY).out
    assert "Not proven" in told
    assert "other attempts" in told
    assert "writer's word" in told


def test_large_values_are_told_as_digests(acl, tmp_path):
    run = make(tmp_path / "big", answer="42 " * 4000)
    acl("prove", run, "--task", "t1", "--event", "result.recorded", "-o", "p")
    told = acl("verify-proof", "p", "--json").document()
    assert any("2 pieces" in sentence for sentence in told["unproven"])


def test_an_erased_event_is_proven_by_its_header_alone(acl, tmp_path):
    run = make(tmp_path / "erased", answer="secret")
    seq = acl("prove", run, "--task", "t1", "--event", "result.recorded", "-o", "p", "--json")
    seq = seq.document()["seq"]
    with Ledger.open(run, memory=Memory(run / "memory"), amends=True) as ledger:
        ledger.erase([seq], reason="asked for")
    done = acl("prove", run, seq, "-o", "q")
    assert done.status == 0, done.err
    told = acl("verify-proof", "q", "--key", KEY, "--json").document()
    assert told["event"]["event"] is None
    assert (told["event"]["task"], told["event"]["type"]) == ("t1", "result.recorded")
    assert any("its body is not in the file" in sentence for sentence in told["unproven"])
    # Who kept the earlier proof still holds what it said.
    assert "secret" in acl("verify-proof", "p", "--key", KEY).out


@pytest.mark.parametrize("content", [b"", b"hello\n", b"c2sp.org/tlog-proof@v2\nindex 0\n"])
def test_what_is_no_proof_is_wrong_use(acl, tmp_path, content):
    (tmp_path / "p").write_bytes(content)
    refused = acl("verify-proof", "p")
    assert refused.status == 2
    assert "no proof" in refused.err


def test_a_proof_that_was_changed_exits_as_broken(acl, run, tmp_path):
    acl("prove", run, 7, "-o", "p")
    data = (tmp_path / "p").read_bytes()
    (tmp_path / "p").write_bytes(data.replace(b"index 7", b"index 8"))
    assert acl("verify-proof", "p").status == 4


# -- other logs -----------------------------------------------------------------------------------


def test_the_proof_of_another_log_is_checked_with_its_entry(acl, tmp_path):
    case = VECTORS["tlog_proofs"][2]
    (tmp_path / "p").write_bytes(case["tlog_proof"].encode())
    (tmp_path / "e").write_bytes(bytes.fromhex(case["entry_hex"]))
    key = VECTORS["log_key"]["vkey"]
    told = acl("verify-proof", "p", "--entry", "e", "--key", key, "--json").document()
    assert (told["kind"], told["index"]) == ("entry", 11)
    (tmp_path / "e").write_bytes(b"another")
    assert acl("verify-proof", "p", "--entry", "e", "--key", key).status == 4
    assert acl("verify-proof", "p", "--key", key).status == 4


# -- histories ------------------------------------------------------------------------------------


def test_that_a_checkpoint_is_extended_is_proven_in_one_file(acl, run, tmp_path):
    (tmp_path / "old").write_bytes(notes(run)[0])
    told = acl("prove", run, "--from", "old", "-o", "c", "--json").document()
    assert told["kind"] == "consistency"
    assert told["from"]["size"] < told["size"]
    shown = acl("verify-proof", "c", "--key", KEY, "--json").document()
    assert shown["kind"] == "consistency"
    assert shown["signed_by"] == ["lab.example"]
    with LedgerView.open(run) as view:
        assert shown["new"]["root"] == view.root(shown["new"]["size"]).hex()


def test_the_later_checkpoint_can_be_named(acl, run, tmp_path):
    (tmp_path / "old").write_bytes(notes(run)[0])
    (tmp_path / "new").write_bytes(notes(run)[1])
    told = acl("prove", run, "--from", "old", "--to", "new", "-o", "c", "--json").document()
    with LedgerView.open(run) as view:
        assert told["size"] < view.size
    assert "OK" in acl("verify-proof", "c", "--key", KEY, "--checkpoint", "old").out


def test_a_fork_is_reported_to_anybody(acl, run, forked, tmp_path):
    (tmp_path / "old").write_bytes(notes(forked)[1])
    done = acl("prove", run, "--from", "old", "-o", "f", "--json")
    assert done.status == 4
    assert done.document()["kind"] == "fork"
    shutil.rmtree(run)
    shown = acl("verify-proof", "f", "--key", KEY)
    assert shown.status == 0
    assert "lab.example signed both" in shown.out
    report = (tmp_path / "f").read_bytes()
    assert notes(forked)[1] in report


def test_a_fork_at_the_later_checkpoint_is_reported_too(acl, run, forked, tmp_path):
    (tmp_path / "old").write_bytes(notes(run)[0])
    (tmp_path / "new").write_bytes(notes(forked)[1])
    done = acl("prove", run, "--from", "old", "--to", "new", "-o", "f")
    assert done.status == 4
    assert "BROKEN" in done.out
    assert acl("verify-proof", "f", "--key", KEY).status == 0


def test_a_fork_without_a_key_says_that_nobody_is_proven_to_have_signed(acl, run, forked, tmp_path):
    (tmp_path / "old").write_bytes(notes(forked)[1])
    acl("prove", run, "--from", "old", "-o", "f")
    told = acl("verify-proof", "f", "--json").document()
    assert told["kind"] == "fork"
    assert any("no key was given" in sentence for sentence in told["unproven"])


def test_an_older_copy_of_the_ledger_is_told(acl, run, tmp_path):
    (tmp_path / "old").write_bytes(notes(run)[-1])
    short = make(tmp_path / "s", seal=False)
    refused = acl("prove", short, "--from", "old", "-o", "c")
    assert refused.status == 4
    assert "knows of" in refused.err
    assert not (tmp_path / "c").exists()


def test_a_checkpoint_of_another_ledger_is_wrong_use(acl, run, tmp_path):
    with Ledger.create(_made(tmp_path / "x"), memory=Memory(tmp_path / "m")) as ledger:
        ledger.append(*say.opening("t"))
        ledger.checkpoint(LAB)
    (tmp_path / "old").write_bytes(notes(tmp_path / "x")[0])
    refused = acl("prove", run, "--from", "old", "-o", "c")
    assert refused.status == 2
    assert "another log" in refused.err


def _made(directory):
    directory.mkdir()
    return directory
