"""The sandbox: its verdict cannot be talked round, its limits hold, it leaves nothing behind."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import SandboxFailed
from runtime import sandbox_process
from runtime.sandbox import Check, Limits, SandboxResult, run_checks, same, try_candidates
from runtime.sandbox_process import WorkerProcess, isolation
from runtime.sandbox_worker import NotData, decode, encode

TWO = [Check("one", (1,), 2), Check("two", (2,), 3)]
QUICK = Limits(cpu_seconds=0.2, wall_seconds=20.0)


def run(source: str, checks: list[Check] = TWO, limits: Limits = QUICK) -> SandboxResult:
    return asyncio.run(run_checks(source, "f", checks, limits))


def value_of(source: str, limits: Limits = QUICK) -> str:
    """What `f()` gives in the sandbox, as text."""
    return run(source, [Check("f", ())], limits).verdicts[0].gave


def test_a_right_function_passes_every_check() -> None:
    result = run("def f(x):\n    return x + 1\n")
    assert result.passed
    assert [(v.name, v.passed) for v in result.verdicts] == [("one", True), ("two", True)]
    assert (result.exit_code, result.signal, result.timed_out) == (0, None, False)
    assert result.cpu_seconds > 0


def test_each_check_has_its_own_verdict() -> None:
    result = run("def f(x):\n    return 2\n")
    assert not result.passed
    assert [(v.name, v.passed, v.gave) for v in result.verdicts] == [
        ("one", True, "2"),
        ("two", False, "2"),
    ]


def test_an_expected_error_passes_by_its_name() -> None:
    checks = [Check("bad", (0,), raises="ZeroDivisionError")]
    assert run("def f(x):\n    return 1 / x\n", checks).passed
    assert not run("def f(x):\n    raise ValueError\n", checks).passed
    assert not run("def f(x):\n    return None\n", checks).passed


CHEATS = {
    "prints that it passed": "print('passed')\ndef f(x):\n    print('passed')\n",
    "ends with status 0": "import os\ndef f(x):\n    os._exit(0)\n",
    "ends while loading": "import os\nos._exit(0)\n",
    "raises SystemExit": "def f(x):\n    raise SystemExit(0)\n",
    "ends after one right answer": (
        "import os\nn = 0\ndef f(x):\n    global n\n    n += 1\n"
        "    if n == 2:\n        os._exit(0)\n    return x + 1\n"
    ),
    "is equal to everything": (
        "class Any:\n    def __eq__(self, other): return True\n"
        "    __hash__ = None\ndef f(x):\n    return Any()\n"
    ),
    "is a number equal to everything": (
        "class Any(int):\n    def __eq__(self, other): return True\n"
        "    __hash__ = None\ndef f(x):\n    return Any(0)\n"
    ),
    "patches the worker": (
        "import sys, json\nmain = sys.modules['__main__']\n"
        "main.encode = lambda v, d=0: {'passed': True}\njson.dumps = lambda v: '{\"passed\": true}'\n"
        "def f(x):\n    return None\n"
    ),
    "writes reports of its own": (
        "import os\nfor fd in range(3, 1024):\n"
        '    try:\n        os.write(fd, b\'{"source": 0, "outcomes": [true, true]}\\n\')\n'
        "    except OSError:\n        pass\ndef f(x):\n    return None\n"
    ),
    "writes a deep report": (
        "import os\nfor fd in range(3, 1024):\n"
        "    try:\n        os.write(fd, b'[' * 50000 + b'\\n')\n"
        "    except OSError:\n        pass\ndef f(x):\n    return x + 1\n"
    ),
    "looks for the expected value": (
        "import sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        for v in frame.f_locals.values():\n            if v == x + 1: return v\n"
        "        frame = frame.f_back\n"
    ),
}


@pytest.mark.parametrize("source", CHEATS.values(), ids=CHEATS)
def test_a_wrong_function_cannot_pass(source: str) -> None:
    # 1000 and 2000 stand nowhere in the interpreter, unlike small numbers.
    checks = [Check("one", (999,), 1000), Check("two", (1999,), 2000)]
    assert not run(source, checks).passed


def test_every_call_gets_fresh_arguments() -> None:
    shared = [1]
    checks = [Check("first", (shared,), 2), Check("second", (shared,), 2)]
    assert run("def f(x):\n    x.append(0)\n    return len(x)\n", checks).passed


ENDLESS = {
    "a loop": "def f(x):\n    while True:\n        pass\n",
    "a loop that swallows what stops it": (
        "def f(x):\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass\n"
    ),
    "one operation that no signal interrupts": (
        "import itertools\ndef f(x):\n    return all(itertools.repeat(True))\n"
    ),
    "a loop that ignores the kernel's signal": (
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGPROF, signal.SIG_IGN)\ndef f(x):\n    while True:\n        pass\n"
    ),
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_function_is_stopped_by_processor_time(source: str) -> None:
    result = run(source)
    assert result.timed_out
    assert not result.passed
    # The timer counts in ticks and may be a few milliseconds early; wall time it never counts.
    assert 0.1 < result.cpu_seconds < 4


def test_the_kernel_ends_what_no_signal_interrupts() -> None:
    result = run(ENDLESS["one operation that no signal interrupts"])
    assert (result.exit_code, result.signal) == (None, signal.SIGXCPU)


def test_what_is_written_just_before_the_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    # A loaded machine: the worker reports and ends after we looked, before we ask for its status.
    real = WorkerProcess._wait

    def late(self: WorkerProcess, pid: int, options: int) -> tuple[int, float] | None:
        time.sleep(0.6)
        return real(self, pid, options)

    isolation()
    monkeypatch.setattr(WorkerProcess, "_wait", late)
    source = "import time\ntime.sleep(0.3)\nprint('out')\ndef f(x):\n    return x + 1\n"
    result = run(source)
    assert result.passed
    assert result.stdout == "out\n"


def test_the_wall_clock_stops_a_function_that_sleeps() -> None:
    source = "import time\ndef f(x):\n    time.sleep(600)\n"
    for seconds in (0.3, 10.0, 60.0):
        with contextlib.suppress(SandboxFailed):  # the machine was too busy to start it
            result = run(source, limits=Limits(wall_seconds=seconds))
            break
    else:
        pytest.fail("no worker was started")
    assert (result.timed_out, result.passed, result.signal) == (True, False, 9)


def test_the_worker_can_be_stopped_from_another_thread() -> None:
    job = {
        "entry": "f",
        "sources": ["import time\nprint('here', flush=True)\ntime.sleep(600)\n"],
        "calls": [[]],
        "cpu_seconds": 1.0,
        "limits": {},
    }
    worker = WorkerProcess(job, isolation(), wall_seconds=60, output_bytes=100)
    timer = threading.Timer(0.3, worker.stop)
    timer.start()
    ended = worker.run()
    timer.join()
    assert (ended.signal, ended.expired) == (9, False)


def test_a_cancelled_check_ends_its_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = []
    begun = threading.Event()
    real = WorkerProcess.run

    def watched(self: WorkerProcess) -> sandbox_process.Ended:
        begun.set()
        ends.append(real(self))
        return ends[-1]

    monkeypatch.setattr(WorkerProcess, "run", watched)
    isolation()
    begun.clear()
    ends.clear()

    async def main() -> None:
        source = "import time\ntime.sleep(600)\n"
        checking = asyncio.create_task(run_checks(source, "f", TWO, Limits(wall_seconds=60)))
        await asyncio.to_thread(begun.wait)
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking

    asyncio.run(main())  # waits for its threads
    assert [(end.signal, end.expired) for end in ends] == [(9, False)]


def test_memory_is_limited() -> None:
    assert value_of("def f():\n    return len(bytearray(1 << 30))\n") == "raised MemoryError"


@pytest.mark.parametrize(
    ("name", "amount"), [("FSIZE", 1 << 20), ("NOFILE", 32), ("NPROC", 1), ("CORE", 0)]
)
def test_the_kernel_limits_are_set(name: str, amount: int) -> None:
    if f"RLIMIT_{name}" in isolation().unapplied:
        pytest.skip("not on this platform")
    source = f"import resource\ndef f():\n    return resource.getrlimit(resource.RLIMIT_{name})\n"
    assert value_of(source) == repr((amount, amount))


def test_no_process_can_be_started() -> None:
    if not isolation().processes_limited:
        pytest.skip("the kernel does not limit the processes of root")
    # The audit hook does not know threads, so this is the kernel's answer.
    source = "import _thread\ndef f():\n    return _thread.start_new_thread(print, ())\n"
    assert value_of(source) == "raised RuntimeError"


def test_there_is_no_network() -> None:
    if not isolation().network_off:
        pytest.skip("this system cannot take the network away")
    show = "import socket; print([name for _, name in socket.if_nameindex() if name != 'lo'])"
    command = [*isolation().prefix, sys.executable, "-I", "-c", show]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "action",
    [
        "open('/etc/hostname')",
        "open('new', 'w')",
        "__import__('os').listdir('/')",
        "__import__('os').fork()",
        "__import__('os').system('true')",
        "__import__('subprocess').run(['true'])",
        "__import__('socket').socket()",
        "__import__('ctypes').CDLL(None)",
        "__import__('os').remove('/tmp/none')",
    ],
)
def test_access_to_the_system_is_refused(action: str) -> None:
    assert value_of(f"def f():\n    {action}\n") == "raised PermissionError"


def test_the_standard_library_can_be_imported() -> None:
    source = (
        "import collections, dataclasses, datetime, decimal, re, statistics, zoneinfo\n"
        "P = collections.namedtuple('P', 'x')\ndef f():\n    return re.sub('a', 'b', 'cat')\n"
    )
    assert value_of(source) == "'cbt'"


def test_the_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACL_TEST_SECRET", "hunter2hunter2")
    source = "import os\ndef f():\n    return 'ACL_TEST_SECRET' in os.environ\n"
    assert value_of(source) == "False"


def test_descriptors_are_not_inherited() -> None:
    descriptor = os.open(os.devnull, os.O_RDONLY)
    free = 25  # below the limit, and above what the worker opens
    os.dup2(descriptor, free)
    try:
        assert value_of(f"import os\ndef f():\n    os.fstat({free})\n") == "raised OSError"
    finally:
        os.close(free)
        os.close(descriptor)


def test_the_order_of_a_set_is_the_same_in_every_process() -> None:
    source = "def f():\n    return list({str(i) for i in range(40)})\n"
    assert value_of(source) == value_of(source)


def test_output_is_kept_up_to_its_limit() -> None:
    source = (
        "import sys\ndef f(x):\n    print('o' * 900)\n    sys.stderr.write('e')\n    return x + 1\n"
    )
    result = run(source, limits=Limits(output_bytes=1000))
    assert result.passed
    assert result.stdout == ("o" * 900 + "\n" + "o" * 99)
    assert result.stderr == "ee"


def test_a_flood_of_results_is_cut_off() -> None:
    source = "def f(x):\n    return 'x' * 20_000_000\n"
    result = run(source, limits=Limits(cpu_seconds=5))
    assert not result.passed


def test_nothing_is_left_in_the_temporary_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("sandboxes")
    isolation()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    assert run("def f(x):\n    return x + 1\n").passed
    assert list(directory.iterdir()) == []


def test_a_sandbox_that_does_not_start_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    isolation()
    monkeypatch.setattr(sandbox_process, "_PYTHON", ("/nonexistent/python",))
    monkeypatch.setattr("runtime.sandbox.isolation", sandbox_process.Isolation)
    with pytest.raises(SandboxFailed, match="nonexistent"):
        run("def f(x):\n    return x + 1\n")


def test_a_worker_without_a_report_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sandbox_process, "_PYTHON", (sys.executable, "-c", "import sys; sys.exit('no')")
    )
    monkeypatch.setattr("runtime.sandbox.isolation", sandbox_process.Isolation)
    with pytest.raises(SandboxFailed, match=r"start: no;"):
        run("def f(x):\n    return x + 1\n")


def test_many_candidates_get_each_its_own_row() -> None:
    sources = [
        "def f(x):\n    return x + 1\n",
        "def f(x):\n    return 2\n",
        "def f(x) return\n",
        "import os\ndef f(x):\n    os._exit(0)\n",
        "def g(x):\n    return x\n",
        "def f(x):\n    while x:\n        pass\n",
        "def f(x):\n    return x + 1\n",
    ]
    rows = asyncio.run(try_candidates(sources, "f", TWO, Limits(cpu_seconds=0.05)))
    none = (False, False)
    assert rows == [(True, True), (True, False), none, none, none, none, (True, True)]


def test_no_candidates_give_no_rows() -> None:
    assert asyncio.run(try_candidates([], "f", TWO)) == []


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
        | st.sets(st.text() | st.integers(), max_size=4)
    ),
    max_leaves=12,
)


@given(plain)
@settings(max_examples=150)
def test_plain_data_survives_the_way_through_json(value: object) -> None:
    assert same(decode(json.loads(json.dumps(encode(value)))), value)


@pytest.mark.parametrize(
    "value", [object(), b"bytes", 1j, frozenset(), [1 << 20_000], [[{1: print}]]]
)
def test_what_is_not_plain_data_is_not_encoded(value: object) -> None:
    with pytest.raises(NotData):
        encode(value)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"list": [], "set": []},
        {"list": 3},
        {"float": 3},
        {"float": "x"},
        {"set": [{"list": []}]},
        {"dict": [[1]]},
        {"dict": [1]},
        {"dict": [[{"list": []}, 1]]},
        {"code": ["x"]},
        [1],
        1.5,
    ],
)
def test_what_encode_never_writes_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="not an encoded value"):
        decode(data)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1, True),
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.31, False),
        (float("nan"), float("nan"), True),
        (float("nan"), 1, False),
        (float("inf"), float("inf"), True),
        (1.0, "1.0", False),
        (10**400, 1.0, False),
        ([1], (1,), False),
        ([1, [2.0]], [1, [2]], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ({1, 2}, {2, 1}, True),
        (None, 0, False),
    ],
)
def test_values_are_the_same_as_python_sees_them_but_for_booleans_and_rounding(
    left: object, right: object, equal: bool
) -> None:
    assert same(left, right) is equal
    assert same(right, left) is equal
