"""Two exported trees compared: what differs, and what was set aside.

An import of an export is another run: its id, its ledger and its times are its own. They are set
aside, and named; every other byte must be the same.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from exporters import jsontree
from exporters.folder import Folder
from exporters.manifest import MANIFEST
from exporters.paths import is_kept
from exporters.run_files import PARAMS, RUN_INFO
from exporters.summary import SUMMARY
from ledger.errors import ExportRefused, UsageError

TRAILER: Final = "acl"
_RUNS_OWN: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    RUN_INFO: (
        ("run_id",),
        ("started_at",),
        ("finished_at",),
        ("metric_artifacts", "generated_at"),
    ),
    PARAMS: (("output", "run_id"),),
}
_LINES: Final = re.compile(
    rb"(?m)^(?:\*\*(?:Run|Started|Finished):\*\* "
    # Which checksum an input had where it ran, only the ledger holds.
    rb"|- (?:Imported from|Reused although their input changed|Ledger|Size|Root): ).*\n"
)

Kind = Literal["missing", "extra", "differs"]


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """A file that is `missing` from the second tree, `extra` in it, or `differs`.

    `at` is the JSON path or the line of the first difference; `first` and `second` show what
    stands there, None for nothing.
    """

    path: str
    kind: Kind
    at: str | None = None
    first: str | None = None
    second: str | None = None


@dataclass(frozen=True, slots=True)
class TreeComparison:
    """All differences in the order of paths, and in words what was not compared."""

    differences: tuple[TreeDifference, ...]
    set_aside: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """True if nothing differs but what was set aside."""
        return not self.differences


def compare_trees(first: Path, second: Path) -> TreeComparison:
    """Compare two directories file by file; raises UsageError for what is no directory."""
    with _opened(first) as here, _opened(second) as there:
        found = (set(here.files()), set(there.files()))
        every = sorted(found[0] | found[1])
        compared = [path for path in every if not (is_kept(path) or _is_manifest(path))]
        aside = _Aside([path for path in every if path not in compared])
        differences = []
        for path in compared:
            if path not in found[1]:
                differences.append(TreeDifference(path, "missing"))
            elif path not in found[0]:
                differences.append(TreeDifference(path, "extra"))
            else:
                differences += _differing(here, there, path, aside)
    return TreeComparison(tuple(differences), tuple(aside.told()))


def _opened(directory: Path) -> Folder:
    try:
        return Folder.open(directory.resolve())
    except (FileNotFoundError, ExportRefused):
        raise UsageError(f"{directory} is no directory", hint="name two exported trees") from None


def _is_manifest(path: str) -> bool:
    return path.rpartition("/")[2] == MANIFEST


class _Aside:
    """What was set aside, in words."""

    def __init__(self, files: list[str]) -> None:
        self._files = files
        self._trailers = 0
        self._parts: dict[str, list[str]] = {}

    def trailer(self) -> None:
        self._trailers += 1

    def part(self, path: str, words: str) -> None:
        self._parts.setdefault(path, []).append(words)

    def told(self) -> Iterator[str]:
        yield from self._files
        if self._trailers:
            yield f"the object {TRAILER} of {self._trailers} files"
        for path, parts in sorted(self._parts.items()):
            yield f"{path}: {', '.join(parts)}"


def _differing(here: Folder, there: Folder, path: str, aside: _Aside) -> Iterator[TreeDifference]:
    try:
        first, second = _read(here, path), _read(there, path)
    except ExportRefused as error:
        yield TreeDifference(path, "differs", None, error.message, error.message)
        return
    if first == second:
        return
    if path.endswith(".json"):
        yield from _of_json(first, second, path, aside)
    elif path == SUMMARY:
        aside.part(path, "the lines with run, times, source, ledger, size and root")
        yield from _of_lines(_LINES.sub(b"", first), _LINES.sub(b"", second), path)
    else:
        yield from _of_lines(first, second, path)


def _read(folder: Folder, path: str) -> bytes:
    with folder.reading(path) as file:
        return file.read()


def _of_json(first: bytes, second: bytes, path: str, aside: _Aside) -> Iterator[TreeDifference]:
    try:
        trees = jsontree.parse(first), jsontree.parse(second)
    except (ValueError, RecursionError):
        # One of them is none: then the bytes must be the same.
        yield from _of_lines(first, second, path)
        return
    as_exported = [jsontree.spell(trees[0]) == first, jsontree.spell(trees[1]) == second]
    if any(isinstance(tree, jsontree.Members) and tree.has(TRAILER) for tree in trees):
        aside.trailer()
    own = _RUNS_OWN.get(path, ())
    for part in own:
        aside.part(path, "$." + ".".join(part))
    difference = jsontree.first_difference(_reduced(trees[0], own), _reduced(trees[1], own))
    if difference is not None:
        yield TreeDifference(path, "differs", difference.at, difference.first, difference.second)
    elif not all(as_exported):
        spellings = ("as exports are" if fits else "in another way" for fits in as_exported)
        yield TreeDifference(path, "differs", "spelling", *spellings)


def _reduced(tree: object, own: tuple[tuple[str, ...], ...]) -> object:
    """The value without what is the run's own."""
    if not isinstance(tree, jsontree.Members):
        return tree
    tree = tree.without(TRAILER)
    for part in own:
        tree = tree.masked(part)
    return tree


def _of_lines(first: bytes, second: bytes, path: str) -> Iterator[TreeDifference]:
    if first == second:  # once lines are set aside
        return
    lines = first.split(b"\n"), second.split(b"\n")
    at = next(
        (n for n, (one, other) in enumerate(zip(*lines, strict=False)) if one != other),
        min(map(len, lines)),
    )
    shown = [_shown(side[at]) if at < len(side) else None for side in lines]
    yield TreeDifference(path, "differs", f"line {at + 1}", *shown)


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return text if len(text) <= 60 else f"{text[:60]}…"
