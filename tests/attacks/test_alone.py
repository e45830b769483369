"""An auditor needs a ledger, a key, and the package that reads ledgers: nothing else of ours."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.proof import inclusion
from tests.attacks.runs import LAB, record

ROOT = Path(__file__).resolve().parents[2]
# Of this package, only what reads; of others, only what that needs.
AUDITOR = """
import json, sys

BLOCKED = {"acl", "runtime", "exporters", "httpx", "typer", "rich", "yaml", "re2", "litellm"}

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED or name in ("ledger.store", "ledger.writer"):
            raise ImportError(f"{name} is not on this machine")

package, path, key, proof = sys.argv[1:]
sys.meta_path.insert(0, Block())
sys.path.insert(0, package)

from ledger.keys import parse_verifier
from ledger.proof import checking, parse_inclusion
from ledger.verify import verify

verifier = parse_verifier(open(key).read().strip())
findings = list(verify(path, verifiers=[verifier]))
with open(proof, "rb") as file:
    proven = checking.check_event(parse_inclusion(file.read()), checking.Trust([verifier]))
import ledger
print(json.dumps({
    "findings": [[one.code, one.severity, one.message] for one in findings],
    "proven": proven.entry.header.seq,
    "from": ledger.__file__,
    "modules": sorted(name for name in sys.modules if name.partition(".")[0] == "ledger"),
}))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A directory that holds the package `ledger` and nothing else."""
    home = tmp_path / "package"
    shutil.copytree(ROOT / "ledger", home / "ledger", ignore=shutil.ignore_patterns("__pycache__"))
    return home


@pytest.mark.parametrize("seal", [True, False])
def test_a_ledger_is_verified_with_the_key_and_this_package_alone(
    tmp_path: Path, package: Path, seal: bool
) -> None:
    kept = record(tmp_path / "run", seal=seal)
    desk = tmp_path / "desk"
    desk.mkdir()
    for name in ("ledger.sqlite", "ledger.sqlite-wal"):
        if (tmp_path / "run" / name).exists():
            shutil.copy(tmp_path / "run" / name, desk)
    (desk / "key").write_text(LAB.verifier.encode() + "\n")
    with LedgerView.open(tmp_path / "run") as view:
        (desk / "proof").write_bytes(inclusion(view, 5, kept))
    arguments = [package, desk / "ledger.sqlite", desk / "key", desk / "proof"]
    done = subprocess.run(
        [sys.executable, "-I", "-c", AUDITOR, *map(str, arguments)],
        cwd=desk,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["from"].startswith(str(package))
    assert said["proven"] == 5
    codes = {code for code, _, _ in said["findings"]}
    assert "signed" in codes
    assert not [one for one in said["findings"] if one[1] == "broken"]
    writing = {"database", "tail", "rewriting", "copying", "memory", "resume"}
    assert not {f"ledger.{name}" for name in writing} & set(said["modules"])
