"""How many bytes a process hands over to be written, as the kernel counts them (Linux)."""

from pathlib import Path
from typing import Final

_COUNTERS: Final = Path("/proc/self/io")


def written() -> int:
    """Bytes that this process passed to write calls until now, of all files and pipes.

    Every page that SQLite writes counts, each time; what is written through a shared map of memory
    (the -shm of a WAL) does not. 0 where the kernel does not tell.
    """
    if not _COUNTERS.exists():
        return 0
    told = dict(line.split(": ") for line in _COUNTERS.read_text(encoding="ascii").splitlines())
    return int(told["wchar"])
