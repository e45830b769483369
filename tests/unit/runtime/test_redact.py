"""The gate: by key, by value, in tool arguments, in keys, and what must stay."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.redact import POLICY_VERSION, Redactor

MASK = "********"
KEY = "sk-live-0123456789abcdef"
plain = Redactor({})


def test_the_policy_has_a_version() -> None:
    assert POLICY_VERSION


def test_a_value_without_secrets_is_the_same_object() -> None:
    value = {"metrics": {"prompt_tokens_len": 800}, "stop_token": "</s>", "steps": [{"n": 1}, None]}
    assert plain.redact(value) == (value, 0)
    assert plain.redact(value)[0] is value


def test_a_leaf_under_a_secret_key_is_hidden_whatever_its_type() -> None:
    value = {"apiKey": "abc", "token": 123, "secret": True, "db_password": [1.5, "x"], "n": 1}
    assert plain.redact(value) == (
        {"apiKey": MASK, "token": MASK, "secret": MASK, "db_password": [MASK, MASK], "n": 1},
        5,
    )


@pytest.mark.parametrize("key", ["auth", "credentials", "headers", "env", "run_env_variables"])
def test_every_leaf_below_a_hiding_key_is_hidden(key: str) -> None:
    value = {key: {"Accept": "text/html", "deep": [{"x": 1}]}}
    assert plain.redact(value) == ({key: {"Accept": MASK, "deep": [{"x": MASK}]}}, 2)


@pytest.mark.parametrize(
    "kept", [None, "", {}, [], "${OPENAI_API_KEY}", {"env": "OPENAI_API_KEY"}, MASK]
)
def test_empty_values_and_placeholders_stay(kept: Any) -> None:
    value = {"api_key": kept, "model": {"headers": kept}}
    assert plain.redact(value) == (value, 0)
    assert plain.redact(value)[0] is value


def test_a_reference_that_holds_a_key_instead_of_a_name_is_hidden() -> None:
    assert plain.redact({"api_key": {"env": KEY}})[0] == {"api_key": {"env": MASK}}
    shape = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
    assert plain.redact({"api_key": {"env": shape}})[0] == {"api_key": {"env": MASK}}


@pytest.mark.parametrize(
    "name",
    [
        *("prompt_tokens", "max_tokens", "time_to_first_token", "stop_token", "eos_token"),
        *("pad_token", "bos_token", "primary_key", "cache_key", "answer_key", "sort_key"),
        *("foreign_key", "wrap_api_key"),
    ],
)
def test_ordinary_names_that_look_alike_keep_their_values(name: str) -> None:
    assert plain.redact({name: "abcdef"}) == ({name: "abcdef"}, 0)


def test_numbers_of_metrics_and_verdicts_stay_whatever_is_around_them() -> None:
    value = {
        "metrics": {"cost_per_token": 0.5, "auth": {"passed": 3}, "answer_token": 7},
        "auth": {"correct": True, "score": 0.25, "metrics": {"n": 1}},
    }
    assert plain.redact(value) == (value, 0)


def test_text_in_metrics_is_redacted_like_any_other() -> None:
    assert plain.redact({"metrics": {"note": f"used {KEY}"}}) == (
        {"metrics": {"note": f"used {MASK}"}},
        1,
    )


def test_secrets_are_found_in_every_text_however_deep() -> None:
    value: Any = f"key {KEY}"
    for _ in range(50):
        value = [{"a": value}]
    redacted, count = plain.redact(value)
    assert count == 1
    assert KEY not in json.dumps(redacted)


def test_keys_of_objects_are_redacted_and_none_is_lost() -> None:
    value = {f"{KEY}1": 1, f"{KEY}2": 2, MASK: 3, "token=abc": "x"}
    redacted, count = plain.redact(value)
    assert redacted == {f"{MASK} (2)": 1, f"{MASK} (3)": 2, MASK: 3, f"token={MASK}": MASK}
    assert count == 4
    assert plain.redact(redacted) == (redacted, 0)


def test_the_order_of_keys_and_items_stays() -> None:
    redacted, _ = plain.redact({"z": [KEY, "b", 3], "password": "abc", "a": 1})
    assert list(redacted.items()) == [("z", [MASK, "b", 3]), ("password", MASK), ("a", 1)]


def test_tool_arguments_are_redacted_inside_by_key_and_by_value() -> None:
    text = json.dumps({"command": f"run {KEY}", "password": "x1", "n": [1, 2.5, None]})
    redacted, count = plain.redact({"arguments": text})
    assert json.loads(redacted["arguments"]) == {
        "command": f"run {MASK}",
        "password": MASK,
        "n": [1, 2.5, None],
    }
    assert count == 2


@pytest.mark.parametrize(
    "text",
    [
        '{ "a" : 1.50, "b":\t"\\u00e9", "max_tokens": 5}',
        '{"key": NaN, "token_count": 1e400, "n": 123456789012345678901234567890}',
        "[1, 2 , 3]",
        '{"env": {}, "auth": null}',
        '{"a": "half',
        "{not json}",
    ],
)
def test_json_text_with_nothing_to_hide_stays_byte_for_byte(text: str) -> None:
    assert plain.redact(text) == (text, 0)
    assert plain.redact_text(text) == (text, 0)


def test_escapes_and_repeated_keys_hide_nothing_in_json_text() -> None:
    escaped = '{"a": "\\u0073k-live-0123456789abcdef"}'
    assert plain.redact(escaped) == ('{"a": "********"}', 1)
    words = ("first", "second", "third", "fourth")
    text = '{"password": "first", "password": "second", "x": "\\u0070assword=third"'
    redacted, count = plain.redact(text + ', "password": "fourth"}')
    assert count == 4
    assert not any(word in redacted for word in words)


def test_json_text_inside_json_text_is_redacted() -> None:
    inner = json.dumps({"headers": {"X": "value"}})
    redacted, count = plain.redact(json.dumps({"body": inner}))
    assert json.loads(json.loads(redacted)["body"]) == {"headers": {"X": MASK}}
    assert count == 1


def test_json_text_keeps_its_letters_and_its_lone_surrogates() -> None:
    assert plain.redact('{"é": 1, "token": "abc"}')[0] == '{"é": 1, "token": "********"}'
    redacted, _ = plain.redact('{"x": "\\ud835", "token": "abc"}')
    assert json.loads(redacted) == {"x": "\ud835", "token": MASK}


def test_values_of_secret_variables_are_hidden_whatever_their_shape() -> None:
    redactor = Redactor({"MY_API_KEY": "correct horse", "HOME": "/home/somebody"})
    value = {"log": "got correct horse from /home/somebody", "url": "http://h/?k=correct%20horse"}
    assert redactor.redact(value) == (
        {"log": f"got {MASK} from /home/somebody", "url": f"http://h/?k={MASK}"},
        2,
    )


def test_a_secret_that_is_given_is_hidden_whatever_its_shape() -> None:
    redactor = Redactor({}, ["battery staple", "short"])
    assert redactor.redact_text("a battery staple, in short") == (f"a {MASK}, in short", 1)


def test_a_variable_holding_asterisks_does_not_count_for_ever() -> None:
    redactor = Redactor({"MY_TOKEN": MASK})
    assert redactor.redact({"token": MASK}) == ({"token": MASK}, 0)


def test_objects_that_are_not_json_pass_untouched() -> None:
    odd = object()
    value = {"a": odd, 1: b"bytes", None: {2, 3}, "nan": math.nan, "x": KEY}
    redacted, count = plain.redact(value)
    assert count == 1
    assert redacted["a"] is odd
    assert redacted[1] == b"bytes"
    assert redacted[None] == {2, 3}
    assert math.isnan(redacted["nan"])


def test_tuples_come_back_as_lists_only_if_something_was_hidden() -> None:
    assert plain.redact((1, "a")) == ((1, "a"), 0)
    assert plain.redact((1, KEY)) == ([1, MASK], 1)


def test_the_given_value_is_never_changed() -> None:
    value = {"a": [KEY, {"token": "abc"}]}
    plain.redact(value)
    assert value == {"a": [KEY, {"token": "abc"}]}


def test_depth_and_cycles_and_sharing_do_no_harm() -> None:
    deep: Any = KEY
    for _ in range(50_000):
        deep = [deep]
    assert plain.redact(deep)[1] == 1
    cycle: list[Any] = [KEY]
    cycle.append(cycle)
    redacted, count = plain.redact(cycle)
    assert count == 1
    assert redacted[0] == MASK
    assert redacted[1] is redacted
    shared: Any = [KEY]
    for _ in range(60):  # as a tree, 2**60 leaves
        shared = [shared, shared]
    assert plain.redact(shared)[1] == 1


def test_json_text_too_deep_to_parse_is_still_searched() -> None:
    text = '{"a":' * 5_000 + f'"{KEY}"' + "}" * 5_000
    redacted, count = plain.redact(text)
    assert count == 1
    assert KEY not in redacted


@pytest.mark.parametrize("text", ["a" * 10**7, "{" * 10**7, "password " * 10**6])
def test_ten_megabytes_pass(text: str) -> None:
    assert plain.redact({"answer": text})[1] == 0


def test_a_key_is_found_at_the_end_of_ten_megabytes() -> None:
    redacted, count = plain.redact({"answer": "a" * 10**7 + " " + KEY})
    assert count == 1
    assert redacted["answer"].endswith("a " + MASK)


def test_the_error_of_a_judge_is_redacted_as_agentcompass_does_it() -> None:
    text = "material download failed: token=tok_abcdef0123 https://user:pw@example.org/x"
    assert plain.redact_text(text) == (
        "material download failed: token=******** https://********@example.org/x",
        2,
    )


PIECES = [
    *("password", "token", "api_key", "stop_token", "Authorization", "headers", "env", "auth"),
    *("=", ": ", ":", ",", ";", "&", " ", "\n", "(", ")", "[", "]", "{", "}", '{"', '": "', '"}'),
    *('"', "'", "\\", '\\"', "\\n", "hunter2", "a", "é", "\ud800", "\x00", "1", MASK, "*", "${X}"),
    *("Bearer ", KEY, "https://", "u:p@", "-----BEGIN PRIVATE KEY-----", "A" * 24, "value-of-env"),
    *("-----END PRIVATE KEY-----", '{"token": "a\\xb", "auth": {"k": "v"}}', '"a": 1, "a": 2'),
]
texts = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
keys = st.sampled_from(["token", "auth", "metrics", "score", "a", "max_tokens", "env"]) | texts
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=12
)
redactor = Redactor({"A_TOKEN": "value-of-env"})


@given(values)
@settings(max_examples=500)
def test_redacting_again_finds_nothing_more(value: Any) -> None:
    once, count = redactor.redact(value)
    assert redactor.redact(once) == (once, 0)
    if not count:
        assert once is value


def dumped(value: Any, times: int, escaped: bool) -> Any:
    for _ in range(times):
        text = json.dumps(value, ensure_ascii=escaped)
        value = {"output": text.replace("/", "\\/") if escaped else text}
    return value


odd_keys = st.sampled_from(
    ["api\tkey", "to\u212aen", "X-API-Key", "a b token ", "key id", "Denver"]
)
odd_texts = st.sampled_from(["bearer\tabcdef", "pass\u0077ord\t=abcdef", 'token\n"', "seven"])
odd_values = st.recursive(
    odd_texts | leaves,
    lambda inner: st.lists(inner) | st.dictionaries(keys | odd_keys, inner),
    max_leaves=8,
)


@given(odd_values, st.integers(0, 2), st.booleans())
@settings(max_examples=300)
def test_nothing_that_a_close_look_would_hide_passes_at_a_glance(
    value: Any, times: int, escaped: bool
) -> None:
    value = dumped(value, times, escaped)
    if redactor.is_clean(value):
        assert redactor._walk(value)[1] == 0


def test_ordinary_text_of_tools_passes_at_a_glance() -> None:
    output = json.dumps({"city": "Denver", "keyboard": "seven", "payment_id": "gift_1", "k": 3})
    assert redactor.is_clean({"role": "tool", "content": output})


@given(values, texts, texts)
@settings(max_examples=200)
def test_no_neighbours_bring_a_secret_through(value: Any, before: str, after: str) -> None:
    planted = "sk-planted-0123456789abcdef"
    text = f"{before} {planted} {after}"
    once, count = redactor.redact({"x": value, text: [{"y": text}, f"{before}value-of-env"]})
    assert planted not in repr(once)
    assert "value-of-env" not in repr(once)
    assert count >= 3


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())))
@settings(max_examples=200)
def test_any_text_passes_without_an_exception(text: str) -> None:
    redacted, count = redactor.redact_text(text)
    assert (redacted == text) == (count == 0)
