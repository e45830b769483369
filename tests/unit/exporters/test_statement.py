"""The statement about a sealed run."""

import hashlib
import json

import pytest

from exporters.statement import (
    CHECKPOINT,
    LEDGER,
    checkpoint_of,
    read_statement,
    statement,
)
from ledger import LedgerView, fold, sidefile
from ledger.errors import ProofInvalid, UsageError
from tests.signed_ledgers import make, notes


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make(tmp_path_factory.mktemp("statement") / "r")


def state_of(run):
    with LedgerView.open(run) as view:
        return fold(view.events())


def payload(run, **files):
    return statement(state_of(run), notes(run)[-1], files)


def test_it_is_a_statement_as_in_toto_spells_them(run):
    document = json.loads(payload(run, **{LEDGER: "ab" * 32}))
    assert list(document) == ["_type", "subject", "predicateType", "predicate"]
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert [one["name"] for one in document["subject"]] == ["checkpoint", "ledger.sqlite"]
    assert document["subject"][1]["digest"] == {"sha256": "ab" * 32}


def test_its_first_subject_is_the_text_of_the_checkpoint(run):
    text = notes(run)[-1].partition(b"\n\n")[0] + b"\n"
    found = read_statement(payload(run))
    assert found.digest(CHECKPOINT) == hashlib.sha256(text).hexdigest()
    assert checkpoint_of(found) == sidefile.parse(notes(run)[-1]).checkpoint


def test_it_says_what_the_run_was_and_gave(run):
    said = read_statement(payload(run)).predicate
    state = state_of(run)
    assert (said.run_id, said.ledger_id) == ("r1", state.ledger_id)
    assert (said.status, said.benchmark, said.harness, said.model) == (
        *("completed", "bench", "noop", "model-1"),
    )
    assert said.counts["total"] == said.counts["correct"] == 6
    assert (said.size, said.root) == (state.size, state.root.hex())


def test_the_same_run_gives_the_same_bytes(run, tmp_path):
    assert payload(run) == payload(make(tmp_path / "again"))


def test_a_run_that_is_not_sealed_has_nothing_final_to_say(tmp_path):
    run = make(tmp_path / "r", seal=False)
    with pytest.raises(UsageError, match="not sealed"):
        payload(run)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("_type",), "https://in-toto.io/Statement/v0.1"),
        (("predicateType",), "https://slsa.dev/provenance/v1"),
        (("subject",), []),
        (("subject", 0, "digest", "sha256"), "00" * 32),
        (("subject", 0, "digest", "sha256"), "x"),
        (("subject", 0, "name"), "other"),
        (("predicate", "size"), 1),
        (("predicate", "root"), "00" * 32),
        (("predicate", "checkpoint"), "nonsense"),
        (("predicate", "run_id"), 1),
        (("predicate",), None),
    ],
    ids=str,
)
def test_a_statement_that_contradicts_itself_is_refused(run, path, value):
    document = json.loads(payload(run))
    at = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    with pytest.raises(ProofInvalid):
        read_statement(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 100_000, b"\xff"], ids=range(4))
def test_what_is_no_statement_is_refused(data):
    with pytest.raises(ProofInvalid):
        read_statement(data)


def test_a_checkpoint_that_no_utf_8_has_is_refused(run):
    document = json.loads(payload(run))
    document["predicate"]["checkpoint"] += "\ud800\n"
    with pytest.raises(ProofInvalid, match="not UTF-8"):
        read_statement(json.dumps(document).encode())
