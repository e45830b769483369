"""JSON compared as it is spelled."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.jsontree import Difference, first_difference, parse, spell


def compared(first: str, second: str) -> Difference | None:
    return first_difference(parse(first.encode()), parse(second.encode()))


@pytest.mark.parametrize(
    ("first", "second", "at", "there"),
    [
        ('{"a": 1}', '{"a": 2}', "$.a", ("1", "2")),
        ('{"a": {"b": [0, 1]}}', '{"a": {"b": [0, 2]}}', "$.a.b[1]", ("1", "2")),
        ("[1, 2]", "[1]", "$[1]", ("2", None)),
        ("[]", '["x"]', "$[0]", (None, '"x"')),
        ('{"a": 1}', "{}", "$.a", ("1", None)),
        ("{}", '{"b c": null}', '$["b c"]', (None, "null")),
        ('{"a": 1}', '{"a": 1.0}', "$.a", ("1", "1.0")),
        ('{"a": 0.0}', '{"a": -0.0}', "$.a", ("0.0", "-0.0")),
        ('{"a": true}', '{"a": 1}', "$.a", ("true", "1")),
        ('{"a": "1"}', '{"a": 1}', "$.a", ('"1"', "1")),
        ('{"a": null}', '{"a": false}', "$.a", ("null", "false")),
        ('{"a": {}}', '{"a": []}', "$.a", ("{}", "[]")),
        ('{"a": NaN}', '{"a": null}', "$.a", ("NaN", "null")),
    ],
)
def test_the_first_difference_is_named_by_its_path(
    first: str, second: str, at: str, there: tuple[str | None, str | None]
) -> None:
    found = compared(first, second)
    assert found is not None
    assert (found.at, (found.first, found.second)) == (at, there)


def test_the_first_in_the_order_of_the_text_is_told() -> None:
    found = compared('{"z": 1, "a": 1}', '{"z": 2, "a": 2}')
    assert found is not None
    assert found.at == "$.z"


def test_another_order_of_members_is_a_difference() -> None:
    found = compared('{"o": {"a": 1, "b": 2}}', '{"o": {"b": 2, "a": 1}}')
    assert found is not None
    assert found.at == "$.o"


def test_equal_texts_have_none() -> None:
    text = '{"a": [1, {"b": null}], "c": "x"}'
    assert compared(text, text) is None


def test_long_values_are_shown_in_short() -> None:
    found = compared(json.dumps(["x" * 1000]), json.dumps(["y"]))
    assert found is not None
    assert found.first is not None
    assert len(found.first) < 100


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_what_is_spelled_as_exports_are_is_spelled_again(value: object) -> None:
    text = (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(
        "utf-8", "backslashreplace"
    )
    assert spell(parse(text)) == text


@given(values, values)
def test_two_values_differ_where_their_texts_do(first: object, second: object) -> None:
    texts = [json.dumps(value).encode() for value in (first, second)]
    found = first_difference(parse(texts[0]), parse(texts[1]))
    assert (found is None) == (texts[0] == texts[1])
