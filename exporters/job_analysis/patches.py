"""The agent's changes beside the gold patch of a task, where its metadata has one.

`patch` (or `gold_patch`) in the metadata is a unified diff, `fail_to_pass` the tests that it mends.
The names of the features are those of the upstream analysis; what they mean here is told with each.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from exporters.job_analysis.actions import Tool
from exporters.job_analysis.toolkinds import edited_path, texts

Feature = bool | int | float | None

NAMES: Final = (
    "C1_file_read",
    "C2_func_read",
    "C3_file_alignment",
    "C4_func_alignment",
    "C5_test_executed",
    "diff_hunk_overlap",
    "diff_line_delta",
    "diff_file_delta",
)

_HUNK: Final = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@(.*)$")
_FUNCTION: Final = re.compile(r"(?:def|class|function|func|fn)\s+([A-Za-z_][A-Za-z0-9_]*)")
_RANGES: Final = frozenset({"view_range", "start_line", "end_line", "line", "lines", "offset"})
_SUFFIXES: Final = (".patch", ".diff")


@dataclass(frozen=True, slots=True)
class Hunk:
    """The lines of the old file that a hunk covers: `start` to `stop`, the latter left out."""

    file: str
    start: int
    stop: int


@dataclass(slots=True)
class Patch:
    """A unified diff: its files in order, its hunks, and how many lines it adds and removes."""

    files: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    lines: int = 0


def parse_patch(text: object) -> Patch | None:
    """Read a unified diff; None for what is none."""
    if not isinstance(text, str) or "@@ -" not in text:
        return None
    found = Patch()
    file, old_left, new_left = "", 0, 0
    for line in text.splitlines():
        if old_left > 0 or new_left > 0:
            found.lines += line[:1] in ("+", "-")
            old_left -= line[:1] != "+" and line[:1] != "\\"
            new_left -= line[:1] != "-" and line[:1] != "\\"
            found.functions.update(_FUNCTION.findall(line) if line[:1] in ("+", "-") else ())
        elif line.startswith(("--- ", "+++ ")):
            file = _path(line[4:]) or file
            if line.startswith("+++ ") and file and file not in found.files:
                found.files.append(file)
        elif match := _HUNK.match(line):
            start, size = int(match[1]), int(match[2] or 1)
            old_left, new_left = size, _new_size(line)
            found.hunks.append(Hunk(file, start, start + max(size, 1)))
            found.functions.update(_FUNCTION.findall(match[3]))
    return found if found.hunks and found.files else None


def gold_patch(metadata: Mapping[str, Any]) -> Patch | None:
    """The gold patch of a task; None where its metadata has none."""
    return parse_patch(metadata.get("patch")) or parse_patch(metadata.get("gold_patch"))


def fail_to_pass(metadata: Mapping[str, Any]) -> int:
    """How many tests the gold patch mends; they may stand as a list or as the text of one."""
    given = metadata.get("fail_to_pass", metadata.get("FAIL_TO_PASS"))
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return 0
    return len(given) if isinstance(given, list) else 0


def agent_patch(answer: object, contents: object) -> Patch | None:
    """The patch that an agent left: its answer, or the first collected `.patch` or `.diff`."""
    found = parse_patch(answer)
    if found is None and isinstance(contents, Mapping):
        named = (contents[path] for path in sorted(contents) if path.endswith(_SUFFIXES))
        found = next(filter(None, map(parse_patch, named)), None)
    return found


def patch_features(
    gold: Patch, given: Patch | None, tools: list[Tool], *, tested: bool | None
) -> dict[str, Feature]:
    """Compare what an agent read and changed with the gold patch.

    `C1` a tool was called on a gold file, `C2` on a gold function (by name, or the file as a
    whole); `C3`, `C4` the share of gold files and functions that were changed, `C5` whether tests
    ran; `diff_hunk_overlap` the share of gold hunks that a changed hunk overlaps, the deltas are
    the agent's lines and files less those of the gold patch.
    """
    on_gold = [tool for tool in tools if _touches(tool, gold.files)]
    changed = set(given.files) if given else set(_edited(tools, gold.files))
    found: dict[str, Feature] = dict.fromkeys(NAMES)
    found |= {
        "C1_file_read": bool(on_gold),
        "C2_func_read": any(_reads_function(tool, gold.functions) for tool in on_gold),
        "C3_file_alignment": len(changed.intersection(gold.files)) / len(gold.files),
        "C5_test_executed": tested,
    }
    if given is not None:
        overlapping = sum(
            any(_overlap(ours, theirs) for ours in given.hunks) for theirs in gold.hunks
        )
        found |= {
            "diff_hunk_overlap": overlapping / len(gold.hunks),
            "diff_line_delta": given.lines - gold.lines,
            "diff_file_delta": len(given.files) - len(gold.files),
        }
        if gold.functions:
            shared = gold.functions & given.functions
            found["C4_func_alignment"] = len(shared) / len(gold.functions)
    return found


def _new_size(line: str) -> int:
    match = re.match(r"^@@ -\d+(?:,\d+)? \+\d+(?:,(\d+))? @@", line)
    return int(match[1]) if match and match[1] is not None else 1


def _path(text: str) -> str | None:
    name = text.split("\t", 1)[0].strip().strip('"')
    if name == "/dev/null":
        return None
    return name[2:] if name.startswith(("a/", "b/")) else name


def _touches(tool: Tool, files: list[str]) -> bool:
    said = list(texts(tool.arguments))
    return any(_names(text, file) for text in said for file in files)


def _names(text: str, file: str) -> bool:
    """Whether a text names a file: as a whole word, below any directory."""
    at = text.find(file)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(file) : at + len(file) + 1]
        if not (before.isalnum() or before in ("_", "-")) and not (after.isalnum() or after == "_"):
            return True
        at = text.find(file, at + 1)
    return False


def _reads_function(tool: Tool, functions: set[str]) -> bool:
    ranged = isinstance(tool.arguments, Mapping) and not _RANGES.isdisjoint(tool.arguments)
    if not functions or not ranged:
        return True
    said = " ".join(texts(tool.arguments))
    return any(re.search(rf"\b{re.escape(name)}\b", said) for name in functions)


def _edited(tools: list[Tool], files: list[str]) -> Iterator[str]:
    for tool in tools:
        path = edited_path(tool.name, tool.arguments)
        if path is not None:
            ends = (file for file in files if PurePosixPath(path).match(file))
            yield next(ends, path)


def _overlap(one: Hunk, other: Hunk) -> bool:
    return one.file == other.file and one.start < other.stop and other.start < one.stop
