"""Policies: whose signatures make a checkpoint good enough."""

import pytest

from ledger import note
from ledger.errors import KeyRefused, UsageError
from ledger.keys import CosigningKey, SigningKey
from ledger.policy import parse_policy

LOG = SigningKey("lab", bytes(32))
OTHER = SigningKey("lab", b"\1" * 32)
WITNESSES = [CosigningKey(f"w{n}.example", bytes([n]) * 32) for n in range(2, 6)]
TEXT = note.format_checkpoint(note.Checkpoint("acl/lab/" + "0" * 32, 3, bytes(32)))


def signed(*witnesses, log=LOG):
    lines = [note.Signature(log.name, log.key_id, log.sign(TEXT))]
    lines += [note.Signature(w.name, w.key_id, w.cosign(TEXT, 5)) for w in witnesses]
    return note.SignedNote(TEXT, tuple(lines))


def policy(*lines, log=LOG):
    named = [f"witness w{n} {w.verifier.encode()}" for n, w in enumerate(WITNESSES, 2)]
    return parse_policy("\n".join([f"log {log.verifier.encode()}", *named, *lines, ""]).encode())


def test_without_a_quorum_the_key_of_the_log_is_enough():
    assert policy("quorum none").fault(signed()) is None


def test_witnesses_alone_are_not_enough():
    only = note.SignedNote(TEXT, signed(*WITNESSES).signatures[1:])
    assert policy("quorum none").fault(only) == "no log of the policy signed it"


def test_a_key_of_the_same_name_is_another_key():
    assert policy("quorum none").fault(signed(log=OTHER)) is not None


@pytest.mark.parametrize(
    ("line", "needed"), [("any w2 w3 w4", 1), ("2 w2 w3 w4", 2), ("all w2 w3 w4", 3)]
)
def test_a_group_wants_so_many_of_its_members(line, needed):
    wanted = policy(f"group g {line}", "quorum g")
    for count in range(4):
        fault = wanted.fault(signed(*WITNESSES[:count]))
        assert (fault is None) is (count >= needed)
        assert fault is None or "quorum 'g' is not reached" in fault


def test_groups_of_groups_count_groups():
    wanted = policy("group a any w2 w3", "group b any w4 w5", "group both all a b", "quorum both")
    assert wanted.fault(signed(WITNESSES[0], WITNESSES[1])) is not None
    assert wanted.fault(signed(WITNESSES[0], WITNESSES[2])) is None


def test_one_witness_that_signs_twice_counts_once():
    wanted = policy("group g 2 w2 w3", "quorum g")
    assert wanted.fault(signed(WITNESSES[0], WITNESSES[0])) is not None


def test_a_false_signature_of_a_known_key_is_a_fault_by_itself():
    note_ = signed(WITNESSES[0])
    bad = note.Signature(WITNESSES[0].name, WITNESSES[0].key_id, bytes(72))
    spoiled = note.SignedNote(TEXT, (note_.signatures[0], bad))
    assert "is not" in (policy("quorum none").fault(spoiled) or "")


def test_comments_empty_lines_tabs_urls_and_carriage_returns_are_read():
    wanted = parse_policy(
        f"# ours\r\n\r\nlog\t{LOG.verifier.encode()} https://log.example/\r\n"
        f"  witness w2  {WITNESSES[0].verifier.encode()}\thttps://w.example\r\n"
        "quorum w2\r\n".encode()
    )
    assert wanted.fault(signed(WITNESSES[0])) is None


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["quorum none", "quorum none"],
        ["quorum w9"],
        ["quorum w2 w3"],
        ["group g any w9", "quorum g"],
        ["group g 4 w2 w3", "quorum g"],
        ["group g 0 w2 w3", "quorum g"],
        ["group g -1 w2", "quorum g"],
        ["group g ٢ w2 w3", "quorum g"],
        ["group g any", "quorum g"],
        ["group g any w2", "group h any w2", "quorum h"],
        ["group none any w2", "quorum none"],
        ["group w2 any w3", "quorum w2"],
        [f"witness again {WITNESSES[0].verifier.encode()}", "quorum none"],
        [f"witness log {LOG.verifier.encode()}", "quorum none"],
        [f"log {WITNESSES[0].verifier.encode()}", "quorum none"],
        ["Quorum none"],
        ["quorum\u00a0none"],
    ],
)
def test_a_policy_that_says_something_else_is_refused_by_its_line(lines):
    with pytest.raises(UsageError):
        policy(*lines)


@pytest.mark.parametrize(
    "line",
    [
        "{key}",
        "{key} none",
        "log {key}",
        "log {log} {key}",
        "witness w {key}",
        "witness {key} {log}",
        "group {key} any w2",
        "group g {key} w2",
        "group g any {key}",
        "quorum {key}",
    ],
)
def test_a_signing_key_anywhere_in_a_policy_is_refused_and_not_quoted(line):
    for secret in (SigningKey("x", bytes(range(32))), CosigningKey("y", bytes(range(32)))):
        key = secret.encode()
        with pytest.raises(KeyRefused, match=r"line 6 of the policy: .*a signing key") as refused:
            policy(line.format(key=key, log=OTHER.verifier.encode()), "quorum none")
        assert key[-44:-34] not in str(refused.value)


def test_a_weak_witness_cannot_be_in_a_policy():
    weak = "w+4d3ef9a0+BAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    with pytest.raises(KeyRefused, match=r"line 6 of the policy: .*weak"):
        policy(f"witness weak {weak}", "quorum weak")


def test_a_policy_without_a_log_or_of_another_encoding_is_refused():
    with pytest.raises(UsageError, match="no log"):
        parse_policy(b"quorum none\n")
    with pytest.raises(UsageError, match="UTF-8"):
        parse_policy(b"\xff")
    with pytest.raises(UsageError, match="bytes"):
        parse_policy(b"#" * 1_000_001)


def test_thirty_two_of_everything_are_read():
    keys = [SigningKey(f"log{n}", bytes([n]) * 32).verifier for n in range(32)]
    witnesses = [CosigningKey(f"w{n}", bytes([100 + n]) * 32).verifier for n in range(32)]
    lines = [f"log {key.encode()}" for key in keys]
    lines += [f"witness w{n} {key.encode()}" for n, key in enumerate(witnesses)]
    lines += [f"group g{n} any w{n}" for n in range(32)]
    lines += ["quorum g31"]
    assert len(parse_policy("\n".join(lines).encode()).verifiers) == 64
