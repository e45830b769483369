"""Values to bytes and back: against a second writer, and against everything JSON cannot hold."""

import dataclasses
import datetime as dt
import enum
import json
import struct
import uuid
from collections import OrderedDict, namedtuple
from decimal import Decimal
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledger.canonical
from ledger.canonical import (
    MAX_DEPTH,
    Binary,
    SpilledBinary,
    SpilledList,
    SpilledText,
    decode,
    encode,
    has_envelopes,
    is_canonical,
)
from ledger.canonical.encoding import _encode_exact, check_float_spelling, is_plain
from ledger.errors import LedgerDamaged, ValueRefused, VersionUnsupported
from tests.canonical_reference import Reference, float_text, plain_values, typed, values

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
DIGEST = bytes(range(32))


@given(values)
@settings(max_examples=400, deadline=None)
def test_values_are_written_as_described_and_come_back(value):
    data = encode(value)
    assert data == Reference().encode(value)
    assert typed(decode(data)) == typed(value)
    assert is_canonical(data)


@given(plain_values)
@settings(max_examples=200, deadline=None)
def test_the_fast_road_and_the_exact_road_write_the_same_bytes(value):
    assert is_plain(value)
    assert _encode_exact(value, None) == encode(value)


@given(values, values)
@settings(max_examples=200, deadline=None)
def test_equal_bytes_exactly_for_equal_values(one, other):
    assert (encode(one) == encode(other)) is (typed(one) == typed(other))


@given(plain_values)
@settings(max_examples=100, deadline=None)
def test_a_strict_foreign_parser_reads_the_same(value):
    def refuse(token):
        raise AssertionError(token)

    if not has_envelopes(encode(value)):
        assert typed(json.loads(encode(value), parse_constant=refuse)) == typed(value)


@given(st.binary(min_size=8, max_size=8).map(lambda raw: struct.unpack(">d", raw)[0]))
@settings(max_examples=500, deadline=None)
def test_floats_are_spelled_by_the_rule_of_the_format(number):
    if number - number == 0:
        assert encode(number) == float_text(number).encode()
        assert decode(encode(number)) == number


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (1, b"1"),
        (1.0, b"1.0"),
        (-0.0, b"-0.0"),
        (True, b"true"),
        (None, b"null"),
        (2**53 + 1, b"9007199254740993"),
        (2**64 - 1, b"18446744073709551615"),
        (2**64, b'{"$acl":["int","10000000000000000"]}'),
        (-(2**63) - 1, b'{"$acl":["int","-8000000000000001"]}'),
        (1e21, b"1e+21"),
        (1e16, b"1e+16"),
        (1e15, b"1000000000000000.0"),
        (1e-5, b"0.00001"),
        (1e-6, b"1e-6"),
        (1e-7, b"1e-7"),
        (0.1, b"0.1"),
        (5e-324, b"5e-324"),
        (1.7976931348623157e308, b"1.7976931348623157e+308"),
        (float("nan"), b'{"$acl":["float","nan"]}'),
        (float("-inf"), b'{"$acl":["float","-inf"]}'),
        (
            '\x00\x1f\x7f\u2028"\\/\b\f\n\r\t',
            b'"\\u0000\\u001f\x7f\xe2\x80\xa8\\"\\\\/\\b\\f\\n\\r\\t"',
        ),
        ("😀", b'"\xf0\x9f\x98\x80"'),
        ("\ud835", b'{"$acl":["str","\\\\ud835"]}'),
        ("\ud83d\ude00\\", b'{"$acl":["str","\\\\ud83d\\\\ude00\\\\\\\\"]}'),
        ("\\ud835", b'"\\\\ud835"'),
        ({"\x1f": 1, "0": 2}, b'{"\\u001f":1,"0":2}'),
        (
            {"b": 1, "a": 2, "B": 3, "\uffff": 4, "😀": 5},
            '{"B":3,"a":2,"b":1,"\uffff":4,"😀":5}'.encode(),
        ),
        ({"$acl": [1]}, b'{"$acl.$acl":[1]}'),
        ({"$acl.x": 1, "$ac": 2, "$": 3}, b'{"$":3,"$ac":2,"$acl.$acl.x":1}'),
        ({"\ud800\\": 1}, b'{"$acl:\\\\ud800\\\\\\\\":1}'),
        ({"$acl\ud800": 1}, b'{"$acl:$acl\\\\ud800":1}'),
        (Binary(b"\x00\xff"), b'{"$acl":["bytes",[],"AP8="]}'),
        ((1, (2,)), b"[1,[2]]"),
        ([], b"[]"),
        ({}, b"{}"),
    ],
    ids=repr,
)
def test_the_spelling_of_each_kind(value, data):
    assert encode(value) == data
    assert encode(value) == Reference().encode(value)
    back = decode(data)
    assert typed(back) == typed(value)


def test_two_surrogates_that_are_two_code_points_stay_two():
    joined = "\ud83d" + "\ude00"
    assert decode(encode({"delta": joined, joined: 1})) == {"delta": joined, joined: 1}
    assert len(decode(encode(joined))) == 2


@pytest.mark.parametrize("digits", [4_301, 50_000])
def test_integers_of_any_length_come_back(digits):
    number = 7 * 10**digits
    assert decode(encode([number, -number])) == [number, -number]


def test_keys_are_sorted_by_code_point_not_by_utf16():
    data = encode({"\ue000": 1, "𐀀": 2})
    assert data.index("\ue000".encode()) < data.index("𐀀".encode())


def nest(levels, kind, leaf=1):
    value = leaf
    for level in range(levels):
        turn = kind if kind != "mixed" else ["list", "dict", "tuple"][level % 3]
        value = {"list": [value], "dict": {"k": value}, "tuple": (value,)}[turn]
    return value


KINDS = ["list", "dict", "tuple", "mixed"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "leaf", [1, float("nan"), "\ud800", 2**70], ids=["int", "nan", "str", "big"]
)
def test_nesting_of_200_is_held(kind, leaf):
    value = nest(MAX_DEPTH, kind, leaf)
    assert encode(decode(encode(value))) == encode(value) == Reference().encode(value)
    for spill in (None, lambda digest, piece: None):
        assert encode(value, spill) == encode(value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("levels", [201, 254, 255, 2_000, 50_000])
def test_deeper_nesting_is_refused_with_its_path_and_nothing_else_happens(kind, levels):
    value = nest(levels, kind)
    for tried in (value, {"x": float("nan"), "v": nest(min(levels, 400), kind)}):
        for spill in (None, lambda digest, piece: None):
            with pytest.raises(ValueRefused, match="nested deeper than 200") as refused:
                encode(tried, spill)
            assert refused.value.path.startswith("$")
            assert len(refused.value.path) < 300
    while isinstance(value, list | dict | tuple):  # so that freeing it does not recurse
        value = value["k"] if isinstance(value, dict) else value[0]


def test_empty_containers_count_as_levels():
    encode(nest(MAX_DEPTH - 1, "list", []))
    encode(nest(MAX_DEPTH - 1, "dict", {}))
    for leaf in ([], {}, ()):
        with pytest.raises(ValueRefused):
            encode(nest(MAX_DEPTH, "list", leaf))


def test_a_value_that_holds_itself_is_refused():
    value = []
    value.extend([value, value])
    with pytest.raises(ValueRefused, match="nested deeper"):
        encode(value)


class Text(str):
    __slots__ = ()


class Colour(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):  # noqa: UP042 - the form that equals its value
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Point:
    x: int = 1


Pair = namedtuple("Pair", "a b")  # noqa: PYI024
REFUSED = {
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "memoryview": memoryview(b"x"),
    "set": {1},
    "frozenset": frozenset({1}),
    "complex": 1j,
    "ellipsis": ...,
    "decimal": Decimal("1.5"),
    "numpy float64": np.float64(1.5),
    "numpy float32": np.float32(0.1),
    "numpy int64": np.int64(1),
    "numpy bool": np.bool_(True),
    "numpy str": np.str_("x"),
    "numpy array": np.array([1]),
    "enum": Colour.RED,
    "text enum": Word.RED,
    "int enum": Level.LOW,
    "uuid": uuid.UUID(int=1),
    "datetime": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    "date": dt.date(2026, 1, 1),
    "dataclass": Point(),
    "named tuple": Pair(1, 2),
    "subclass of str": Text("x"),
    "subclass of dict": OrderedDict(a=1),
    "subclass of list": type("L", (list,), {})([1]),
    "subclass of int": type("I", (int,), {})(1),
    "subclass of float": type("F", (float,), {})(1.0),
    "fragment": orjson.Fragment(b"1"),
    "object": object(),
    "class": int,
    "function": len,
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_what_is_not_plain_is_refused_with_its_path(value):
    for spill in (None, lambda digest, piece: None):
        with pytest.raises(ValueRefused) as refused:
            encode({"trajectory": [0, {"x": value}], "other": "y" * 5000}, spill)
        assert refused.value.path == "$.trajectory[1].x"
        with pytest.raises(ValueRefused) as refused:
            encode(value, spill)
        assert refused.value.path == "$"


@pytest.mark.parametrize("key", [1, None, True, 1.5, (1,), b"k", Text("k"), Word.RED, np.str_("k")])
def test_keys_that_are_not_text_are_refused(key):
    for value in ({key: 1}, {key: float("nan")}):
        with pytest.raises(ValueRefused, match="key is") as refused:
            encode({"meta": [value]})
        assert refused.value.path == "$.meta[0]"


def test_the_refusal_of_bytes_names_the_way_out():
    with pytest.raises(ValueRefused, match="wrap bytes in Binary"):
        encode([b"x"])
    with pytest.raises(ValueRefused, match="convert to float"):
        encode([np.float64(1)])
    with pytest.raises(ValueRefused, match="not bytearray"):
        Binary(bytearray(b"x"))


def test_paths_are_spelled_so_that_any_key_can_be_read():
    for key, step in [
        ("a b", '["a b"]'),
        ("", '[""]'),
        ("ü\ud800", '["\\u00fc\\ud800"]'),
        ("x" * 100, '["' + "x" * 60 + '\\u2026"]'),
        ("a-b_1", ".a-b_1"),
    ]:
        with pytest.raises(ValueRefused) as refused:
            encode({key: {1}})
        assert refused.value.path == "$" + step


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"[1,]",
        b"{'a':1}",
        b"[1][2]",
        b'"\\ud800"',
        b'"\xff"',
        b"\xef\xbb\xbf1",
        b"nul",
        b'{"$acl":1}',
        b'{"$acl":[]}',
        b'{"$acl":["what",1]}',
        b'{"$acl":[1]}',
        b'{"$acl":["float","nan"],"b":1}',
        b'{"$acl":["float","NaN"]}',
        b'{"$acl":["float","1.0"]}',
        b'{"$acl":["float"]}',
        b'{"$acl":["int","1"]}',
        b'{"$acl":["int","ffffffffffffffff"]}',
        b'{"$acl":["int","-8000000000000000"]}',
        b'{"$acl":["int","010000000000000000"]}',
        b'{"$acl":["int","1_0000000000000000"]}',
        b'{"$acl":["int","A0000000000000000"]}',
        b'{"$acl":["int","+10000000000000000"]}',
        b'{"$acl":["int",18446744073709551615]}',
        b'{"$acl":["str","plain"]}',
        b'{"$acl":["str","\\\\uD800"]}',
        b'{"$acl":["str","\\\\ud800\\\\x"]}',
        b'{"$acl":["str","\\\\u0041\\\\ud800"]}',
        b'{"$acl":["str",1]}',
        b'{"$acl":["bytes",[],"AP8"]}',
        b'{"$acl":["bytes",[],"AP9="]}',
        b'{"$acl":["bytes",[],"A\\nP8="]}',
        '{"$acl":["bytes",[],"é"]}'.encode(),
        b'{"$acl":["bytes","AP8="]}',
        b'{"$acl":["text",[],"rest"]}',
        b'{"$acl":["text",["00"],"rest"]}',
        b'{"$acl":["text",[1],"rest"]}',
        b'{"$acl":["text",["%s"],1]}' % (b"00" * 32),
        b'{"$acl":["text",["%s"],["x"]]}' % (b"00" * 32),
        b'{"$acl":["text",["%s"],{"$acl":["float","nan"]}]}' % (b"00" * 32),
        b'{"$acl":["text",["%s"],{"x":1}]}' % (b"00" * 32),
        b'{"$acl":["text",["%s"],"rest"]}' % (b"0A" * 32),
        b'{"$acl":["text",["%s"],"%s"]}' % (b"00" * 32, b"x" * 4096),
        b'{"$acl":["bytes",["%s"],"%s"]}' % (b"00" * 32, b"AAAA" * 22_000),
        b'{"$acl":["list",[],[]]}',
        b'{"$acl":["list",["%s"],{}]}' % (b"00" * 32),
        b'{"$acl":["list",["%s"]]}' % (b"00" * 32),
        b'{"$aclx":1}',
        b'{"$acl.x":1}',
        b'{"$acl:x":1}',
        b'{"$acl:\\\\uD800":1}',
        b"[" * 201 + b"]" * 201,
        b"[" * 201 + b'{"$acl":["float","nan"]}' + b"]" * 201,
        b'{"$acl":["list",["%s"],%s]}' % (b"00" * 32, b"[" * 201 + b"]" * 201),
        b"[" * 1_020 + b"]" * 1_020,
        b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=lambda data: repr(data[:50]),
)
def test_what_was_never_written_is_damage(data):
    with pytest.raises(LedgerDamaged):
        decode(data)
    assert not is_canonical(data)


@pytest.mark.parametrize(
    "data",
    [
        b' {"a":1}',
        b'{"a": 1}',
        b'{"a":1}\n',
        b'{"b":1,"a":2}',
        b'{"a":1,"a":2}',
        b'{"a":1,"a":1}',
        b"1e21",
        b"1.50",
        b"1E5",
        b"100000000000000000000.0",
        b"18446744073709551616",
        b"-0",
        b'"\\u0041"',
        b'"\\/"',
        b'"\\u2028"',
        b'"\\ud83d\\ude00"',
        b'{"\\u0024acl":["float","nan"]}',
        b'[{"$acl":["float","nan"]}, 1]',
        b'{"$acl":["float","\\u006ean"]}',
    ],
    ids=repr,
)
def test_other_spellings_are_not_canonical(data):
    assert not is_canonical(data)


def written_again(data):
    try:
        return encode(decode(data)) == data
    except (LedgerDamaged, ValueRefused):
        return False


@given(values, st.data())
@settings(max_examples=200, deadline=None)
def test_canonical_is_what_is_written_again_as_it_was_read(value, data):
    spelled = encode({"v": [value, {"$acl": 2**64}]})
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(spelled))] * 2)))
    odd = data.draw(
        st.sampled_from([b" ", b"\\", b'"', b"0", b"-", b"$acl", b"{", b"]", b"A", b""])
    )
    for changed in (spelled[:start] + odd + spelled[start:], spelled[:start] + odd + spelled[end:]):
        assert is_canonical(changed) == written_again(changed)


def test_an_escaped_reserved_key_is_data_and_no_reference():
    assert decode(b'{"\\u0024acl":["text",["00"],"x"]}') == {"$acl": ["text", ["00"], "x"]}


@given(values, st.data())
@settings(max_examples=150, deadline=None)
def test_a_changed_byte_is_another_value_or_not_canonical(value, data):
    before = encode(value)
    at = data.draw(st.integers(0, len(before) - 1))
    after = bytearray(before)
    after[at] ^= data.draw(st.integers(1, 255))
    if is_canonical(bytes(after)):
        assert typed(decode(bytes(after))) != typed(value)


def test_references_read_from_bytes_are_written_back_as_they_were():
    value = {
        "t": SpilledText((DIGEST,), "rest"),
        "s": SpilledText((DIGEST, DIGEST), "\ud800" * 4000),
        "l": SpilledList((DIGEST,), ({"a": SpilledText((DIGEST,), "")}, 2**70, [1])),
        "b": SpilledBinary((DIGEST,), b"\x00" * 60_000),
    }
    data = encode(value)
    assert decode(data) == value
    assert encode(decode(data), lambda digest, piece: pytest.fail("cut again")) == data
    assert is_canonical(data)


def test_lists_inside_references_nest_200_deep():
    value = SpilledList((DIGEST,), ({"a": 1},))
    for _ in range(MAX_DEPTH - 2):
        value = SpilledList((DIGEST,), (value,))
    data = encode(value)
    assert decode(data) == value
    with pytest.raises(ValueRefused, match="nested deeper"):
        encode(SpilledList((DIGEST,), (value,)))
    with pytest.raises(LedgerDamaged, match="nested deeper"):
        decode(b'{"$acl":["list",["%s"],[%s]]}' % (DIGEST.hex().encode(), data))


@pytest.mark.parametrize(
    "make",
    [
        lambda: SpilledText((), "x"),
        lambda: SpilledText((b"short",), "x"),
        lambda: SpilledText((DIGEST,), "x" * 4096),
        lambda: SpilledList((), ()),
        lambda: SpilledBinary((), b""),
        lambda: SpilledBinary((DIGEST,), bytes(65_536)),
    ],
)
def test_references_of_an_impossible_shape_are_refused(make):
    with pytest.raises(LedgerDamaged):
        make()


def test_references_know_the_size_of_what_they_stand_for():
    assert SpilledText((DIGEST, DIGEST), "abc").length == 8195
    assert SpilledBinary((DIGEST,), b"abc").size == 65_539


def test_only_bytes_with_the_reserved_key_may_hold_envelopes():
    assert has_envelopes(encode([float("nan")]))
    assert has_envelopes(encode({"$acl": 1}))
    assert not has_envelopes(encode({"price": "$5 and \\acl", "acl": "$ acl"}))


def test_another_spelling_of_floats_by_orjson_is_noticed_at_import():
    check_float_spelling()
    with pytest.raises(VersionUnsupported, match=r"1e\+16 as 1e16"):
        check_float_spelling(lambda number: orjson.dumps(number).replace(b"e+", b"e"))


def test_real_trajectories_are_plain_json_and_come_back():
    path = SHARED / "samples" / "tau_bench" / "gpt-4o-airline.json"
    if not path.exists():
        pytest.skip("the shared samples are not beside this checkout")
    for case in json.loads(path.read_bytes())[:40]:
        assert (
            encode(case)
            == json.dumps(case, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
        )
        assert decode(encode(case)) == case


def test_the_example_in_the_documentation_of_the_package_holds():
    import doctest

    assert doctest.testmod(ledger.canonical) == (0, 1)
