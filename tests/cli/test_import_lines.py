"""`acl import` of JSON lines: what is left out decides the exit status, and nothing else does."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Acl

HEADER = '{"acl.generic": 1, "benchmark": "b", "model": "m", "run_id": "r"}\n'
GOOD = '{"task_id": "a", "correct": true, "mine": 1}\n'


@pytest.mark.parametrize(
    ("tail", "status"),
    [("", 0), ('{"task_id": "b", "corr', 0), ("[]", 1), ("null\n", 1), ('{"task_id": "b"\n', 1)],
)
def test_a_crash_is_tolerated_and_damage_is_not(
    acl: Acl, tmp_path: Path, tail: str, status: int
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(HEADER + GOOD + tail)
    said = acl("import", path, "--json")
    document = said.document()
    assert said.status == status
    assert document["in"] - document["out"] == len(document["unplaced"]) == bool(tail)
    again = acl("import", path, "--json")
    assert again.status == 0
    assert again.document()["already"] is True
    assert len(acl("ls", "--json").lines()) == 1
    shown = json.loads(acl("show", document["path"], "--json").out)
    assert shown["status"] == ("interrupted" if tail else "completed")
