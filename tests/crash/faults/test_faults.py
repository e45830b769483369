"""Whatever a system call answers: what was acknowledged stays, and the next program goes on."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.faults.programs import PROGRAMS
from tests.crash.faults.sweep import EVERY
from tests.crash.faults.tracing import may_trace

ROOT = Path(__file__).resolve().parents[3]
SOURCE = Path(__file__).with_name("torn.c")
# Whole runs write what the other programs write one by one: of their faults each sixth is met.
STRIDES = {"run": 6, "reuse": 6}
# Large ones are swept in several parts, so that both processors have something to do.
PARTS = {"run": 1, "reuse": 1, "record": 2, "registry": 2}
EVERY_CALL = bool(os.environ.get(EVERY))


def parts(program: str) -> list[str]:
    """Which faults of a program are met, in how many sweeps: `I/N` for each N-th one."""
    if EVERY_CALL:
        return [f"{part}/8" for part in range(8)]
    stride = STRIDES.get(program, PARTS.get(program, 1))
    return [f"{part}/{stride}" for part in range(PARTS.get(program, 1))]


IN_PARTS = [
    pytest.param(name, part, id=f"{name} {part}".replace(" ", "-"))
    for name in PROGRAMS
    for part in parts(name)
]

needs_strace = pytest.mark.skipif(not may_trace(), reason="strace is not there, or may not trace")


def sweep(place: Path, *words: str, **environment: str) -> list[dict[str, Any]]:
    """Have programs meet faults; return what became of each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.faults.sweep", place, *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def may_miss(one: dict[str, Any]) -> bool:
    """Threads come in another order each time; the files of an export are synced by several."""
    is_export = "export" in one["program"]
    return PROGRAMS[one["program"]].threads or (is_export and one["call"].startswith("fsync("))


def check(met: list[dict[str, Any]]) -> int:
    """Nothing is wrong after any fault, and the faults were met; return how many were."""
    wrong = [one for one in met if one["found"] is not None]
    assert not wrong, json.dumps(wrong[:5], indent=1)
    missed = [one for one in met if not one["hit"] and not may_miss(one)]
    assert not missed, json.dumps(missed[:5], indent=1)
    hits = sum(one["hit"] for one in met)
    # What may miss does so now and then, not as a rule.
    assert 2 * hits > len(met)
    return hits


@pytest.fixture(scope="session")
def torn_writes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that lets writes stop half way."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no compiler for the library that is preloaded")
    library = tmp_path_factory.mktemp("torn") / "torn.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"],
        check=True,
        capture_output=True,
    )
    return str(library)


@pytest.mark.crash
@needs_strace
@pytest.mark.parametrize(("program", "part"), IN_PARTS)
def test_a_fault_at_each_system_call_leaves_what_was_acknowledged_and_a_way_on(
    tmp_path: Path, record_property: Callable[[str, object], None], program: str, part: str
) -> None:
    met = sweep(tmp_path, program, "--part", part)
    record_property("faults of system calls", check(met))


@pytest.mark.crash
@pytest.mark.parametrize("program", [name for name in PROGRAMS if not PROGRAMS[name].threads])
def test_a_write_that_stops_half_way_leaves_what_was_acknowledged_and_a_way_on(
    tmp_path: Path,
    torn_writes: str,
    record_property: Callable[[str, object], None],
    program: str,
) -> None:
    met = sweep(tmp_path, program, "--torn", LD_PRELOAD=torn_writes)
    assert len(met) >= 4
    record_property("writes that stopped half way", check(met))


@needs_strace
def test_some_faults_at_some_system_calls_of_each_kind_of_program(tmp_path: Path) -> None:
    programs = ("append", "signed checkpoint", "erase", "export details over", "archive")
    met = sweep(tmp_path, *programs, "--part", "7/89")
    assert {one["program"] for one in met} == set(programs)
    check(met)


def test_some_writes_that_stop_half_way(tmp_path: Path, torn_writes: str) -> None:
    met = sweep(tmp_path, "append", "seal", "--torn", "--part", "3/31", LD_PRELOAD=torn_writes)
    assert {one["program"] for one in met} == {"append", "seal"}
    check(met)
