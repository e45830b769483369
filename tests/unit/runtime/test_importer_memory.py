"""What an import takes is bounded by its largest value: a small multiple of it, never dozens."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 30 << 20
MOST = 10
"""Times the value: the line, what is read of it, its copies on the way, and what is stored."""

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import sys
from pathlib import Path
from ledger.store import Ledger
from runtime.importers.door import import_path
from runtime.recorder import Recorder
from runtime.redact import Redactor
from tests.memory_peak import peak

before = peak()
import_path(
    Path(sys.argv[1]),
    results_dir=Path(sys.argv[2]),
    create=lambda path: Recorder(Ledger.create(path), Redactor({})),
)
print(peak() - before)
"""


def taken(tmp_path, record):
    header = {"acl.generic": 1, "benchmark": "toy", "model": "m", "harness": "h", "run_id": "r"}
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, record)))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(tmp_path / "results")],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return int(done.stdout)


def conversation():
    text = "a word and another one, " * 40
    usage = {"total_tokens": 3, "by": [1, 2]}
    many = SIZE // len(text)
    return {"messages": [{"id": n, "content": f"{n} {text}", "usage": usage} for n in range(many)]}


@pytest.mark.parametrize(
    "value",
    [{"trajectory": conversation()}, {"final_answer": "a word and another one, " * (SIZE // 24)}],
    ids=["of many messages", "of one text"],
)
def test_an_import_takes_a_small_multiple_of_its_largest_value(tmp_path, value):
    assert taken(tmp_path, {"task_id": "a", "correct": True, **value}) < MOST * SIZE
