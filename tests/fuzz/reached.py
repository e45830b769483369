"""Which lines of the product have run: what an input reaches first makes it worth keeping.

From Python 3.12 on `sys.monitoring` tells of each line once and costs nothing afterwards. Before,
a function is traced only while it has lines that never ran, and the less often the longer nothing
new was seen in it: each line that is traced costs more than the line.
"""

import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_PRODUCT = tuple(f"{ROOT / name}/" for name in ("acl", "exporters", "ledger", "runtime"))
_TOOL = 3
# Calls of a function that are all traced after it showed something new; later one of so many is.
_ALWAYS = 300
_SELDOM = 20


def product_file(name: str) -> bool:
    """Tell whether a source file is one of the product's."""
    return name.startswith(_PRODUCT)


class Reached:
    """Lines that ran between `start` and `stop`; `lines` only grows."""

    def __init__(self) -> None:
        self.lines = 0
        self._unseen: dict[CodeType, set[int]] = {}
        self._watches = self._installed = False
        self._calls: dict[CodeType, int] = {}

    def start(self) -> None:
        """Begin to watch."""
        self._watches = True
        if sys.version_info < (3, 12):
            threading.settrace(self._called)
            sys.settrace(self._called)
        elif not self._installed:
            # For good: to take it away and put it back costs more than everything else.
            self._installed = True
            monitoring = sys.monitoring
            monitoring.use_tool_id(_TOOL, "fuzz")
            monitoring.register_callback(_TOOL, monitoring.events.LINE, self._line_monitored)
            monitoring.set_events(_TOOL, monitoring.events.LINE)

    def stop(self) -> None:
        """Watch no more."""
        self._watches = False
        if sys.version_info < (3, 12):
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    def _line_monitored(self, code: CodeType, line: int) -> object:
        if self._watches:
            self._see(code, line)
        elif product_file(code.co_filename):
            return None
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        unseen = self._unseen.get(code)
        if unseen is None:
            unseen = self._unseen[code] = _lines(code)
        if not unseen:
            return None
        calls = self._calls[code] = self._calls.get(code, 0) + 1
        return self._line if calls < _ALWAYS or not calls % _SELDOM else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line":
            self._see(frame.f_code, frame.f_lineno)
        return self._line

    def _see(self, code: CodeType, line: int) -> None:
        unseen = self._unseen.get(code)
        if unseen is None:
            unseen = self._unseen[code] = _lines(code)
        if line in unseen:
            unseen.discard(line)
            self._calls[code] = 0
            self.lines += 1


def _lines(code: CodeType) -> set[int]:
    if not product_file(code.co_filename):
        return set()
    return {line for _, _, line in code.co_lines() if line is not None}
