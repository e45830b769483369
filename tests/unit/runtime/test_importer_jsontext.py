import json
from math import inf, isnan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import canonical
from runtime.importers.jsontext import ROOM, NotARecord, read_record


def why(data: bytes) -> NotARecord:
    with pytest.raises(NotARecord) as caught:
        read_record(data)
    return caught.value


def test_a_record_is_what_python_reads():
    record = read_record(b'{"a": [1, 1.0, -0.0, null, 18446744073709551616]}')
    assert json.dumps(record.value) == '{"a": [1, 1.0, -0.0, null, 18446744073709551616]}'
    assert record.oddities == ()


def test_nan_and_infinities_are_let_through_and_named_once():
    record = read_record(b'{"a": NaN, "b": [Infinity, -Infinity, NaN]}')
    assert isnan(record.value["a"])
    assert record.value["b"][:2] == [inf, -inf]
    assert record.oddities == ("NaN", "Infinity", "-Infinity")


def test_a_number_beyond_floats_is_named():
    record = read_record(b'{"a": 1e999, "b": 1e300}')
    assert record.value == {"a": inf, "b": 1e300}
    assert record.oddities == ("1e999",)


def test_the_word_nan_in_a_text_is_nothing_odd():
    assert read_record(b'{"a": "NaN 1e999"}').oddities == ()


def test_half_surrogates_and_nul_are_kept():
    assert read_record(rb'{"a": "\ud835", "\u0000": "\udc00b"}').value == {
        "a": "\ud835",
        "\0": "\udc00b",
    }


@pytest.mark.parametrize("data", [b'{"a": 1, "a": 2}', b'{"x": {"b": 1, "a": 1, "a": 1}}'])
def test_two_keys_of_one_name_are_refused_by_name(data):
    assert str(why(data)) == "two keys are 'a'"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"[]", "a list"),
        (b"null", "null"),
        (b'"x"', "a text"),
        (b"1", "a number"),
        (b"true", "a truth value"),
    ],
)
def test_a_json_value_that_is_no_object_is_whole_and_refused(data, kind):
    fault = why(data)
    assert str(fault) == f"holds {kind}, not an object"
    assert not fault.cut


@pytest.mark.parametrize(
    "data", [b"", b" \n", b"{", b'{"a', b'{"a": ', b'{"a": [1, 2', b'{"a": "x\\']
)
def test_text_that_ends_too_early_is_told_from_other_damage(data):
    assert why(data).cut


@pytest.mark.parametrize("data", [b"{a: 1}", b'{"a": 1}}', b'{"a": 1,, "b"', b"\xef\xbb\xbf{}"])
def test_other_faults_are_no_cut(data):
    assert not why(data).cut


def test_bytes_that_are_no_utf8_are_refused_with_their_place():
    assert str(why(b'{"a": "\xff"}')) == "not UTF-8 at byte 7"


@pytest.mark.parametrize("depth", [canonical.MAX_DEPTH - ROOM + 1, 2_000, 100_000])
def test_nesting_that_no_ledger_holds_is_refused(depth):
    assert "nested" in str(why(b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"))


def test_nesting_within_the_limit_is_read():
    depth = canonical.MAX_DEPTH - ROOM
    read_record(b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}")


def test_a_number_with_too_many_digits_is_refused():
    assert "number of more than 4300 digits" in str(why(b'{"a": ' + b"9" * 5000 + b"}"))


@settings(max_examples=50)
@given(
    st.dictionaries(st.text(), st.integers() | st.text() | st.floats(allow_nan=False)), st.data()
)
def test_no_proper_front_of_an_object_is_a_record(value, data):
    text = json.dumps(value).encode()
    end = data.draw(st.integers(0, len(text) - 1))
    assert why(text[:end]).cut
