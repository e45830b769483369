"""Markdown cells and tables."""

import pytest

from exporters.markdown import escape, number, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("line\nbreak", r"line\\u000abreak"),
        ("snake_case stays", "snake_case stays"),
        ("__all__", r"\_\_all\_\_"),
        ("<img src=x>", r"\<img src=x\>"),
        ("[x](y)", r"\[x\](y)"),
        ("*bold* `code` ~no~", r"\*bold\* \`code\` \~no\~"),
        ("back\\slash", r"back\\slash"),
        ("&lt;", r"\&lt;"),
        ("left\u202eright", r"left\\u202eright"),
    ],
)
def test_text_shows_as_itself_on_one_line(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_a_long_text_is_cut() -> None:
    assert escape("x" * 1000) == "x" * 199 + "…"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (3, "3"), (0.5, "0.5000"), (0.0, "0.0000"), (1e-6, "1e-06"), (2.5e20, "2.5e+20")],
)
def test_numbers_are_short_and_none_is_not_a_zero(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_a_table_has_a_header_a_rule_and_rows() -> None:
    assert table(("a", "b"), [("1", "2")]) == ["| a | b |", "| --- | ---: |", "| 1 | 2 |"]
