"""Small changes to a function's source: how the tasks were broken, and what the search agent tries.

A change is made to the text, not to a tree that is printed again: the rest of the source keeps its
bytes, on every version of Python.  Each kind of change can be undone by one of its own kind, so a
function broken by n changes can be repaired by n changes.  Sources are ASCII.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class BugType(StrEnum):
    """The kind of a change, and of the bug that it plants."""

    ARITHMETIC = "arithmetic"
    BOOLEAN = "boolean"
    COMPARISON = "comparison"
    NEGATION = "negation"
    OFF_BY_ONE = "off_by_one"


@dataclass(frozen=True, slots=True, order=True)
class Mutation:
    """Replace the characters from `start` to `end` by `text`."""

    start: int
    end: int
    text: str
    bug_type: BugType
    line: int  # of the source, from 1

    def describe(self, source: str) -> str:
        """Say in one line what changes: `line 7: '<' becomes '<='`."""
        return f"line {self.line}: {source[self.start : self.end]!r} becomes {self.text!r}"


# Each operator with those that may stand in its place; every entry can be undone.
_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: (r"<", ("<=", ">=")),
    ast.LtE: (r"<=", ("<", ">")),
    ast.Gt: (r">", (">=", "<=")),
    ast.GtE: (r">=", (">", "<")),
    ast.Eq: (r"==", ("!=",)),
    ast.NotEq: (r"!=", ("==",)),
    ast.In: (r"in\b", ("not in",)),
    ast.NotIn: (r"not\s+in\b", ("in",)),
    ast.Is: (r"is\b", ("is not",)),
    ast.IsNot: (r"is\s+not\b", ("is",)),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, tuple[str, ...]]] = {
    ast.Add: (r"\+", ("-",)),
    ast.Sub: (r"-", ("+",)),
    ast.Mult: (r"\*", ("//",)),
    ast.FloorDiv: (r"//", ("*", "%")),
    ast.Mod: (r"%", ("//",)),
}


def mutations(source: str) -> tuple[Mutation, ...]:
    """List every single change that can be made to `source`, in the order of the text.

    Raises SyntaxError for a source that is not Python, ValueError for one that is not ASCII.
    """
    if not source.isascii():
        raise ValueError("a source to mutate is ASCII")
    return tuple(sorted(set(_Finder(source).find())))


def apply(source: str, changes: Iterable[Mutation]) -> str:
    """Make several changes at once; their places refer to `source` and must not overlap."""
    ordered = sorted(changes)
    for before, after in itertools.pairwise(ordered):
        if not compatible(before, after):
            raise ValueError(f"changes overlap in line {after.line}")
    for change in reversed(ordered):
        source = source[: change.start] + change.text + source[change.end :]
    return source


def compatible(one: Mutation, other: Mutation) -> bool:
    """Tell whether two changes can be made together."""
    first, second = sorted((one, other))
    return first.end <= second.start and first.start < second.start


class _Finder:
    """Finds the changes of one source."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.lines = [0]
        for line in source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def find(self) -> Iterator[Mutation]:
        for node in ast.walk(self.tree):
            match node:
                case ast.Compare():
                    yield from self._comparison(node)
                case ast.BinOp():
                    yield from self._arithmetic(node.op, node.left, node.right)
                case ast.AugAssign():
                    yield from self._arithmetic(node.op, node.target, node.value)
                case ast.BoolOp():
                    yield from self._boolean(node)
                case ast.Constant():
                    yield from self._constant(node)
                case _:
                    pass
        for condition in self._conditions():
            yield from self._negation(condition)

    def _start(self, node: ast.expr) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def _replace(self, start: int, end: int, text: str, kind: BugType) -> Mutation:
        return Mutation(start, end, text, kind, self.source.count("\n", 0, start) + 1)

    def _between(self, left: ast.expr, right: ast.expr, pattern: str) -> tuple[int, int]:
        """Give the place of an operator, which stands between its operands and their brackets."""
        found = re.compile(pattern).search(self.source, self._end(left), self._start(right))
        assert found is not None
        return found.span()

    def _comparison(self, node: ast.Compare) -> Iterator[Mutation]:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            pattern, others = _COMPARISONS[type(operator)]
            start, end = self._between(left, right, pattern)
            for other in others:
                yield self._replace(start, end, other, BugType.COMPARISON)

    def _arithmetic(
        self, operator: ast.operator, left: ast.expr, right: ast.expr
    ) -> Iterator[Mutation]:
        pattern, others = _ARITHMETIC.get(type(operator), ("", ()))
        for other in others:
            start, end = self._between(left, right, pattern)
            yield self._replace(start, end, other, BugType.ARITHMETIC)

    def _boolean(self, node: ast.BoolOp) -> Iterator[Mutation]:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            start, end = self._between(left, right, rf"\b{word}\b")
            yield self._replace(start, end, other, BugType.BOOLEAN)

    def _constant(self, node: ast.Constant) -> Iterator[Mutation]:
        start, end = self._start(node), self._end(node)
        if isinstance(node.value, bool):
            yield self._replace(start, end, str(not node.value), BugType.BOOLEAN)
        elif isinstance(node.value, int):
            yield self._replace(start, end, str(node.value + 1), BugType.OFF_BY_ONE)
            if node.value > 0:
                yield self._replace(start, end, str(node.value - 1), BugType.OFF_BY_ONE)

    def _conditions(self) -> Iterator[ast.expr]:
        """Yield what is asked as a condition, and the parts joined in it by `and` and `or`."""
        for node in ast.walk(self.tree):
            match node:
                case ast.If() | ast.While() | ast.IfExp():
                    yield node.test
                case ast.comprehension():
                    yield from node.ifs
                case ast.BoolOp():
                    yield from node.values
                case _:
                    pass

    def _negation(self, condition: ast.expr) -> Iterator[Mutation]:
        start, end = self._start(condition), self._end(condition)
        match condition:
            case ast.Compare() | ast.Constant():
                pass  # another comparison says the same
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                if not isinstance(operand, ast.Compare):
                    bare = re.sub(r"^not\s*", "", self.source[start:end])
                    yield self._replace(start, end, bare, BugType.NEGATION)
            case ast.BoolOp() | ast.IfExp():
                text = f"not ({self.source[start:end]})"
                yield self._replace(start, end, text, BugType.NEGATION)
            case _:
                yield self._replace(start, start, "not ", BugType.NEGATION)
