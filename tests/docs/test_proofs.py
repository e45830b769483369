"""The program in docs/proofs.md checks proofs, and refuses what is none."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.proof import covering, inclusion
from ledger.proof.history import CONSISTENCY, FORK
from ledger.proof.inclusion import SIGNED, UNSIGNED
from tests.signed_ledgers import LAB, OTHER, make

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "proofs.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    directory = tmp_path_factory.mktemp("proofs")
    run = make(directory / "r")
    with LedgerView.open(run) as view:
        (directory / "p").write_bytes(inclusion(view, 9, covering(view, 10)))
        body = view.raw(9)[1].decode()
    return directory / "p", body


def check(path, key):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), key.verifier.encode()],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_program_of_the_page_accepts_a_proof(proof):
    path, body = proof
    done = check(path, LAB)
    assert done.returncode == 0, done.stderr
    assert done.stdout == body + "\n"


def test_the_program_of_the_page_refuses_other_keys_and_changed_proofs(proof, tmp_path):
    path, _ = proof
    assert check(path, OTHER).returncode != 0
    data = path.read_bytes()
    for old, new in ((b"index 9", b"index 8"), (b"\nextra A", b"\nextra B"), (b"r\n", b"r\n\n")):
        (tmp_path / "q").write_bytes(data.replace(old, new, 1))
        if old in data:
            assert check(tmp_path / "q", LAB).returncode != 0, old


def test_formats_on_the_page_are_those_that_are_written():
    for title in (SIGNED, UNSIGNED, CONSISTENCY, FORK):
        assert title.decode().strip() in PAGE
