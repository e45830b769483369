"""The most memory that a process of a test has held."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak() -> int:
    """Bytes that this process held at most so far.

    Linux counts for `ru_maxrss` what the parent held before it started another program, so the
    kernel's own high-water mark is asked where there is one.
    """
    if _STATUS.exists():
        (line,) = (one for one in _STATUS.read_text().splitlines() if one.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
