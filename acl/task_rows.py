"""Which events are of which task, remembered for large ledgers that do not change.

A ledger has no index by task, so the first look at one task reads everything. What that found is
kept in the user's cache directory: numbers of events, and nothing that they say. It is used only
while the ledger's files are to the file system what they were then, and only as this user wrote it
(HMAC-SHA256 with a key among the user's state); whatever else stands there is as good as nothing,
and may be removed at any time. The file: a line of JSON about the ledger, a line with its MAC,
entries in the order of their digests, then the numbers.
"""

import hashlib
import hmac
import json
import os
import struct
import tempfile
import time
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import platformdirs

from ledger import LedgerView, Recorded, RunState
from ledger.events import TasksSelected
from ledger.memory import state_directory

CACHE_DIR: Final = "ACL_CACHE_DIR"
LEAST_EVENTS: Final = 20_000
"""Smaller ledgers are read as quickly as it takes to remember anything of them."""
_MOST_EVENTS: Final = 20_000_000
_MOST_FILES: Final = 8
_FORMAT: Final = 1
# What was written a moment ago may be written again without looking newer.
_SETTLED_NS: Final = 2_000_000_000
_MAC_BYTES: Final = 16
_KEY_BYTES: Final = 32
_LINE: Final = 64 * 1024
# Digest of the task, offset and count of its numbers, their MAC.
_ENTRY: Final = struct.Struct(">16sQI16s")
_NUMBER: Final = 8
_SUFFIXES: Final = ("", "-wal", "-journal")


@dataclass(frozen=True, slots=True)
class Rows:
    """The place of a task in the run, where it was selected (event, position), and its events."""

    index: int
    selected: tuple[int, int] | None
    rows: tuple[int, ...]

    def numbers(self) -> bytes:
        """All of it as numbers of eight bytes."""
        event, position = self.selected or (-1, 0)
        numbers = (self.index, event + 1, position, *self.rows)
        return struct.pack(f">{len(numbers)}Q", *numbers)

    @classmethod
    def of(cls, data: bytes) -> "Rows":
        """Read what `numbers` wrote."""
        index, event, position, *rows = struct.unpack(f">{len(data) // _NUMBER}Q", data)
        return cls(index, (event - 1, position) if event else None, tuple(rows))


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is remembered for one task: its events, those of the run as a whole, and the tree."""

    task: Rows
    run: Rows
    size: int
    nodes: tuple[bytes, ...]
    last_ns: int


class Watch:
    """Sees the events of a ledger go by, and remembers which are of which task."""

    def __init__(self, view: LedgerView) -> None:
        self._view = view
        self._stamp = _stamp(view.path)
        self._run = array("Q")
        self._rows: dict[str, array[int]] = {}
        self._selected: dict[str, tuple[int, int]] = {}

    def over(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        """Pass the events on."""
        for recorded in events:
            seq, task = recorded.header.seq, recorded.header.task
            if task is not None:
                self._rows.setdefault(task, array("Q")).append(seq)
            elif isinstance(recorded.event, TasksSelected):
                for position, ref in enumerate(recorded.event.tasks):
                    self._selected[ref.task_id] = seq, position
            else:
                self._run.append(seq)
            yield recorded

    def keep(self, state: RunState) -> None:
        """Remember what was seen, if it is worth it and the ledger is at rest; `state` is of it."""
        if not LEAST_EVENTS <= state.size <= _MOST_EVENTS or not self._is_at_rest():
            return
        about = {
            "format": _FORMAT,
            "stamp": self._stamp,
            "size": state.size,
            "nodes": [node.hex() for node in state.frontier.nodes],
            "last_ns": state.last_ns,
            "entries": len(state.tasks) + 1,
        }
        with suppress(OSError):
            _write(_file(self._view.path), about, self._all(state))

    def _is_at_rest(self) -> bool:
        now = _stamp(self._view.path)
        newest = max((max(one[-2:]) for one in now if one is not None), default=0)
        is_settled = newest < time.time_ns() - _SETTLED_NS
        return now == self._stamp and is_settled and self._view.writer() is None

    def _all(self, state: RunState) -> Iterator[tuple[bytes, bytes]]:
        yield _digest(None), Rows(0, None, tuple(self._run)).numbers()
        for task in state.tasks.values():
            seen = Rows(task.index, self._selected.get(task.id), tuple(self._rows.get(task.id, ())))
            yield _digest(task.id), seen.numbers()


def look_up(view: LedgerView, task: str) -> Remembered | None:
    """What is remembered for a task of this ledger as it is now, or None."""
    try:
        with _file(view.path).open("rb") as file:
            return _look_up(file, _key(), _stamp(view.path), task)
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None


def _look_up(file: BinaryIO, key: bytes, stamp: object, task: str) -> Remembered | None:
    line, told = file.readline(_LINE), file.readline(_LINE)
    mac = _mac(key, line)
    if not hmac.compare_digest(mac.hex().encode() + b"\n", told):
        return None
    about = json.loads(line)
    if about["format"] != _FORMAT or about["stamp"] != stamp:
        return None
    entries = _Entries(file, key, mac, about["entries"])
    of_run, of_task = entries.find(_digest(None)), entries.find(_digest(task))
    if of_run is None or of_task is None:
        return None
    nodes = tuple(bytes.fromhex(node) for node in about["nodes"])
    return Remembered(of_task, of_run, about["size"], nodes, about["last_ns"])


class _Entries:
    """The entries of a file, found by halves; each is checked with what it leads to."""

    def __init__(self, file: BinaryIO, key: bytes, mac: bytes, count: int) -> None:
        self._file, self._key, self._mac, self._count = file, key, mac, count
        self._start = file.tell()

    def find(self, digest: bytes) -> Rows | None:
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            found, offset, count, mac = self._entry(middle)
            if found == digest:
                self._file.seek(self._start + self._count * _ENTRY.size + offset)
                data = self._file.read(count * _NUMBER)
                is_ours = hmac.compare_digest(_mac(self._key, self._mac + digest + data), mac)
                return Rows.of(data) if is_ours else None
            low, high = (middle + 1, high) if found < digest else (low, middle)
        return None

    def _entry(self, number: int) -> tuple[bytes, int, int, bytes]:
        self._file.seek(self._start + number * _ENTRY.size)
        digest, offset, count, mac = _ENTRY.unpack(self._file.read(_ENTRY.size))
        return digest, offset, count, mac


def _write(path: Path, about: dict[str, Any], found: Iterable[tuple[bytes, bytes]]) -> None:
    key = _key()
    line = json.dumps(about).encode() + b"\n"
    mac = _mac(key, line)
    entries, numbers, offset = [], [], 0
    for digest, data in sorted(found):
        own = _mac(key, mac + digest + data)
        entries.append(_ENTRY.pack(digest, offset, len(data) // _NUMBER, own))
        numbers.append(data)
        offset += len(data)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
            file.writelines([line, mac.hex().encode() + b"\n", *entries, *numbers])
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _forget_oldest(path.parent)


def _forget_oldest(directory: Path) -> None:
    files = sorted(directory.iterdir(), key=lambda one: one.lstat().st_mtime_ns, reverse=True)
    for old in files[_MOST_FILES:]:
        old.unlink()


def _file(ledger: Path) -> Path:
    named = os.environ.get(CACHE_DIR)
    cache = Path(named) if named else Path(platformdirs.user_cache_path("acl"))
    name = hashlib.sha256(os.fsencode(ledger)).hexdigest()[:32]
    return cache / "tasks" / name


def _key() -> bytes:
    """The key of this user, made at the first need."""
    path = state_directory() / "tasks.key"
    with suppress(FileNotFoundError):
        if len(key := path.read_bytes()) == _KEY_BYTES:
            return key
        raise OSError(f"{path} holds no key")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(os.urandom(_KEY_BYTES))
    # The first of several processes makes it.
    with suppress(FileExistsError):
        os.link(temporary, path)
    Path(temporary).unlink()
    return path.read_bytes()


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")[:_MAC_BYTES]


def _digest(task: str | None) -> bytes:
    named = b"run" if task is None else b"task:" + task.encode("utf-8", "surrogatepass")
    return hashlib.sha256(named).digest()[:16]


def _stamp(ledger: Path) -> list[list[int] | None]:
    """What the file system says of the ledger's files; a -wal that holds nothing is none."""
    return [_stat(ledger.with_name(ledger.name + suffix)) for suffix in _SUFFIXES]


def _stat(path: Path) -> list[int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not found.st_size:
        return None
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
