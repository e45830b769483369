"""Faults at system calls by `strace`: which calls of a process touch a directory, and one that fails.

`strace` is attached to a process that waits. A first one lists the calls that reach a file below
the directory; then each of them in turn is refused, or is the last thing that the process does.
Calls are counted for each thread, among those of one name that touch these files.
"""

import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# Calls that change what is on disk: a kill between two of them is a kill at the later one.
CHANGES = (
    *("write", "pwrite64", "pwritev", "writev", "sendfile", "copy_file_range"),
    *("fsync", "fdatasync", "ftruncate", "fallocate"),
    *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat"),
    *("mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "utimensat"),
)
READS = (
    *("read", "pread64", "readlink", "getdents64", "mmap", "flock", "fcntl"),
    *("stat", "lstat", "fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"),
)
OPENS = ("open", "openat")
CALLS = (*CHANGES, *READS, *OPENS)

# Calls that may meet a disk without room.
_NEEDS_ROOM = frozenset(
    {"write", "pwrite64", "pwritev", "writev", "sendfile", "copy_file_range", "fsync", "fdatasync"}
    | {"fallocate", "ftruncate", "rename", "renameat", "link", "linkat", "mkdir", "mkdirat"}
)
_LINE = re.compile(r"(\d+) +(\w+)\((.*)")
_DESCRIPTOR = re.compile(r"<(/[^<>]*)>")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Call:
    """The `number`-th call of a name that a thread makes below the directory; `text` shows it."""

    name: str
    number: int
    text: str

    def faults(self) -> list[str]:
        """What can be done to it, as strace says it."""
        if self.name in OPENS:
            found = ["error=EIO", "error=EMFILE"]
            if "O_CREAT" in self.text:
                found += ["signal=SIGKILL", "error=ENOSPC"]
            return found
        match self.name:
            case "mmap":
                return ["error=ENOMEM"]
            case "flock" | "fcntl":
                return ["error=ENOLCK"]
        found = ["error=EIO"]
        if self.name in CHANGES:
            found.append("signal=SIGKILL")
        if self.name in _NEEDS_ROOM:
            found.append("error=ENOSPC")
        return found


def may_trace() -> bool:
    """Whether strace is there, and may attach itself to a process of ours."""
    if shutil.which("strace") is None:
        return False
    done = subprocess.run(["strace", "-o", os.devnull, "true"], check=False, capture_output=True)
    return done.returncode == 0


class Tracer:
    """A strace that is attached to a process; it ends with it."""

    def __init__(self, pid: int, log: Path, *options: str) -> None:
        self._log = log
        self._strace = subprocess.Popen(
            ["strace", "-f", "-y", "-s", "32", "-p", str(pid), "-o", str(log), *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._strace.stderr is not None
        told = self._strace.stderr.readline()
        assert "attached" in told, told

    def lines(self) -> list[str]:
        """What it saw, once the process has ended."""
        self._strace.communicate()
        return self._log.read_text(errors="replace").splitlines()


def watching() -> list[str]:
    """Options of a strace that sees all calls with which files are reached."""
    return ["-e", "trace=" + ",".join(f"?{name}" for name in CALLS)]


def paths_of(lines: list[str], directory: Path) -> list[str]:
    """All paths below a directory that calls name, by themselves or by a descriptor."""
    prefix = str(directory)
    found = set()
    for line in lines:
        for path in (*_DESCRIPTOR.findall(line), *_QUOTED.findall(line)):
            if path == prefix or path.startswith(prefix + "/"):
                found.add(path)
    return sorted(found)


def among(paths: list[str]) -> list[str]:
    """Options of a strace that sees only calls that touch these paths."""
    return [word for path in paths for word in ("-P", path)]


def calls_of(lines: list[str]) -> list[Call]:
    """The calls in a log, each once for all threads; those that only end there left out."""
    counts: Counter[tuple[str, str]] = Counter()
    calls: dict[tuple[str, int], Call] = {}
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        thread, name, text = found.groups()
        counts[thread, name] += 1
        number = counts[thread, name]
        calls.setdefault((name, number), Call(name, number, f"{name}({text}"))
    return list(calls.values())


def thinned(calls: list[Call]) -> list[Call]:
    """Leave out most looks that are alike: of those at one file the first stays, then each tenth."""
    looks: Counter[tuple[str, str]] = Counter()
    kept = []
    for call in calls:
        paths = _DESCRIPTOR.findall(call.text) + _QUOTED.findall(call.text)
        look = call.name, str(paths[-1:])
        looks[look] += 1
        if call.name not in READS or looks[look] == 1 or looks[look] % 10 == 0:
            kept.append(call)
    return kept


def injection(call: Call, fault: str) -> list[str]:
    """Options of a strace that does `fault` to one call."""
    return [
        *("-e", f"trace={call.name}"),
        *("-e", f"inject={call.name}:{fault}:when={call.number}"),
    ]


def was_hit(lines: list[str], fault: str) -> bool:
    """Whether the fault came to be."""
    return any(
        "killed by SIGKILL" in line if "SIG" in fault else "(INJECTED)" in line for line in lines
    )
