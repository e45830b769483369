"""Changes to a source: what is found, what is left alone, and that each can be undone."""

import ast

import pytest

from runtime.benchmarks.repair.generate import Original, originals
from runtime.benchmarks.repair.mutate import BugType, Mutation, apply, compatible, mutations


def changed(source: str, kind: BugType | None = None) -> set[str]:
    """Every source that one change makes, of one kind or of all."""
    found = [m for m in mutations(source) if kind in (None, m.bug_type)]
    return {apply(source, [m]) for m in found}


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ("a < b", BugType.COMPARISON, {"a <= b", "a >= b"}),
        ("a<=b", BugType.COMPARISON, {"a<b", "a>b"}),
        ("a == b", BugType.COMPARISON, {"a != b"}),
        ("a in b", BugType.COMPARISON, {"a not in b"}),
        ("a not  in b", BugType.COMPARISON, {"a in b"}),
        ("a is b", BugType.COMPARISON, {"a is not b"}),
        ("a is not b", BugType.COMPARISON, {"a is b"}),
        ("(a) < (b) == c", BugType.COMPARISON, {"(a) <= (b) == c", "(a) >= (b) == c", "(a) < (b) != c"}),
        ("(a + b) - c", BugType.ARITHMETIC, {"(a - b) - c", "(a + b) + c"}),
        ("a // b", BugType.ARITHMETIC, {"a * b", "a % b"}),
        ("a % b", BugType.ARITHMETIC, {"a // b"}),
        ("a * b", BugType.ARITHMETIC, {"a // b"}),
        ("a += b", BugType.ARITHMETIC, {"a -= b"}),
        ("a ** b", BugType.ARITHMETIC, set()),
        ("a and b", BugType.BOOLEAN, {"a or b"}),
        ("a and b and c", BugType.BOOLEAN, {"a or b and c", "a and b or c"}),
        ("x = True", BugType.BOOLEAN, {"x = False"}),
        ("x = 1", BugType.OFF_BY_ONE, {"x = 2", "x = 0"}),
        ("x = 0", BugType.OFF_BY_ONE, {"x = 1"}),
        ("x = -1", BugType.OFF_BY_ONE, {"x = -2", "x = -0"}),
        ("x = '1'", BugType.OFF_BY_ONE, set()),
        ("if a: pass", BugType.NEGATION, {"if not a: pass"}),
        ("if not a: pass", BugType.NEGATION, {"if a: pass"}),
        ("if not (a or b): pass", BugType.NEGATION, {"if (a or b): pass", "if not (not a or b): pass", "if not (a or not b): pass"}),
        ("if a < b: pass", BugType.NEGATION, set()),
        ("[a for a in b if a.c()]", BugType.NEGATION, {"[a for a in b if not a.c()]"}),
        ("x = not a", BugType.NEGATION, set()),
    ],
)  # fmt: skip
def test_changes_of_each_kind(source: str, kind: BugType, expected: set[str]) -> None:
    assert changed(source, kind) == expected


def test_a_joined_condition_is_negated_as_a_whole_and_in_its_parts() -> None:
    assert changed("while a or b: pass", BugType.NEGATION) == {
        "while not (a or b): pass",
        "while not a or b: pass",
        "while a or not b: pass",
    }


def test_text_and_docstrings_are_left_alone() -> None:
    source = 'def f(a):\n    """Give a + 1, or 2 if a < 3."""\n    return "x - 1"\n'
    assert mutations(source) == ()


def test_the_rest_of_the_source_keeps_its_bytes() -> None:
    source = "def f( a ):   # odd   layout\n\n\treturn a<b   # a<b\n"
    assert changed(source) == {
        source.replace("a<b   ", "a<=b   "),
        source.replace("a<b   ", "a>=b   "),
    }


def test_a_change_says_what_it_does() -> None:
    source = "a = b\nc = d < e\n"
    assert [m.describe(source) for m in mutations(source)] == [
        "line 2: '<' becomes '<='",
        "line 2: '<' becomes '>='",
    ]


def test_changes_are_made_together_when_they_do_not_overlap() -> None:
    source = "if a < 1: pass"
    less, one = (m for m in mutations(source) if m.text in (">=", "2"))
    assert compatible(less, one)
    assert apply(source, [one, less]) == "if a >= 2: pass"


def test_overlapping_changes_are_refused() -> None:
    source = "if a and b: pass"
    whole = next(m for m in mutations(source) if m.text.startswith("not ("))
    inner = next(m for m in mutations(source) if m.text == "or")
    assert not compatible(whole, inner)
    with pytest.raises(ValueError, match="overlap in line 1"):
        apply(source, [whole, inner])


def test_two_insertions_at_one_place_do_not_go_together() -> None:
    one = Mutation(3, 3, "not ", BugType.NEGATION, 1)
    assert not compatible(one, Mutation(3, 3, "-", BugType.NEGATION, 1))


def test_a_source_beyond_ascii_is_refused() -> None:
    with pytest.raises(ValueError, match="ASCII"):
        mutations("x = 'é' < 1")


@pytest.mark.parametrize("original", originals(), ids=lambda o: o.entry)
def test_every_change_of_an_original_can_be_undone(original: Original) -> None:
    source = original.source
    meaning = ast.dump(ast.parse(source))
    for change in mutations(source):
        broken = apply(source, [change])
        undone = [ast.dump(ast.parse(again)) for again in changed(broken, change.bug_type)]
        assert meaning in undone, change.describe(source)
