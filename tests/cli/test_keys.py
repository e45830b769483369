"""Keys on the command line: made, used by runs, checkpoints and verification, never stored."""

import json
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from ledger import events as ev
from ledger import note, tlog
from ledger.keys import CosigningKey, LogKey, SigningKey, WitnessKey
from ledger.lock import WriterLock
from ledger.store import Ledger
from runtime.witness.server import Witness, WitnessServer
from runtime.witness.store import WitnessStore
from tests import events_of as say
from tests.cli.conftest import Acl, Said, write_run
from tests.erased import stored

KEY = SigningKey("lab.example/eval", bytes(range(32)))
WITNESS = CosigningKey("w.example", b"\1" * 32)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY.encode())
    path.chmod(0o600)
    return path


@contextmanager
def witness(tmp_path: Path) -> Iterator[str]:
    judge = Witness(WITNESS, [KEY.verifier], WitnessStore(tmp_path / "seen"), lambda: 1_700_000_000)
    with WitnessServer(("127.0.0.1", 0), judge) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def liar(*lines: note.Signature) -> Iterator[str]:
    """A witness that answers one request with these lines, whatever it is asked."""

    class Liar(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"".join(map(note.format_line, lines)))

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Liar) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        thread.join()


def policy(tmp_path: Path, quorum: str) -> Path:
    path = tmp_path / "policy"
    path.write_text(
        f"log {KEY.verifier.encode()}\nwitness w {WITNESS.verifier.encode()}\nquorum {quorum}\n"
    )
    return path


def codes(said: Said) -> set[str]:
    return {finding["code"] for finding in said.document()["findings"]}


def test_keygen_prints_the_verifier_key_and_writes_a_file_that_only_its_owner_reads(
    acl: Acl, tmp_path: Path
) -> None:
    said = acl("keygen", "--name", "lab.example/eval", "--out", tmp_path / "k")
    assert said.status == 0
    verifier = LogKey.parse(said.out)
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    assert SigningKey.parse((tmp_path / "k").read_text()).verifier == verifier
    secret = (tmp_path / "k").read_text().strip().split("+", 4)[4]
    assert secret not in said.out + said.err


def test_keygen_makes_a_witness_key_too(acl: Acl, tmp_path: Path) -> None:
    said = acl("keygen", "--name", "w", "--out", tmp_path / "k", "--witness", "--json")
    verifier = WitnessKey.parse(said.document()["verifier_key"])
    assert CosigningKey.parse((tmp_path / "k").read_text()).verifier == verifier


def test_keygen_replaces_nothing(acl: Acl, tmp_path: Path, key: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for taken in (key, tmp_path / "link", tmp_path):
        said = acl("keygen", "--name", "lab", "--out", taken)
        assert said.status == 2
        assert "is there already" in said.err
    assert key.read_text() == KEY.encode()
    assert not (tmp_path / "nowhere").exists()


def test_keygen_prints_no_secret_key(acl: Acl, tmp_path: Path) -> None:
    said = acl("keygen", "--name", "lab", "--out", "-")
    assert (said.status, said.out) == (2, "")
    assert "a secret key is not printed" in said.err
    assert not (tmp_path / "-").exists()


@pytest.mark.parametrize("name", ["Lab", "unsigned", "a b", "", "..", "lab/../eval", "./lab"])
def test_keygen_refuses_a_name_and_leaves_no_file(acl: Acl, tmp_path: Path, name: str) -> None:
    said = acl("keygen", "--name", name, "--out", tmp_path / "k")
    assert said.status == 2
    assert "cannot name" in said.err or "without a key" in said.err
    assert not (tmp_path / "k").exists()


def test_a_run_is_signed_by_the_key_that_the_environment_names_and_holds_nothing_of_it(
    acl: Acl, tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACL_SIGNING_KEY", str(key))
    run = ("run", "--benchmark", "acl-arith", "--harness", "oracle", "--limit", "1")
    assert acl(*run, "--run-id", "r").status == 0
    (home,) = Path("results").glob("*/*/r")
    verdict = acl("verify", home, "--key", KEY.verifier.encode(), "--json")
    (signed,) = [f for f in verdict.document()["findings"] if f["code"] == "signed"]
    assert (
        f"first {verdict.document()['size']} events are signed by {KEY.name}" in signed["message"]
    )
    secret = KEY.encode().rpartition("+")[2].encode()
    for file in Path("results").rglob("*"):
        if file.is_file():
            data = stored(file) if file.suffix == ".sqlite" else file.read_bytes()
            assert secret not in data
            assert KEY.seed not in data


def test_a_key_that_cannot_be_used_stops_a_run_before_it_begins(
    acl: Acl, tmp_path: Path, key: Path
) -> None:
    key.chmod(0o644)
    run = ("run", "--benchmark", "acl-arith", "--harness", "oracle", "--limit", "1")
    said = acl(*run, "--signing-key", key)
    assert said.status == 2
    assert "chmod 600" in said.err
    assert not Path("results").exists()


def test_checkpoint_prints_what_is_there_and_signs_with_a_key(
    acl: Acl, killed: Path, key: Path
) -> None:
    with Ledger.open(killed) as ledger:
        ledger.checkpoint()
    unsigned = acl("checkpoint", killed)
    assert unsigned.out.startswith("acl/unsigned/")
    said = acl("checkpoint", killed, "--signing-key", key, "--json", "-o", "note")
    told = said.document()
    assert told["origin"].startswith(f"acl/{KEY.name}/")
    assert told["signatures"] == [KEY.name]
    assert Path("note").read_text() == told["note"] == (killed / "ledger.checkpoint").read_text()
    assert acl("checkpoint", killed).out == told["note"]


def test_a_sealed_ledger_is_signed_beside_it_and_stays_as_it_is(
    acl: Acl, sealed: Path, key: Path
) -> None:
    before = (sealed / "ledger.sqlite").read_bytes()
    assert acl("checkpoint", sealed, "--signing-key", key).status == 0
    assert (sealed / "ledger.sqlite").read_bytes() == before
    assert "signed" in codes(acl("verify", sealed, "--key", KEY.verifier.encode(), "--json"))


def test_a_second_key_adds_its_signature_only_under_the_same_text(
    acl: Acl, sealed: Path, key: Path, tmp_path: Path
) -> None:
    second = SigningKey("other.example", b"\5" * 32)
    assert acl("checkpoint", sealed, "--signing-key", key).status == 0
    both = ("--signing-key", key, "--signing-key", tmp_path / "second")
    (tmp_path / "second").write_text(second.encode())
    (tmp_path / "second").chmod(0o600)
    told = acl("checkpoint", sealed, *both, "--json").document()
    assert told["signatures"] == [KEY.name, second.name]


def test_witnesses_sign_and_a_policy_asks_for_them(
    acl: Acl, sealed: Path, key: Path, tmp_path: Path
) -> None:
    wanted = policy(tmp_path, "w")
    assert acl("checkpoint", sealed, "--signing-key", key, "--policy", wanted).status == 1
    before = acl("verify", sealed, "--policy", wanted, "--json")
    assert before.status == 1
    assert before.document()["ok"] is False
    assert before.document()["intact"] is True
    assert "policy" in codes(before)
    with witness(tmp_path) as url:
        said = acl("checkpoint", sealed, "--witness", url, "--policy", wanted)
        assert said.status == 0, said.err
    after = acl("verify", sealed, "--policy", wanted, "--json")
    assert after.status == 0
    assert {"policy_met", "signed", "cosigned"} <= codes(after)
    assert any("2023-11-14T22:13:20Z" in one for one in after.document()["proven"])


def test_cosignatures_on_a_ledger_that_is_open_still_stay_in_it(
    acl: Acl, killed: Path, key: Path, tmp_path: Path
) -> None:
    with witness(tmp_path) as url:
        assert acl("checkpoint", killed, "--signing-key", key, "--witness", url).status == 0
    (killed / "ledger.checkpoint").unlink()
    found = acl("verify", killed, "--key", WITNESS.verifier.encode(), "--json")
    assert {"cosigned", "unsigned"} <= codes(found)


def test_a_witness_that_is_not_there_is_told_and_the_checkpoint_printed(
    acl: Acl, sealed: Path, key: Path
) -> None:
    said = acl("checkpoint", sealed, "--signing-key", key, "--witness", "http://127.0.0.1:9")
    assert said.status == 1
    assert "cannot be asked" in said.err
    assert KEY.name in said.out


def test_a_false_signature_of_a_witness_whose_key_is_given_is_told_and_not_kept(
    acl: Acl, sealed: Path, key: Path, tmp_path: Path
) -> None:
    other = WitnessKey(WITNESS.name, CosigningKey(WITNESS.name, b"\2" * 32).verifier.public)
    acl("checkpoint", sealed, "--signing-key", key)
    before = (sealed / "ledger.checkpoint").read_bytes()
    line = note.Signature(WITNESS.name, WITNESS.key_id, b"\0" * 72)

    keys = ("--key", WITNESS.verifier.encode(), "--key", other.encode())
    with liar(line) as url:
        said = acl("checkpoint", sealed, "--witness", url, *keys)
    assert said.status == 1
    assert "said to be of w.example is not" in said.err
    assert (sealed / "ledger.checkpoint").read_bytes() == before


def test_a_witness_cannot_spoil_what_another_one_signed(
    acl: Acl, sealed: Path, key: Path, tmp_path: Path
) -> None:
    liars_own = CosigningKey("liar.example", b"\3" * 32)
    own = note.Signature(liars_own.name, liars_own.key_id, b"\1" * 72)
    with witness(tmp_path) as url:
        assert acl("checkpoint", sealed, "--signing-key", key, "--witness", url).status == 0
    with liar(note.Signature(WITNESS.name, WITNESS.key_id, b"\0" * 72), own) as url:
        told = acl("checkpoint", sealed, "--witness", url, "--json").document()
    assert told["signatures"] == [KEY.name, WITNESS.name, liars_own.name]
    assert acl("verify", sealed, "--policy", policy(tmp_path, "w")).status == 0


def test_a_place_that_a_liar_took_is_given_to_the_witness_whose_key_is_named(
    acl: Acl, sealed: Path, key: Path, tmp_path: Path
) -> None:
    wanted = policy(tmp_path, "w")
    with liar(note.Signature(WITNESS.name, WITNESS.key_id, b"\0" * 72)) as url:
        acl("checkpoint", sealed, "--signing-key", key, "--witness", url)
    assert acl("verify", sealed, "--policy", wanted).status != 0
    with witness(tmp_path) as url:
        assert acl("checkpoint", sealed, "--witness", url, "--policy", wanted).status == 0
    assert acl("verify", sealed, "--policy", wanted).status == 0


def test_more_lines_than_a_note_holds_are_the_failure_of_who_answered_them(
    acl: Acl, sealed: Path, key: Path, tmp_path: Path
) -> None:
    lines = [note.Signature("x", bytes([0, 0, 0, n]), b"\0" * 72) for n in range(100)]
    with liar(*lines) as one, witness(tmp_path) as other:
        said = acl("checkpoint", sealed, "--signing-key", key, "--witness", one, "--witness", other)
    assert said.status == 1
    assert "this one 101" in said.err
    assert WITNESS.name in said.out


def test_unsigned_checkpoints_are_for_no_witness(acl: Acl, sealed: Path, tmp_path: Path) -> None:
    said = acl("checkpoint", sealed, "--witness", "http://127.0.0.1:9")
    assert said.status == 2
    assert "--signing-key" in said.err


def test_a_live_ledger_is_signed_by_its_writer_alone(acl: Acl, killed: Path, key: Path) -> None:
    lock = WriterLock(killed / "ledger.sqlite")
    try:
        said = acl("checkpoint", killed, "--signing-key", key)
    finally:
        lock.release()
    assert said.status == 2
    assert "is being written by" in said.err


def test_a_key_refuses_a_ledger_that_was_put_back(
    acl: Acl, killed: Path, key: Path, tmp_path: Path
) -> None:
    shutil.copytree(killed, tmp_path / "older")
    with Ledger.open(killed) as ledger:
        ledger.append(ev.AnnotationAdded(text="x", author="y"))
    assert acl("checkpoint", killed, "--signing-key", key).status == 0
    shutil.rmtree(killed)
    shutil.copytree(tmp_path / "older", killed)
    said = acl("checkpoint", killed, "--signing-key", key)
    assert said.status == 4
    assert "events were signed" in said.err


# --- verification with what the auditor brings ---------------------------------------------------


def test_a_key_of_the_same_name_proves_nothing_and_the_other_is_named(
    acl: Acl, sealed: Path, key: Path
) -> None:
    acl("checkpoint", sealed, "--signing-key", key)
    other = SigningKey(KEY.name, b"\3" * 32).verifier
    said = acl("verify", sealed, "--key", other.encode(), "--json")
    assert said.status == 0
    (why,) = [f["message"] for f in said.document()["findings"] if f["code"] == "unsigned"]
    assert f"{KEY.name}+{KEY.key_id.hex()}" in why
    assert not any(KEY.name in sentence for sentence in said.document()["proven"])


def test_keys_are_read_from_a_file_too_and_odd_ones_refused(
    acl: Acl, sealed: Path, key: Path, tmp_path: Path
) -> None:
    acl("checkpoint", sealed, "--signing-key", key)
    Path("keys").write_text(f"# whom we trust\n{KEY.verifier.encode()}\n\n")
    assert "signed" in codes(acl("verify", sealed, "--key", "keys", "--json"))
    for wrong in (key, "none", tmp_path, "a+b+c", KEY.encode()):
        said = acl("verify", sealed, "--key", wrong)
        assert said.status == 2, wrong
        assert KEY.encode() not in said.err
    Path("empty").write_text("\n")
    assert "holds no key" in acl("verify", sealed, "--key", "empty").err


def test_a_policy_that_cannot_be_read_names_its_line(acl: Acl, sealed: Path) -> None:
    Path("policy").write_text("log x\n")
    said = acl("verify", sealed, "--policy", "policy")
    assert said.status == 2
    assert "policy: line 1" in said.err


def test_an_older_copy_is_extended_by_the_ledger(acl: Acl, killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "older")
    with Ledger.open(killed) as ledger:
        ledger.append(ev.AnnotationAdded(text="x", author="y"))
    for older in (tmp_path / "older", tmp_path / "older" / "ledger.sqlite"):
        said = acl("verify", killed, "--old", older, "--json")
        assert said.status == 0
        assert "outside_checkpoint" in codes(said)
    said = acl("verify", tmp_path / "older", "--old", killed, "--json")
    assert said.status == 4
    assert "rolled_back" in codes(said)


def test_two_signed_histories_are_reported_with_both_notes_and_a_proof_for_anybody(
    acl: Acl, tmp_path: Path, key: Path
) -> None:
    home = write_run(tmp_path / "results" / "b" / "m" / "r", seal=False)
    shutil.copytree(home, tmp_path / "fork")
    with Ledger.open(home) as ledger:
        ledger.append(ev.AnnotationAdded(text="as it was", author="y"))
    acl("checkpoint", home, "--signing-key", key, "-o", "kept")
    # The key holder signs the other history too, on a machine that does not remember.
    with Ledger.open(tmp_path / "fork", memory=forgetful(tmp_path)) as ledger:
        ledger.append(ev.AnnotationAdded(text="as it should have been", author="y"))
        ledger.append(ev.AnnotationAdded(text="and on", author="y"))
        ledger.checkpoint(KEY)
    mine = KEY.verifier.encode()
    said = acl("verify", tmp_path / "fork", "--key", mine, "--old", "kept", "--json")
    assert said.status == 4
    (report,) = said.document()["forks"]
    assert Path("kept").read_text() in report
    assert (tmp_path / "fork" / "ledger.checkpoint").read_text() in report
    Path("report").write_text(report)
    judged = acl("verify-proof", "report", "--key", mine)
    assert judged.status == 0
    assert "two" in judged.out
    assert Path("kept").read_text() in acl("verify", tmp_path / "fork", "--old", "kept").out
    # Who kept the whole ledger gets the same report, without having kept the checkpoint apart.
    against_copy = acl("verify", tmp_path / "fork", "--old", home, "--json").document()
    assert against_copy["forks"] == [report]
    assert not any("was given" in s and "no checkpoint" in s for s in against_copy["unproven"])


def forgetful(tmp_path: Path):  # type: ignore[no-untyped-def]
    from ledger.memory import Memory

    return Memory(tmp_path / "elsewhere")


def test_a_checkpoint_signed_by_another_than_it_says_is_broken(
    acl: Acl, sealed: Path, key: Path
) -> None:
    acl("checkpoint", sealed, "--signing-key", key)
    beside = sealed / "ledger.checkpoint"
    parsed = note.parse_note(beside.read_bytes())
    (line,) = parsed.signatures
    *most, last = line.signature
    forged = note.Signature(line.name, line.key_id, bytes([*most, last ^ 1]))
    beside.write_bytes(note.format_note(note.SignedNote(parsed.text, (forged,))))
    said = acl("verify", sealed, "--key", KEY.verifier.encode(), "--json")
    assert said.status == 4
    assert "signature" in codes(said)


def test_events_that_no_checkpoint_covers_are_said(acl: Acl, killed: Path) -> None:
    said = acl("verify", killed, "--json")
    (found,) = [f for f in said.document()["findings"] if f["code"] == "uncovered"]
    assert found["severity"] == "unproven"
    assert f"0 to {said.document()['size'] - 1}" in found["message"]


def test_a_source_of_reuse_that_is_at_hand_is_compared(acl: Acl, tmp_path: Path) -> None:
    run = ("run", "--benchmark", "acl-arith", "--harness", "oracle", "--limit", "2")
    assert acl(*run, "--run-id", "first").status == 0
    assert acl(*run, "--run-id", "second", "--reuse-run-id", "first").status == 0
    (first,), (second,) = (
        list(Path("results").glob(f"*/*/{name}")) for name in ("first", "second")
    )
    without = acl("verify", second, "--json")
    assert "origin_claim" in codes(without)
    said = acl("verify", second, "--source", first, "--json")
    assert said.status == 0
    assert "origin_at_hand" in codes(said)
    assert "origin_claim" not in codes(said)
    assert any("at hand" in sentence for sentence in said.document()["proven"])


def test_a_source_that_is_another_ledger_of_that_id_is_broken(acl: Acl, tmp_path: Path) -> None:
    run = ("run", "--benchmark", "acl-arith", "--harness", "oracle", "--limit", "1")
    assert acl(*run, "--run-id", "first").status == 0
    assert acl(*run, "--run-id", "second", "--reuse-run-id", "first").status == 0
    (first,), (second,) = (
        list(Path("results").glob(f"*/*/{name}")) for name in ("first", "second")
    )
    from ledger import LedgerView

    with LedgerView.open(first) as view:
        same_id = view.ledger_id
    drawn = iter([same_id])
    (tmp_path / "forged").mkdir()
    with Ledger.create(
        tmp_path / "forged", entropy=lambda count: next(drawn, bytes(count))
    ) as ledger:
        ledger.append(*say.opening("t"))
        ledger.seal()
    said = acl("verify", second, "--source", tmp_path / "forged", "--json")
    assert said.status == 4
    assert "origin_differs" in codes(said)


def test_json_of_a_verification_is_one_document(acl: Acl, sealed: Path) -> None:
    said = acl("verify", sealed, "--json")
    assert set(json.loads(said.out)) == {
        "ok",
        "intact",
        "size",
        "root",
        "sealed_at",
        "findings",
        "proven",
        "unproven",
        "forks",
    }
    assert said.document()["root"] != tlog.EMPTY_ROOT.hex()
