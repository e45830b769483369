"""`acl attest`: statements about sealed runs, and time stamps on them."""

import hashlib
import json
import shutil
import subprocess
from base64 import b64decode, b64encode

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from acl.timestamp import check_timestamp
from ledger import dsse
from ledger import events as ev
from ledger.errors import ProofInvalid, UsageError
from ledger.memory import Memory
from ledger.opening import ledger_file
from ledger.store import Ledger
from tests.signed_ledgers import LAB, OTHER, SAME_NAME, make, notes
from tests.stub_endpoint import refusing_port
from tests.time_stamp_authority import OPENSSL, Authority

KEY = LAB.verifier.encode()
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="openssl makes the authority")


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    path.write_text(LAB.encode() + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def run(tmp_path):
    return make(tmp_path / "r")


@pytest.fixture
def attested(acl, run, key, tmp_path):
    acl("export", run, "tree")
    done = acl("attest", run, "-o", "a.json", "--signing-key", key, "--tree", "tree")
    assert done.status == 0, done.err
    return tmp_path / "a.json"


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_another_implementation_accepts_the_signature(attested):
    envelope = Envelope.from_dict(json.loads(attested.read_bytes()))
    public = {"public": LAB.verifier.public.hex()}
    their_key = SSlibKey(dsse.key_hint(LAB), "ed25519", "ed25519", public)
    assert envelope.verify([their_key], 1)
    assert json.loads(envelope.payload)["predicate"]["run_id"] == "r1"


def test_its_subjects_are_the_checkpoint_the_manifest_and_the_ledger(attested, run, tmp_path):
    statement = json.loads(b64decode(json.loads(attested.read_bytes())["payload"]))
    digests = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    text = b"".join(notes(run)[-1].splitlines(keepends=True)[:3])
    assert digests == {
        "checkpoint": hashlib.sha256(text).hexdigest(),
        "MANIFEST.json": sha256(tmp_path / "tree" / "MANIFEST.json"),
        "ledger.sqlite": sha256(ledger_file(run)),
    }


def test_it_holds_for_the_run_that_it_is_about(acl, attested, run):
    told = acl("attest", run, "--check", attested, "--key", KEY, "--tree", "tree", "--json")
    assert told.status == 0, told.err
    document = told.document()
    assert (document["ok"], document["signed_by"]) == (True, ["lab.example"])
    assert len(document["proven"]) == 4
    assert document["unproven"] == ["when it was signed: it has no time stamp"]


def test_what_is_not_at_hand_is_not_proven(acl, attested, run):
    told = acl("attest", run, "--check", attested, "--json").document()
    assert told["signed_by"] == []
    assert any("no key was given" in sentence for sentence in told["unproven"])
    assert any("no directory is at hand" in sentence for sentence in told["unproven"])


@pytest.mark.parametrize("other", [OTHER, SAME_NAME])
def test_another_key_did_not_sign_it(acl, attested, run, other):
    done = acl("attest", run, "--check", attested, "--key", other.verifier.encode())
    assert done.status == 4


def test_it_does_not_hold_for_another_run(acl, attested, tmp_path):
    other = tmp_path / "o"
    other.mkdir()
    with Ledger.create(other) as ledger:
        ledger.append(ev.RegistryOpened(**_opened()))
    assert acl("attest", other, "--check", attested, "--key", KEY).status == 4


def _opened():
    return {
        "run_id": "x",
        "path": "x",
        "ledger_id": "0" * 32,
        "request_digest": "0" * 64,
        "planned_tasks": 1,
        "k": 1,
    }


def test_it_does_not_hold_for_another_history_of_the_run(acl, attested, tmp_path):
    other = make(tmp_path / "o", answer="43")
    done = acl("attest", other, "--check", attested, "--key", KEY)
    assert done.status == 4
    assert "not those that were attested" in done.err


def test_it_does_not_hold_for_an_older_copy(acl, attested, tmp_path):
    short = make(tmp_path / "s", seal=False)
    assert acl("attest", short, "--check", attested, "--key", KEY).status == 4


def test_a_changed_export_does_not_hold(acl, attested, run, tmp_path):
    manifest = tmp_path / "tree" / "MANIFEST.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    done = acl("attest", run, "--check", attested, "--key", KEY, "--tree", "tree")
    assert done.status == 4
    assert "manifest" in done.err


def test_a_changed_ledger_file_does_not_hold_even_where_every_event_is_the_same(acl, attested, run):
    file = ledger_file(run)
    file.chmod(0o600)
    data = bytearray(file.read_bytes())
    data[92:96] = bytes(4)  # "version-valid-for", which SQLite writes and no reader looks at
    file.write_bytes(data)
    assert acl("attest", run, "--check", attested, "--key", KEY).status == 4


def test_a_remark_after_the_seal_leaves_the_sealed_events_attested(acl, attested, run, tmp_path):
    with Ledger.open(run, memory=Memory(tmp_path / "m"), amends=True) as ledger:
        ledger.append(ev.AnnotationAdded(text="checked", author="an auditor"))
        ledger.checkpoint()
    told = acl("attest", run, "--check", attested, "--key", KEY, "--json")
    assert told.status == 0, told.err
    assert any("later events" in sentence for sentence in told.document()["unproven"])
    assert any("those that were sealed" in sentence for sentence in told.document()["proven"])


def test_a_run_that_is_not_sealed_is_not_attested(acl, key, tmp_path):
    run = make(tmp_path / "u", seal=False)
    done = acl("attest", run, "-o", "a.json", "--signing-key", key)
    assert done.status == 2
    assert "not sealed" in done.err
    assert not (tmp_path / "a.json").exists()


def test_an_export_that_is_not_what_the_events_give_is_not_attested(acl, run, key, tmp_path):
    acl("export", run, "tree")
    (tmp_path / "tree" / "summary.md").write_text("all passed\n")
    done = acl("attest", run, "-o", "a.json", "--signing-key", key, "--tree", "tree")
    assert done.status == 4
    assert not (tmp_path / "a.json").exists()


def test_a_damaged_ledger_is_not_attested(acl, run, key, tmp_path):
    from tests.cli.conftest import flip_a_stored_byte

    flip_a_stored_byte(ledger_file(run))
    assert acl("attest", run, "-o", "a.json", "--signing-key", key).status == 4
    assert not (tmp_path / "a.json").exists()


def test_without_a_key_to_sign_with_nothing_is_attested(acl, run):
    done = acl("attest", run, "-o", "a.json")
    assert done.status == 2
    assert "--signing-key" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-o", "x", "--check", "a.json"),
        ("-o", "x", "--key", KEY),
        ("-o", "x", "--tsa-root", "r"),
        ("--check", "a.json", "--signing-key", "key"),
        ("--check", "a.json", "--timestamp-url", "http://127.0.0.1:1/"),
        ("--check", "absent"),
        ("--check", "a.json", "--tree", "."),
    ],
)
def test_options_that_contradict_each_other_are_wrong_use(acl, attested, run, arguments):
    assert acl("attest", run, *arguments).status == 2


def test_nothing_is_replaced(acl, attested, run, key):
    before = attested.read_bytes()
    assert acl("attest", run, "-o", attested, "--signing-key", key).status == 2
    assert attested.read_bytes() == before


def test_an_envelope_of_another_type_is_no_attestation(acl, run, tmp_path):
    envelope = dsse.sign("text/plain", b"{}", [LAB])
    (tmp_path / "a.json").write_bytes(dsse.encode(envelope))
    done = acl("attest", run, "--check", "a.json", "--key", KEY)
    assert done.status == 4
    assert "another type" in done.err


def test_a_statement_that_was_edited_is_refused_by_its_signature(acl, attested, run):
    document = json.loads(attested.read_bytes())
    payload = b64decode(document["payload"]).replace(b'"correct":6', b'"correct":7')
    document["payload"] = b64encode(payload).decode()
    attested.write_text(json.dumps(document))
    assert acl("attest", run, "--check", attested, "--key", KEY).status == 4


# -- time stamps ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority") / "tsa")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger") / "tsa")


@needs_openssl
def test_no_proxy_stands_before_an_authority_on_this_machine(acl, run, key, authority, monkeypatch):
    with refusing_port() as port, authority.served() as url:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        done = acl("attest", run, "-o", "a.json", "--signing-key", key, "--timestamp-url", url)
    assert done.status == 0, done.err


@needs_openssl
def test_a_time_stamp_is_asked_for_and_checked(acl, run, key, tmp_path, authority, stranger):
    with authority.served() as url:
        done = acl("attest", run, "-o", "a.json", "--signing-key", key, "--timestamp-url", url)
    assert done.status == 0, done.err
    assert (tmp_path / "a.json.tsr").exists()
    check = ("attest", run, "--check", "a.json", "--key", KEY)
    told = acl(*check, "--tsa-root", authority.root, "--json").document()
    assert told["stamped_at"]
    assert any("authority says so" in sentence for sentence in told["proven"])
    unsure = acl(*check, "--json").document()
    assert unsure["stamped_at"] == told["stamped_at"]
    assert any("--tsa-root" in sentence for sentence in unsure["unproven"])
    refused = acl(*check, "--tsa-root", stranger.root)
    assert refused.status == 4
    assert "time stamp" in refused.err


@needs_openssl
def test_openssl_accepts_the_time_stamp_of_the_file(acl, run, key, tmp_path, authority):
    with authority.served() as url:
        acl("attest", run, "-o", "a.json", "--signing-key", key, "--timestamp-url", url)
    command = [OPENSSL, "ts", "-verify", "-data", "a.json", "-in", "a.json.tsr"]
    done = subprocess.run(
        [*command, "-CAfile", authority.root], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


@needs_openssl
def test_the_time_stamp_of_another_file_is_refused(acl, run, key, tmp_path, authority):
    with authority.served() as url:
        acl("attest", run, "-o", "a.json", "--signing-key", key, "--timestamp-url", url)
        acl("export", run, "tree")
        acl("attest", run, "-o", "b.json", "--signing-key", key, "--tree", "tree")
    shutil.copy(tmp_path / "a.json.tsr", tmp_path / "b.json.tsr")
    check = ("attest", run, "--check", "b.json", "--key", KEY, "--tree", "tree")
    for more in ((), ("--tsa-root", authority.root)):
        assert acl(*check, *more).status == 4
    named = ("--timestamp", "a.json.tsr")
    assert acl("attest", run, "--check", "b.json", "--key", KEY, *named).status == 4


@needs_openssl
def test_an_authority_that_stamps_something_else_is_refused(acl, run, key, tmp_path, authority):
    other = tmp_path / "other"
    other.write_text("other")
    query = [OPENSSL, "ts", "-query", "-data", other, "-sha256", "-cert"]
    asked = subprocess.run(query, capture_output=True, check=True).stdout
    with authority.served(reply=authority.reply(asked)) as url:
        done = acl("attest", run, "-o", "a.json", "--signing-key", key, "--timestamp-url", url)
    assert done.status == 4
    assert not (tmp_path / "a.json").exists()
    assert not (tmp_path / "a.json.tsr").exists()


@needs_openssl
def test_an_authority_that_answers_nonsense_leaves_nothing_behind(
    acl, run, key, tmp_path, authority
):
    for how, status in (({"status": 500, "reply": b"no"}, 2), ({"reply": b"nonsense"}, 4)):
        with authority.served(**how) as url:
            done = acl("attest", run, "-o", "a.json", "--signing-key", key, "--timestamp-url", url)
        assert done.status == status, done.err
        assert not (tmp_path / "a.json").exists()


def test_an_authority_that_is_not_there_leaves_nothing_behind(acl, run, key, tmp_path):
    for url in ("http://127.0.0.1:1/", "nonsense"):
        done = acl("attest", run, "-o", "a.json", "--signing-key", key, "--timestamp-url", url)
        assert done.status == 2, done.err
        assert not (tmp_path / "a.json").exists()


@needs_openssl
def test_no_byte_of_a_time_stamp_can_be_changed(tmp_path, authority):
    """Each is refused, or stamps the same bytes at the same time."""
    data = b"what was stamped"
    (tmp_path / "data").write_bytes(data)
    query = [OPENSSL, "ts", "-query", "-data", tmp_path / "data", "-sha256", "-cert"]
    reply = authority.reply(subprocess.run(query, capture_output=True, check=True).stdout)
    root = authority.root.read_bytes()
    before = check_timestamp(data, reply, root)
    refused = 0
    for at in range(0, len(reply), 3):
        changed = reply[:at] + bytes([reply[at] ^ 1]) + reply[at + 1 :]
        try:
            assert check_timestamp(data, changed, root) == before, at
        except ProofInvalid:
            refused += 1
    assert refused > len(reply) // 6


def test_what_is_no_certificate_is_wrong_use(tmp_path):
    with pytest.raises((UsageError, ProofInvalid)):
        check_timestamp(b"data", b"reply", b"no certificate")


def test_without_the_package_time_stamps_are_refused_with_the_way_out(acl, run, key, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rfc3161_client", None)
    done = acl(
        *("attest", run, "-o", "a.json", "--signing-key", key),
        *("--timestamp-url", "http://127.0.0.1:1/"),
    )
    assert done.status == 2
    assert "agentcompass-ledger[timestamp]" in done.err
