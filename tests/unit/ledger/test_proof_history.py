"""That a ledger extends a checkpoint, or contradicts it: files made from ledgers."""

from base64 import b64encode

import pytest

from ledger import LedgerView, sidefile, tlog
from ledger.errors import ProofInvalid, UsageError
from ledger.proof.history import (
    consistency,
    extends,
    fork,
    format_consistency,
    format_fork,
    ledger_of,
    parse_consistency,
    parse_fork,
    same_log,
)
from tests.signed_ledgers import make, notes


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make(tmp_path_factory.mktemp("history") / "r")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another history under the same ledger id: other answers from the first task on."""
    return make(tmp_path_factory.mktemp("history") / "o", answer="43")


def claims(run):
    return [sidefile.parse(note).checkpoint for note in notes(run)]


def test_every_checkpoint_extends_every_earlier_one(run):
    held = notes(run)
    with LedgerView.open(run) as view:
        for at, old in enumerate(held):
            for new in held[at:]:
                proof = parse_consistency(consistency(view, old, new))
                first, second = (claim.checkpoint for claim in proof.claims)
                assert (proof.old, proof.new) == (old, new)
                tlog.check_consistency(first.size, second.size, proof.path, first.root, second.root)


def test_a_consistency_proof_reads_as_its_format_says(run):
    old, new = notes(run)[0], notes(run)[-1]
    sizes = [one.size for one in (claims(run)[0], claims(run)[-1])]
    with LedgerView.open(run) as view:
        hashes = view.prove_prefix(*sizes).path
        data = consistency(view, old, new)
    lines = b"".join(b64encode(one) + b"\n" for one in hashes)
    assert data == b"acl/consistency-proof@v1\n" + lines + b"\n" + old + b"\n" + new


def test_equal_checkpoints_need_no_hashes(run):
    note = notes(run)[-1]
    with LedgerView.open(run) as view:
        data = consistency(view, note, note)
    assert data == b"acl/consistency-proof@v1\n\n" + note + b"\n" + note
    assert parse_consistency(data).path == ()


def test_a_checkpoint_that_nobody_signed_can_be_extended_by_a_signed_one(run):
    bare = claims(run)[0]
    unsigned = sidefile.parse(notes(run)[0]).checkpoint
    text = unsigned.text.replace(b"acl/lab.example/", b"acl/unsigned/")
    with LedgerView.open(run) as view:
        proof = parse_consistency(consistency(view, text, notes(run)[-1]))
    assert proof.old == text
    assert proof.claims[0].signed is None
    assert proof.claims[0].checkpoint.root == bare.root


def test_the_order_of_checkpoints_matters(run):
    with LedgerView.open(run) as view, pytest.raises(UsageError, match="older"):
        consistency(view, notes(run)[-1], notes(run)[0])


def test_a_checkpoint_of_another_ledger_is_wrong_use(run):
    foreign = notes(run)[0].replace(b"acl/lab.example/0", b"acl/lab.example/1")
    with LedgerView.open(run) as view, pytest.raises(UsageError, match="another log"):
        consistency(view, foreign, notes(run)[-1])


def test_a_history_that_was_replaced_is_no_extension(run, other):
    with LedgerView.open(run) as view:
        assert not extends(view, sidefile.parse(notes(other)[-1]))
        with pytest.raises(ProofInvalid, match="does not extend"):
            consistency(view, notes(other)[-2], notes(run)[-1])
        with pytest.raises(ProofInvalid, match="does not extend"):
            consistency(view, notes(run)[-2], notes(other)[-1])


def test_a_checkpoint_beyond_the_ledger_is_not_extended(tmp_path, run):
    short = make(tmp_path / "s", seal=False)
    with LedgerView.open(short) as view:
        assert not extends(view, sidefile.parse(notes(run)[-1]))


def test_a_fork_report_shows_the_root_that_the_other_history_has_there(run, other):
    held, forged = notes(run), notes(other)
    for old in forged[1:]:
        for new in held[1:]:
            first, second = sidefile.parse(old).checkpoint, sidefile.parse(new).checkpoint
            if first.size > second.size:
                continue
            with LedgerView.open(run) as view:
                report = parse_fork(fork(view, old, new))
                assert report.root == view.root(first.size)
            assert report.root != first.root
            assert (report.old, report.new) == (old, new)
            tlog.check_consistency(first.size, second.size, report.path, report.root, second.root)


def test_there_is_no_report_of_a_fork_that_is_none(run):
    with LedgerView.open(run) as view, pytest.raises(UsageError, match="no fork"):
        fork(view, notes(run)[0], notes(run)[-1])


def test_a_ledger_of_neither_history_cannot_report(run, other, tmp_path):
    third = make(tmp_path / "t", answer="44")
    with LedgerView.open(third) as view, pytest.raises(UsageError, match="neither"):
        fork(view, notes(other)[-1], notes(run)[-1])


def files(run, other):
    with LedgerView.open(run) as view:
        yield parse_consistency, consistency(view, notes(run)[0], notes(run)[-1])
        yield parse_fork, fork(view, notes(other)[1], notes(run)[-1])


@pytest.mark.parametrize("cut", [1, 2, 50, 200])
def test_a_cut_file_is_refused(run, other, cut):
    for parse, data in files(run, other):
        with pytest.raises(ProofInvalid):
            parse(data[:-cut])
        with pytest.raises(ProofInvalid):
            parse(data[cut:])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\n\n", b"\n\n\n"),
        (b"\n", b"\r\n"),
        (b"=\n", b"\n"),
        ("\n\n—".encode(), "\n—".encode()),
        ("— lab".encode(), b"- lab"),
        (b"@v1", b"@v2"),
        (b"@v1\n", b"@v1 \n"),
    ],
)
def test_another_spelling_is_refused(run, other, old, new):
    for parse, data in files(run, other):
        assert old in data
        with pytest.raises(ProofInvalid):
            parse(data.replace(old, new))


def test_more_than_two_checkpoints_are_refused(run, other):
    for parse, data in files(run, other):
        with pytest.raises(ProofInvalid):
            parse(data + b"\n" + notes(run)[0])


def test_one_kind_of_file_is_not_the_other(run, other):
    (_, extended), (_, forked) = files(run, other)
    with pytest.raises(ProofInvalid):
        parse_fork(extended)
    with pytest.raises(ProofInvalid):
        parse_consistency(forked)


def test_what_is_read_is_written_again(run, other):
    (_, extended), (_, forked) = files(run, other)
    assert format_consistency(parse_consistency(extended)) == extended
    assert format_fork(parse_fork(forked)) == forked


def test_logs_are_one_by_their_ledger_or_their_origin(run):
    first = claims(run)[0]
    assert ledger_of(first.origin) == first.origin[-32:]
    assert ledger_of("acl.example/run/0001") is None
    signed, unsigned = f"acl/a/{'0' * 32}", f"acl/unsigned/{'0' * 32}"
    elsewhere, foreign = f"acl/a/{'1' * 32}", "log.example"

    def of(origin):
        return type(first)(origin, first.size, first.root)

    assert same_log(of(signed), of(unsigned))
    assert same_log(of(foreign), of(foreign))
    assert not same_log(of(signed), of(elsewhere))
    assert not same_log(of(foreign), of("log.example2"))
