"""One bad part does not lose the rest of a value."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canonical import MAX_DEPTH, Binary, SpilledList, SpilledText, encode, prune
from ledger.errors import ValueRefused
from tests.canonical_reference import keys, scalars, typed, values

BAD = [{1}, b"bytes", np.float64(1.5), 1j, object(), ...]


@given(values)
@settings(max_examples=100, deadline=None)
def test_a_value_that_can_be_held_is_kept_whole(value):
    kept, refused = prune(value)
    assert typed(kept) == typed(value)
    assert refused == []


@given(
    st.recursive(
        scalars | st.sampled_from(BAD),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(keys | st.integers(), inner, max_size=4)
        ),
        max_leaves=15,
    )
)
@settings(max_examples=200, deadline=None)
def test_what_is_kept_can_be_encoded_and_something_was_refused_if_the_whole_cannot(value):
    kept, refused = prune(value)
    encode(kept)
    assert first_refusal(value) in [None, *((error.path, error.why) for error in refused)]
    assert bool(refused) is (first_refusal(value) is not None)


def first_refusal(value):
    try:
        encode(value)
    except ValueRefused as error:
        return error.path, error.why
    return None


def test_bad_parts_are_named_and_the_rest_is_kept():
    value = {
        "trajectory": [0, 1, 2, {"x": {1}, "y": 1}],
        "numbers": [1, np.float64(2), 3],
        "bytes": b"x",
        "keys": {1: "a", "b": "c", None: "d"},
        "nan": [float("inf")],
        "binary": Binary(b"x"),
    }
    before = copy.deepcopy(value)
    kept, refused = prune(value)
    assert kept == {
        "trajectory": [0, 1, 2, {"y": 1}],
        "numbers": [1, None, 3],
        "keys": {"b": "c"},
        "nan": [float("inf")],
        "binary": Binary(b"x"),
    }
    assert [(error.path, error.why) for error in refused] == [
        ("$.trajectory[3].x", "builtins.set has no canonical form"),
        ("$.numbers[1]", "numpy.float64 is a subclass; convert to float"),
        ("$.bytes", "bytes is not text; wrap bytes in Binary"),
        ("$.keys", "a key is int, not text"),
        ("$.keys", "a key is NoneType, not text"),
    ]
    assert value == before


def test_a_refused_value_becomes_none():
    kept, (refused,) = prune({1})
    assert kept is None
    assert str(refused).startswith("value at $ refused: builtins.set")


@pytest.mark.parametrize("levels", [201, 2_000])
def test_what_is_nested_too_deep_is_left_out(levels):
    for wrap in (lambda value: [value], lambda value: {"k": value}, lambda value: (value,)):
        value = 1
        for _ in range(levels):
            value = wrap(value)
        kept, (refused,) = prune({"deep": value, "rest": 1})
        assert refused.why == f"nested deeper than {MAX_DEPTH}"
        assert kept["rest"] == 1
        encode(kept)


def test_a_value_that_holds_itself_is_left_out_where_it_does():
    value = {"a": 1, "shared": []}
    value["self"] = [value, value]
    value["again"] = value["shared"]
    kept, refused = prune(value)
    assert kept == {"a": 1, "shared": [], "self": [None, None], "again": []}
    assert [error.path for error in refused] == ["$.self[0]", "$.self[1]"]
    assert {error.why for error in refused} == {"the value holds itself"}


def test_references_are_kept_and_what_stands_beside_them_is_looked_at():
    text = SpilledText((bytes(32),), "x")
    kept, refused = prune({"t": text, "l": SpilledList((bytes(32),), (1, {2}, {"x": b""}))})
    assert kept == {"t": text, "l": SpilledList((bytes(32),), (1, None, {}))}
    assert [error.path for error in refused] == ["$.l[1]", "$.l[2].x"]
