"""Secrets in text: shapes, names in front of values, and what only looks like one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.secret_text import MASK, is_placeholder, mask_text, may_hold_secret

SHAPES = [
    "sk-live-0123456789abcdef",
    "sk-proj-AbCdEfGh_0123456789",
    "sk-ant-api03-abcdefgh",
    "sk_live_0123456789abcdef",
    "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "github_pat_11ABCDEFG0123456789_abcdef",
    "glpat-0123456789abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "xoxb-123456789012-abcdefghijkl",
    "hf_abcdefghijklmnopqrstuvwxyz0123",
    "gsk_abcdefghijklmnopqrstuvwxyz0123",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "eyJhbGciOiJub25lIn0.e30.",
]
CONTEXTS = ["{}", "a {} b", "({})", "'{}',", "x\n{}\ty", "é{}", "\\n{} in a repr", "?q=a%20{}"]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("key", SHAPES)
def test_keys_of_known_shape_are_found_wherever_they_stand(key: str, context: str) -> None:
    masked, count = mask_text(context.format(key))
    assert (masked, count) == (context.format(MASK), 1)


@pytest.mark.parametrize(
    "text",
    [
        "task-oriented-dialogue and disk-encryption-policy",
        "import sk-learn",
        "bearer of bad news; the Bearer token; Bearer authentication",
        "max_tokens=100, prompt_tokens: 5, stop_token: </s>, primary_key=id, cache_key: abcdef",
        "key: value, monkey=abc, the key: look closer, turnkey: yes",
        "git@github.com:owner/repo https://host:8080/path?x=1 mailto:a@b.c",
        "time 12:30:45, token==abc, token != abc, Token::new(x), token://path",
        "password: ${DB_PASSWORD} PASSWORD=$DB_PASSWORD token=<your token> key_token={value}",
        "https://${USER}:${PASSWORD}@host https://user:********@host",
        "password: null, token=None, api_key: str, token: Optional[str] = None",
        "token = next(it)\napi_key=self.api_key\nf(token=token)\ntoken = tokens[i]\ntoken = '('",
        "password=, token: ''",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----",
    ],
)
def test_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert mask_text(text) == (text, 0)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter2", "password=********"),
        ("Password: hunter2.", "Password: ********."),
        ("API_KEY = abcdef ghi", "API_KEY = ******** ghi"),
        ("apiKey: 'abc def', n: 1", "apiKey: '********', n: 1"),
        ("export OPENAI_API_KEY=abcdef", "export OPENAI_API_KEY=********"),
        ("openai.api.key=abcdef", "openai.api.key=********"),
        ("API key: abcdef", "API key: ********"),
        ("--api-key=abcdef --n 2", "--api-key=******** --n 2"),
        ("(password=hunter2)", "(password=********)"),
        ("f(password=hunter2,x=1)", "f(password=********,x=1)"),
        ("?access_token=abcdef&page=2", "?access_token=********&page=2"),
        ("password=Tr0ub4dor&3,x", "password=********"),
        ("monkey=password=hunter2", "monkey=password=********"),
        ('{"api_key": "abc\\"def", "n": 1', '{"api_key": "********", "n": 1'),
        ('"{\\"token\\": \\"abcdef\\"}"', '"{\\"token\\": \\"********\\"}"'),
        ("{'Authorization': 'Basic dXNlcjpw'}", "{'Authorization': '********'}"),
        ("headers['X-Api-Key'] = \"abcdef\"", "headers['X-Api-Key'] = \"********\""),
        ("password='unclosed value", "password='******** value"),
        ('password="""three"""', 'password="""********"""'),
        ("Authorization: Basic dXNlcjpw\r\nHost: x", "Authorization: ********\r\nHost: x"),
        ("Cookie: sid=abc; theme=dark\nX: 1", "Cookie: ********\nX: 1"),
        ("repr: 'a\\npassword=hunter2\\nb'", "repr: 'a\\npassword=********\\nb'"),
        ("C:\\token=abcdef", "C:\\token=********"),
        ("\\nstop_token=abcdef", "\\nstop_token=abcdef"),
        ("password=пароль。дальше", "password=********。дальше"),
        ("password: 12345678", "password: ********"),
    ],
)
def test_values_of_secret_names_are_hidden_and_the_rest_kept(text: str, masked: str) -> None:
    assert mask_text(text)[0] == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Bearer abcdefghijklmnop", "Bearer ********"),
        ("authorization: bearer abc123", "authorization: bearer ********"),
        ("X-Custom-Auth: Bearer hdr-SECRET", "X-Custom-Auth: Bearer ********"),
        ("https://u:p@h/", "https://********@h/"),
        ("postgres://user:p%40ss@db:5432/x", "postgres://********@db:5432/x"),
        ("redis://:secret@host", "redis://********@host"),
        ("https://user:p@ss@host/", "https://********@host/"),
    ],
)
def test_bearers_and_passwords_in_urls_are_hidden(text: str, masked: str) -> None:
    assert mask_text(text) == (masked, 1)


@pytest.mark.parametrize("name", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\\n"])
def test_private_keys_are_hidden_whole(name: str, line_end: str) -> None:
    lines = [f"-----BEGIN {name}PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "MIIabc+/", "deF0=="]
    pem = line_end.join([*lines, f"-----END {name}PRIVATE KEY-----"])
    assert mask_text(f"before {pem} after") == ("before ******** after", 1)


def test_a_private_key_that_is_cut_off_is_hidden_as_far_as_it_goes() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\n" + "A" * 64 + "\n" + "B" * 64 + "\nCCC"
    assert mask_text(f"{pem}: end of log")[0] == "********: end of log"


def test_lone_surrogates_beside_and_inside_a_secret_do_no_harm() -> None:
    text = "\ud835 password=ab\udc00cd \ud83d\ude00 NUL \x00 \u2028 end"
    assert mask_text(text) == ("\ud835 password=******** \ud83d\ude00 NUL \x00 \u2028 end", 1)


@pytest.mark.parametrize("text", ["", "********", "${NAME}", " ${name_2} ", "***"])
def test_a_whole_field_placeholder_hides_nothing(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("text", ["${NAME}x", "$NAME", "x", "sk-${NAME}", "${not a name}"])
def test_text_around_a_placeholder_is_a_value(text: str) -> None:
    assert not is_placeholder(text)


PIECES = [
    *("password", "token", "api_key", "stop_token", "Authorization", "Cookie", "secret key"),
    *("=", ": ", ":", ":=", "=>", "==", "::", " ", "\n", "\t", ",", ";", "&", "?", ".", "/"),
    *('"', "'", "`", '"""', "\\", '\\"', "\\n", "(", ")", "[", "]", "{", "}", "<", ">", "@", "%20"),
    *("hunter2", "abc", "a", "é", "，", "\ud800", "\udc00", "\x00", "0", "********", "*", "${X}"),
    *("Bearer ", "Basic ", "sk-other-0123456789abcdef", "eyJhbGciOiJub25lIn0.e30.x", "https://"),
    *("u:p@", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "A" * 24, "-----"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@given(texts)
@settings(max_examples=600)
def test_the_gate_never_passes_a_text_that_has_something_to_hide(text: str) -> None:
    if not may_hold_secret(text):
        assert mask_text(text) == (text, 0)


@given(texts, st.sampled_from([shape for shape in SHAPES if "e30" not in shape]), texts)
@settings(max_examples=300)
def test_no_neighbours_bring_a_key_through(before: str, key: str, after: str) -> None:
    assert key not in mask_text(f"{before} {key} {after}")[0]


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "_key", "token=", 'token="', "token='\"", 'token=\\"', "token=a(", "token=<", "{"),
        *("-----BEGIN PRIVATE KEY-----", "bearer ", "://a:", "sk-", "eyJaaaaaa.", "token=a,"),
        *("cookie: a=b; ", "\\", "-", "[", " ", "\ud800", "ж", "token=$(", "authorization: a;"),
    ],
)
def test_hostile_repetition_ends(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert mask_text(text)[1] >= 0
