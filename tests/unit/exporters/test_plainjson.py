"""What orjson writes at once is spelled as everything else is."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.plainjson import MOST, written
from ledger.canonical import Binary

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=5),
    ),
    max_leaves=30,
)
CONTAINERS = st.one_of(st.lists(VALUES, max_size=5), st.dictionaries(TEXTS, VALUES, max_size=5))


@settings(max_examples=300, deadline=None)
@given(CONTAINERS)
def test_it_is_what_the_standard_library_writes_or_nothing(value: Any) -> None:
    indented = json.dumps(value, indent=2, ensure_ascii=False)
    assert written(value, compact=False) in (None, indented)
    line = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert written(value, compact=True) in (None, line)


@given(st.floats(min_value=1e-4, max_value=1e15, exclude_max=True))
def test_a_decimal_is_spelled_with_the_digits_of_python(number: float) -> None:
    assert written([number, -number], compact=True) == f"[{number!r},{-number!r}]"


@pytest.mark.parametrize("value", [{}, [], {"a": [{}, []], "b": "\x1f\x7f\u2028é"}, [0.0, -0.0]])
def test_what_is_plain_is_written(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    assert written(value, compact=False) == text


@pytest.mark.parametrize(
    "part",
    [
        float("nan"),
        float("inf"),
        1e-5,
        1e300,
        2**64,
        "\ud800",
        {"\udfff": 1},
        {"$acl": 1},
        {"$acl.x": 1},
        {1: "a number is no name"},
        Binary(b"x"),
        b"x",
        {1, 2},
        "x" * (MOST + 1),
        list(range(MOST)),
        {"x" * (MOST + 1): 1},
    ],
)
def test_whatever_else_there_is_has_to_be_written_part_by_part(part: Any) -> None:
    assert written({"a": [part]}, compact=False) is None
    assert written([{"a": part}], compact=True) is None
