"""Recorded values as cells."""

from datetime import UTC, datetime

import pytest

from exporters.tables.cells import FIT, Inexact, json_text, moment, spelled_time


def fit(value: object, kind: str) -> object:
    return FIT[kind](value)


@pytest.mark.parametrize("value", [0, -(2**63), 2**63 - 1])
def test_an_integer_of_64_bits_is_itself(value: int) -> None:
    assert fit(value, "int64") == value


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**400])
def test_a_larger_integer_has_no_cell_and_is_told(value: int) -> None:
    assert fit(value, "int64") == Inexact(None)


def test_a_number_is_the_nearest_float() -> None:
    assert fit(2**53, "float64") == 2.0**53
    assert fit(2**53 + 1, "float64") == Inexact(2.0**53)
    assert fit(10**400, "float64") == Inexact(None)


def test_text_that_is_no_unicode_is_spelled_with_escapes() -> None:
    assert fit("caf\u00e9 \U0001f600 \x00", "string") == "caf\u00e9 \U0001f600 \x00"
    assert fit("a\udc00b", "string") == Inexact("a\\udc00b")
    # A pair that is two code points would be read as one character.
    assert fit("\ud83d\ude00", "string") == Inexact("\\ud83d\\ude00")


def test_a_list_holds_text() -> None:
    assert fit(("a", "b"), "list<string>") == ["a", "b"]
    assert fit(("a", "\udc00"), "list<string>") == Inexact(["a", "\\udc00"])


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2025-06-15T15:06:40Z", datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)),
        ("2025-06-15T17:06:40.25+02:00", datetime(2025, 6, 15, 15, 6, 40, 250000, tzinfo=UTC)),
        ("2025-06-15T15:06:40", Inexact(None)),
        ("yesterday", Inexact(None)),
        ("0001-01-01T00:00:00+14:00", Inexact(None)),
    ],
)
def test_a_time_needs_a_zone(text: str, time: object) -> None:
    assert fit(text, "timestamp") == time


def test_a_time_of_a_header_is_cut_to_the_microsecond() -> None:
    assert spelled_time(moment(1_750_000_000_123_456_789)) == "2025-06-15T15:06:40.123456Z"
    assert spelled_time(moment(0)) == "1970-01-01T00:00:00.000000Z"


def test_json_text_is_canonical() -> None:
    assert json_text({"b": float("nan"), "a": "\udc00"}) == (
        '{"a":{"$acl":["str","\\\\udc00"]},"b":{"$acl":["float","nan"]}}'
    )


def test_a_value_of_another_type_is_a_fault() -> None:
    for value, kind in (("1", "int64"), ("1", "float64"), (1, "bool"), (1, "string")):
        with pytest.raises(AssertionError):
            fit(value, kind)
