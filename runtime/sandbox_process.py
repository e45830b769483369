"""Run one worker process of the sandbox: start it fenced in, collect its output, end it for sure.

What fences it in, from the outside: a session and process group of its own, an empty working
directory, no environment, no inherited descriptors, no network (`unshare`, where the system has
it), an unprivileged user when we are root (`setpriv`, likewise).  From the inside
(`runtime.sandbox_worker`): limits on processor time, memory, processes, files and open descriptors,
and an audit hook.
"""

import contextlib
import functools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

_WORKER = Path(__file__).with_name("sandbox_worker.py")
_NOBODY = 65534
_REPORT_BYTES = 8 << 20
_TICK_SECONDS = 0.1
# -I without its -E: the environment is ours and holds the hash seed alone.  With a seed of its own
# per process, a candidate that iterates over a set of text could pass once and fail the next time.
_PYTHON = (sys.executable, "-s", "-P", "-S", "-B")
_ENVIRONMENT = {"PYTHONHASHSEED": "0"}


@dataclass(frozen=True, slots=True)
class Isolation:
    """How far this system lets a candidate be fenced in; `isolation` finds it out."""

    prefix: tuple[str, ...] = ()  # command that starts the worker behind the fence
    network_off: bool = False  # no network interface in there
    user: int | None = None  # user id that the worker gets, when we are root
    unapplied: tuple[str, ...] = ()  # resource limits that the platform refuses

    @property
    def processes_limited(self) -> bool:
        """The kernel refuses new processes; it does not for root, whatever the limit says."""
        root = os.geteuid() == 0 and self.user is None
        return not root and "RLIMIT_NPROC" not in self.unapplied


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker ended and what it wrote; processor seconds are the kernel's count."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    report: bytes
    cpu_seconds: float
    expired: bool  # the wall clock limit, or the size limit of the report, ended it


class _Stream:
    """What came through one pipe, up to `limit` bytes; the rest is read and dropped."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()
        self.overflow = False

    def take(self, chunk: bytes) -> None:
        room = self.limit - len(self.data)
        self.data += chunk[:room]
        self.overflow = self.overflow or len(chunk) > room


class WorkerProcess:
    """One worker; `run` blocks until it has ended, `stop` may be called from another thread."""

    def __init__(
        self,
        job: Mapping[str, object],
        fence: Isolation,
        *,
        wall_seconds: float,
        output_bytes: int,
    ) -> None:
        self._job = json.dumps(job).encode()
        self._fence = fence
        self._wall_seconds = wall_seconds
        self._out, self._err = _Stream(output_bytes), _Stream(output_bytes)
        self._report = _Stream(_REPORT_BYTES)
        self._guard = threading.Lock()
        self._group: int | None = None  # set while the group leader is not reaped
        self._stopped = False

    def stop(self) -> None:
        """Kill the whole process group; a worker not yet started ends as soon as it starts."""
        with self._guard:
            self._stopped = True
            self._kill()

    def run(self) -> Ended:
        """Start the worker, wait for its end, leave no process and no file behind."""
        deadline = time.monotonic() + self._wall_seconds
        with tempfile.TemporaryDirectory(prefix="acl-sandbox-") as directory:
            if self._fence.user is not None:
                os.chown(directory, self._fence.user, -1)
            report_end, worker_end = os.pipe()
            with tempfile.TemporaryFile() as job, os.fdopen(report_end, "rb", 0) as report:
                job.write(self._job)
                job.seek(0)
                try:
                    process = subprocess.Popen(  # noqa: S603 (no shell, our own command)
                        [*self._fence.prefix, *_PYTHON, str(_WORKER), str(worker_end)],
                        stdin=job,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        cwd=directory,
                        env=_ENVIRONMENT,
                        pass_fds=(worker_end,),
                        start_new_session=True,
                    )
                finally:
                    os.close(worker_end)
                return self._attend(process, report.fileno(), deadline)

    def _attend(self, process: subprocess.Popen[bytes], report: int, deadline: float) -> Ended:
        with self._guard:
            self._group = process.pid
            if self._stopped:
                self._kill()
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout as out, process.stderr as err:
            streams = {out.fileno(): self._out, err.fileno(): self._err, report: self._report}
            status = self._collect(streams, process.pid, deadline)
        expired = status is None
        if status is None:
            self.stop()
            status = self._wait(process.pid, 0)
        assert status is not None  # a wait without WNOHANG has one
        code, cpu_seconds = status
        process.returncode = code
        return Ended(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            stdout=bytes(self._out.data),
            stderr=bytes(self._err.data),
            report=bytes(self._report.data),
            cpu_seconds=cpu_seconds,
            expired=expired,
        )

    def _collect(
        self, streams: dict[int, _Stream], pid: int, deadline: float
    ) -> tuple[int, float] | None:
        """Read until the worker has ended; None when a limit was reached first."""
        pause = 0.001
        with selectors.DefaultSelector() as selector:
            for descriptor in streams:
                selector.register(descriptor, selectors.EVENT_READ)
            while time.monotonic() < deadline and not self._report.overflow:
                read = _read_some(selector, streams, _TICK_SECONDS)
                if not read or not selector.get_map():
                    status = self._wait(pid, os.WNOHANG)
                    if status is not None:
                        # It may have written between the last look and its end.
                        while _read_some(selector, streams, 0):
                            pass
                        return status
                if not selector.get_map():
                    time.sleep(pause)
                    pause = min(2 * pause, _TICK_SECONDS)
        return None

    def _wait(self, pid: int, options: int) -> tuple[int, float] | None:
        """Reap the group leader, then kill what is left of its group; None while it runs."""
        found, status, usage = os.wait4(pid, options)
        if found == 0:
            return None
        with self._guard:
            self._kill()
            self._group = None
        return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime

    def _kill(self) -> None:
        if self._group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGKILL)


def _read_some(
    selector: selectors.BaseSelector, streams: dict[int, _Stream], timeout: float
) -> bool:
    """Take in what waits in the pipes, and give up those at their end; False if nothing waited."""
    ready = selector.select(timeout) if selector.get_map() else []
    for key, _ in ready:
        chunk = os.read(key.fd, 1 << 16)
        if chunk:
            streams[key.fd].take(chunk)
        else:
            selector.unregister(key.fd)
    return bool(ready)


@functools.cache
def isolation() -> Isolation:
    """Find out, once per process, the strongest fence that a worker can run in here.

    A worker must still work in it: an interpreter below a private home directory, for example,
    can be read by another user only with the capability to read everything.
    """
    for network in _without_network():
        for user in _unprivileged():
            fence = Isolation(network + user, bool(network), _NOBODY if user else None)
            unapplied = _try(fence)
            if unapplied is not None:
                return replace(fence, unapplied=unapplied)
    return Isolation()


def _without_network() -> list[tuple[str, ...]]:
    unshare = shutil.which("unshare")
    if unshare is None:
        return [()]
    return [(unshare, "--net", "--"), (unshare, "--user", "--net", "--"), ()]


def _unprivileged() -> list[tuple[str, ...]]:
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        return [()]
    user = (f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--no-new-privs")
    read = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search")
    return [(setpriv, *user, "--"), (setpriv, *user, *read, "--"), ()]


def _try(fence: Isolation) -> tuple[str, ...] | None:
    """Run a small job inside `fence`; the names of refused limits, or None when it failed."""
    job = {
        "entry": "which",
        "sources": ["import os, sys\ndef which():\n    return [sys.version, os.__file__]\n"],
        "calls": [[]],
        "cpu_seconds": 5.0,
        "limits": {"RLIMIT_NPROC": 1, "RLIMIT_AS": 512 << 20, "RLIMIT_CORE": 0},
    }
    try:
        ended = WorkerProcess(job, fence, wall_seconds=60, output_bytes=1024).run()
    except OSError:
        return None
    # A user who cannot read our libpython may get another one from the linker, silently.
    here = {"value": {"list": [sys.version, os.__file__]}}
    lines = [json.loads(line) for line in ended.report.splitlines()]
    if len(lines) != 2 or lines[1]["outcomes"] != [here]:
        return None
    return tuple(lines[0]["unapplied"])
