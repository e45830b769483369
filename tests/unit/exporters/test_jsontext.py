"""JSON text of exported files."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.jsontext import Items, JsonText, Members, json_bytes, json_line
from ledger import canonical
from ledger.errors import ValueRefused
from tests.canonical_reference import plain_values, typed, values


def opened(tree: object) -> object:
    """What a reader makes of an exported document: envelopes opened, escaped keys given back."""
    if isinstance(tree, list):
        return [opened(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "$acl" in tree:
        return canonical.decode(json.dumps(tree).encode())
    return {_key(key): opened(item) for key, item in tree.items()}


def _key(key: str) -> str:
    if key.startswith("$acl:"):
        return next(iter(canonical.decode(json.dumps({key: None}).encode())))
    return key.removeprefix("$acl.")


@given(plain_values)
@settings(max_examples=200)
def test_plain_values_are_written_as_the_standard_library_indents_them(value: object) -> None:
    assert json_bytes(value).decode() == json.dumps(value, indent=2, ensure_ascii=False) + "\n"


@given(values)
@settings(max_examples=300)
def test_any_value_that_a_ledger_holds_reads_back_as_the_same_value(value: object) -> None:
    text = json_bytes(value)
    assert typed(opened(json.loads(text))) == typed(value)


@given(values)
@settings(max_examples=200)
def test_a_strict_parser_that_takes_surrogate_escapes_reads_every_document(value: object) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads(json_bytes(value), parse_constant=refuse)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '{\n  "$acl": [\n    "float",\n    "nan"\n  ]\n}\n'),
        (-math.inf, '{\n  "$acl": [\n    "float",\n    "-inf"\n  ]\n}\n'),
        (2**64, '{\n  "$acl": [\n    "int",\n    "10000000000000000"\n  ]\n}\n'),
        (2**64 - 1, "18446744073709551615\n"),
        (
            canonical.Binary(b"\x00\xff"),
            '{\n  "$acl": [\n    "bytes",\n    [],\n    "AP8="\n  ]\n}\n',
        ),
        ({"$acl": 1}, '{\n  "$acl.$acl": 1\n}\n'),
        ("\x00\n\x1b", '"\\u0000\\n\\u001b"\n'),
        ("\ud835", '"\\ud835"\n'),
        ("a\udc00b", '"a\\udc00b"\n'),
        ("\ud83d\ude00", '{\n  "$acl": [\n    "str",\n    "\\\\ud83d\\\\ude00"\n  ]\n}\n'),
        ("\u2028\U0001f600", '"\u2028\U0001f600"\n'),
        (-0.0, "-0.0\n"),
        ([1, 1.0, True, None], "[\n  1,\n  1.0,\n  true,\n  null\n]\n"),
        ([], "[]\n"),
        ({"a": {}}, '{\n  "a": {}\n}\n'),
    ],
)
def test_what_json_cannot_say_is_written_in_the_envelope_of_the_ledger(
    value: object, text: str
) -> None:
    assert json_bytes(value).decode() == text


def test_keys_with_surrogates_are_sorted_as_they_are_written() -> None:
    stored = canonical.decode(canonical.encode({"k\ud835": 1, "a": 2, "z": 3}))
    assert list(json.loads(json_bytes(stored))) == ["a", "k\ud835", "z"]


def test_the_order_of_a_fixed_object_is_kept() -> None:
    assert list(json.loads(json_bytes({"z": 1, "a": 2}))) == ["z", "a"]


def test_members_are_made_one_at_a_time_while_they_are_written() -> None:
    alive = 0

    def make() -> object:
        nonlocal alive
        for number in range(3):
            alive += 1
            yield str(number), {"text": "x" * 100_000}
            alive -= 1

    for _ in JsonText({"all": Members(make)}):
        assert alive <= 1
    assert list(json.loads(json_bytes({"all": Members(make)}))["all"]) == ["0", "1", "2"]
    assert json_bytes({"none": Members({}.items)}) == b'{\n  "none": {}\n}\n'


def test_a_document_can_be_read_again() -> None:
    text = JsonText({"a": [1, 2]})
    assert b"".join(text) == b"".join(text)


def test_depth_is_not_bounded_by_the_stack_of_python() -> None:
    value: object = "leaf"
    for _ in range(5000):
        value = [value]
    assert json_bytes(value).count(b"[") == 5000


@pytest.mark.parametrize("value", [{1}, b"x", object()])
def test_what_no_ledger_can_hold_is_refused(value: object) -> None:
    with pytest.raises(ValueRefused):
        json_bytes(value)


@given(st.text(st.characters(exclude_categories=[])))
def test_every_text_reads_back(text: str) -> None:
    assert opened(json.loads(json_bytes(text))) == text


@given(plain_values)
@settings(max_examples=200)
def test_a_compact_document_is_the_indented_one_without_the_spaces(value: object) -> None:
    tree = json.loads(json_bytes(value))
    text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False) + "\n"
    assert b"".join(json_line(value)).decode() == text


@pytest.mark.parametrize("odd", [None, "y" * 100_000, 1e-9, "\ud800"])
@pytest.mark.parametrize("place", [0, 300, 999])
def test_a_long_array_is_written_like_a_short_one_whatever_stands_in_it(
    odd: object, place: int
) -> None:
    items: list[object] = [f"name {n} " + "\n" * (n % 3) + "é" * 60 for n in range(1000)]
    items[1::7] = [{"n": n, "inner": [n, {"deep": []}]} for n in range(len(items[1::7]))]
    items[place] = odd
    for value in (items, {"deep": [items, items[:1]], "empty": []}):
        text = json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
        assert json_bytes(value) == text + b"\n"
        tight = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        assert b"".join(json_line(value)) == tight.encode("utf-8", "backslashreplace") + b"\n"


@given(values)
@settings(max_examples=100)
def test_a_compact_document_reads_back_as_the_same_value(value: object) -> None:
    line = b"".join(json_line(value))
    assert line.count(b"\n") == 1
    assert typed(opened(json.loads(line))) == typed(value)


def test_items_are_made_one_at_a_time_while_they_are_written() -> None:
    made: list[int] = []

    def make() -> object:
        for number in range(3):
            made.append(number)
            yield "x" * 100_000

    pieces = iter(JsonText({"items": Items(make), "empty": Items(lambda: ())}))
    next(pieces)
    assert made == [0]
    list(pieces)
    whole = json_bytes({"items": Items(make), "empty": Items(lambda: ())})
    assert json.loads(whole) == {"items": ["x" * 100_000] * 3, "empty": []}


@given(values)
@settings(max_examples=100)
def test_unicode_text_is_what_any_strict_reader_takes(value: object) -> None:
    json.dumps(json.loads(json_bytes(value, unicode=True)), ensure_ascii=False).encode("utf-8")


def test_unicode_text_joins_halves_and_replaces_those_that_stand_alone() -> None:
    value = {"k\ud800": ["\ud83d\ude00", "a\udc00b", "\U0001f600", "plain"]}
    assert json.loads(json_bytes(value, unicode=True)) == {
        "k\ufffd": ["\U0001f600", "a\ufffdb", "\U0001f600", "plain"]
    }
