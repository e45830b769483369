"""`acl export -f tiles`."""

from tests.signed_ledgers import LAB, OTHER, make
from tests.tile_auditor import audit


def test_a_published_log_is_one_that_others_audit(acl, tmp_path):
    run = make(tmp_path / "r")
    done = acl("export", "-f", "tiles", run, "t", "--json")
    assert done.status == 0, done.err
    told = done.document()
    assert audit(tmp_path / "t", LAB.name, LAB.verifier.public) == (
        told["size"],
        bytes.fromhex(told["root"]),
    )
    assert told["signed"] is True
    assert done.err == ""


def test_it_says_when_nobody_signed_and_what_is_not_covered(acl, tmp_path):
    run = make(tmp_path / "r", tasks=4, signers=(), seal=False)
    done = acl("export", "-f", "tiles", run, "t")
    assert done.status == 0
    assert "nobody signed" in done.err
    assert "later events" in done.err


def test_another_log_exits_as_refused(acl, tmp_path):
    acl("export", "-f", "tiles", make(tmp_path / "o", answer="43", signers=(OTHER,)), "t")
    assert acl("export", "-f", "tiles", make(tmp_path / "r"), "t").status == 5


def test_a_log_is_neither_followed_nor_salvaged(acl, tmp_path):
    run = make(tmp_path / "r")
    for option in ("--follow", "--salvage"):
        assert acl("export", "-f", "tiles", run, "t", option).status == 2
    assert not (tmp_path / "t").exists()
