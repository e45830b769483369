"""The tasks of acl-repair as stored, and the check that they are the ones that were generated.

`tasks.jsonl` holds one task a line, `tasks.jsonl.sha256` the digest of that file as sha256sum
writes it.  Each line's `checksum` is the SHA-256 of the rest of its object as JSON with sorted keys
and no spaces.
"""

import ast
import functools
import hashlib
import json
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ledger.errors import IntegrityError
from runtime.sandbox import Check

_FILE = "tasks.jsonl"


class Case(BaseModel):
    """One assertion as text: `call` gives the literal `expected`, or raises the error so named."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    call: str
    expected: str | None = None
    raises: str | None = None

    def check(self) -> Check:
        """Give the assertion as data; its name is the call."""
        call = ast.parse(self.call, mode="eval").body
        assert isinstance(call, ast.Call)
        args = tuple(ast.literal_eval(arg) for arg in call.args)
        expected = None if self.expected is None else ast.literal_eval(self.expected)
        return Check(self.call, args, expected, self.raises)


class Metadata(BaseModel):
    """What reports group tasks by; `tags` are language, domain, difficulty, bug type."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    difficulty: Literal["easy", "medium", "hard"]
    domain: str
    bug_type: str
    bugs: int
    tags: tuple[str, ...]


class RepairTask(BaseModel):
    """One broken function; the agent sees `source` and `examples`, the verifier has `hidden`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    task_id: str
    category: str
    entry: str
    source: str
    examples: tuple[Case, ...]
    hidden: tuple[Case, ...]
    solution: str
    fail_to_pass: tuple[str, ...]  # hidden calls that `source` fails
    metadata: Metadata
    checksum: str

    def digest(self) -> str:
        """Give the SHA-256 hex of everything but `checksum`."""
        return hashlib.sha256(_compact(self.model_dump(exclude={"checksum"}))).hexdigest()


def write_tasks(tasks: list[RepairTask]) -> tuple[bytes, bytes]:
    """Give the bytes of the task file and of its digest file."""
    data = b"".join(_compact(task.model_dump()) + b"\n" for task in tasks)
    return data, f"{hashlib.sha256(data).hexdigest()}  {_FILE}\n".encode()


def read_tasks(data: bytes, digest: bytes) -> tuple[RepairTask, ...]:
    """Read a task file; IntegrityError when it, or one of its tasks, is not what was generated."""
    if f"{hashlib.sha256(data).hexdigest()}  {_FILE}\n".encode() != digest:
        raise IntegrityError(f"{_FILE} of acl-repair is not the file that was released")
    tasks = tuple(RepairTask.model_validate_json(line) for line in data.splitlines())
    for task in tasks:
        if task.digest() != task.checksum:
            raise IntegrityError(f"task {task.task_id} of acl-repair does not match its checksum")
    return tasks


@functools.cache
def shipped_tasks() -> tuple[RepairTask, ...]:
    """Give the 60 tasks of this release, domains taking turns; IntegrityError as `read_tasks`."""
    here = files(__package__)
    return read_tasks((here / _FILE).read_bytes(), (here / f"{_FILE}.sha256").read_bytes())


def _compact(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
