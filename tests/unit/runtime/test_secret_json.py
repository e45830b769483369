"""The one search of JSON: what it calls clean, the gate would return as it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.redact import Redactor
from runtime.secret_json import may_tell

KNOWN = {
    "DB_PASSWORD": "hunter2hunter2",
    "A_SECRET": 'my "se\\cret"\nvalue',
    "A_TOKEN": "pä\x01ßwort",
}
redactor = Redactor(KNOWN)

# What the rules look for, and what JSON spells in another way, to be put together to texts.
NAMES = [
    "token",
    "apiKey",
    "api key",
    "password",
    "headers",
    "env",
    "access_key",
    "id",
    "KEY",
    "auth",
]
SHAPES = [
    "sk-abcdefgh1234",
    "://user:pass@",
    "-----BEGIN ",
    "eyJabcdefgh.abcd.ef",
    "Bearer ",
    "bearer",
]
SIGNS = [
    *"=:,.;-_@/'`\"\\{}[] ",
    ":=",
    "=>",
    '\\"',
    "%20",
    "\n",
    "\t",
    "\r",
    "\x00",
    "\x08",
    "\x0b",
]
OTHERS = [
    "abcd1234",
    "n",
    "u",
    "x0",
    "é",
    "漢",
    "\u212a",
    "\u2028",
    "\\u0074oken",
    "\\n",
    *KNOWN.values(),
]
fragments = st.lists(st.sampled_from([*NAMES, *SHAPES, *SIGNS, *OTHERS]), max_size=6)
texts = fragments.map("".join)


def values(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects and lists, and texts of JSON with blanks before it, as a tool's arguments are."""
    containers = st.lists(inside, max_size=3) | st.dictionaries(texts, inside, max_size=3)
    spelled = st.builds(
        json.dumps, containers, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 1])
    )
    return containers | st.builds("".join, st.tuples(st.sampled_from(["", " ", "\r\n\t"]), spelled))


anything = st.recursive(texts | st.integers() | st.none(), values, max_leaves=8)


@given(anything)
def test_what_is_called_clean_has_nothing_to_redact(value: Any) -> None:
    if redactor.are_clean_json([value]):
        assert redactor.redact(value) == (value, 0)


@pytest.mark.parametrize(
    "value",
    [
        *("token\t=abc", '\\\\\\"token\\\\\\" : "abc"', "a\napi key=abc", "bearer\tabcd1234"),
        *("http://\x0b:p\x0bw@host", "say sk-abcdefgh1234", "-----BEGIN RSA PRIVATE KEY-----"),
        *("is hunter2hunter2", 'is my "se\\cret"\nvalue', "is pä\x01ßwort"),
        *(
            {"api_key": 1},
            {"To\u212aen": 1},
            {"key\n id": 1},
            {"access key\nid": 1},
            {"token\\": 1},
        ),
        *({"headers\x1f": [1]}, {'env"': 1}, {"token=abc": 1}, {"hunter2hunter2": 1}),
        *('{"token": 1}', ' \n[{"\\u0074oken": 1}]', '{"a": "b\\/c"}', '{"auth\\"": 1}'),
        *('{"token\\t": 1}', '{"a": "{\\"token\\": 1}"}', {'{"env": {"a": 1}}': 1}),
    ],
)
def test_what_hides_behind_an_escape_or_says_so_in_a_key_is_told(value: Any) -> None:
    assert not redactor.are_clean_json([1, value])


@pytest.mark.parametrize(
    "value",
    [
        {"role": "user", "content": 'the key:\nmy "token", a password.\nheaders: none'},
        {"usage": {"prompt_tokens": 12, "completion_tokens": 3}},
        {"arguments": '{"path": "a/b.py", "text": "print(\\"x\\")\\n"}'},
        ["primary", "see https://example.org/a?b=c", "\x00\\", "Schlüssel: 漢字", 1.5, True],
    ],
)
def test_ordinary_content_is_called_clean(value: Any) -> None:
    assert redactor.are_clean_json([value])


@pytest.mark.parametrize("value", [object(), {1: "a"}, "\ud800", 2**64, {"a": b"bytes"}])
def test_what_is_no_json_is_not_called_clean(value: Any) -> None:
    assert not redactor.are_clean_json([value])


def test_a_secret_behind_a_megabyte_of_others_is_found() -> None:
    many = ["x" * 100_000] * 25
    assert redactor.are_clean_json(many)
    for at in (0, 12, 25):
        assert not redactor.are_clean_json([*many[:at], {"password": "abc"}, *many[at:]])


def test_no_name_arises_where_a_text_ends() -> None:
    assert not may_tell(json.dumps(["a token", ": abc", {"a": "token"}]).encode())
