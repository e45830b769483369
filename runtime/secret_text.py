"""Secrets inside text, found by their shape or by the name in front of them.

Every rule yields byte ranges of UTF-8 text. All searching is done by RE2, and what Python does per
match is bounded by the match, so time is linear in the text whatever it holds: no rule looks
further than it consumes, except for one line end or one bounded look ahead.
"""

import re
from collections.abc import Callable, Iterator

import re2

from runtime.secret_names import ORDINARY, is_secret_name, normalize

MASK = "********"
Span = tuple[int, int]

# A key may stand after an escape that was left in the text (`\nsk-…` in a repr, `%20sk-…` in a
# URL), where a plain word boundary sees a letter in front of it.
_BEFORE = rb"(?:\b|_|\\[abfnrtv]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2})"
SHAPES = rb"|".join(
    (
        rb"sk-[A-Za-z0-9_\-]{8,}",  # OpenAI, Anthropic and many who copy them
        rb"[rs]k_(?:live|test)_[A-Za-z0-9]{8,}",  # Stripe
        rb"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}",
        rb"glpat-[A-Za-z0-9_\-]{16,}",
        rb"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS access key ids
        rb"AIza[A-Za-z0-9_\-]{20,}",  # Google
        rb"xox[a-z]-[A-Za-z0-9\-]{8,}|xapp-[A-Za-z0-9\-]{8,}",  # Slack
        rb"hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}",
        rb"eyJ[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]{2,}(?:\.[A-Za-z0-9_\-]*)+",  # JWT, RFC 7519
    )
)
_PEM_NAME = rb"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_EOL = rb"(?:\s|\\[nr])*"
# Base64, header lines, and the quotes of a text that was put together from lines.
_PEM_BODY = rb"""[A-Za-z0-9+/=\s\\:,.()@"'`]"""
_PEM = (
    rb"-----BEGIN " + _PEM_NAME + rb"(?:"
    rb"(?:" + _PEM_BODY + rb"|-{1,4}" + _PEM_BODY + rb")*-----END " + _PEM_NAME + rb"|"
    # cut off: the lines of base64 that are there
    rb"(?:(?:" + _EOL + rb"[A-Za-z0-9+/=]{20,})+" + _EOL + rb"[A-Za-z0-9+/=]*)?)"
)
_USERINFO = rb"""://([^\s/?#"'`<>@:\\]*:([^\s/?#"'`<>\\]+))@"""
_BEARER = rb"([Bb][Ee][Aa][Rr][Ee][Rr])(?:[ \t]+|%20|\+)([A-Za-z0-9._~+/=%\-]{4,})"
# A bare `key` or `monkey` is no secret, so `key` needs a word before it.
NAME_ENDS = (
    rb"(?:(?i:authorization|cookie|jwt|password|passwd|passphrase|token|token[_.\-]?id|bearer|"
    rb"credential|secret|aksk|apikey|[_.\-]key|access[_.\-]?key[_.\-]?id)|"
    rb"[A-Za-z0-9]Key|[a-z0-9]KEY)"
)
TWO_WORDS = rb"(?i:(?:api|access|secret|auth|refresh|client|session|private) (?:key|secret|token))"
_TWO_WORDS = rb"\b" + TWO_WORDS
_ASSIGNED = rb"""\\{0,3}["'`]?\]?[ \t]*(=>|:=|=|:)"""
_SCHEME = rb"(?i:bearer|basic|digest|token|apikey|negotiate|ntlm)[ \t]+"
# Spaces and quotes, and the comma, full stop, semicolon and list comma of Chinese text.
_STOP = rb"""\s"'`\p{Z}\x{ff0c}\x{3002}\x{ff1b}\x{3001}"""

_shape = re2.compile(_BEFORE + rb"(" + SHAPES + rb")")
_pem = re2.compile(_PEM)
_userinfo = re2.compile(_USERINFO)
_bearer = re2.compile(_BEFORE + _BEARER)
_name = re2.compile(
    rb"(" + _TWO_WORDS + rb"|[A-Za-z0-9_.\-]*" + NAME_ENDS + rb")" + _ASSIGNED + rb"[ \t]*"
)
_quote = re2.compile(rb"""[bBrRuUfF]{0,2}(\\{0,3})(\"\"\"|'''|["'`])""")
_closed = {
    quote: re2.compile(rb"(?:[^" + quote + rb"\\\r\n]|\\[^\r\n])*" + quote)
    for quote in (b'"', b"'", b"`")
}
_bare = re2.compile(
    rb"((?:" + _SCHEME + rb")?[^" + _STOP + rb"]+?)"
    # the next pair of a list, a query or a call, or the end of the word
    rb"""(?:[,;&][\w.\-]+\\{0,3}["']?[=:]"""
    rb"|[)\]}>,;.:!?]*(?:\\*[" + _STOP + rb"]|\\[nrt]|\z))"
)
_header = re2.compile(
    rb"""(?:[A-Za-z][A-Za-z0-9\-]*[ \t]+)?[^\s,;"'`\\]+"""
    rb"""(?:[,;][ \t]*[^\s,;"'`\\=]+=[^\s,;"'`\\]*)*"""
)
_HEADERS = frozenset(("authorization", "proxy_authorization", "cookie", "set_cookie"))

# Written in place of a value: nothing to hide. A format string is a hole, not a value.
_placeholder = re2.compile(
    rb"(?:" + _SCHEME + rb")?(?:\*+|\$\{[A-Za-z_]\w*\}|\$[A-Z_][A-Z0-9_]*|\$\([^()]*\)"
    rb"|\{\{?\s*[A-Za-z_][\w.]*\s*\}?\}|<[^<>]*>|%s|%\(\w+\)s|\.{3,}|" + "…".encode() + rb")"
)
# Source code in trajectories: `token = next(it)`, `key_token: str`, `api_key=self.api_key`.
_call = re2.compile(rb"[A-Za-z_][\w.]*(?:\([^\r\n]{0,200}\)|\[[^\r\n]{0,200}\])")
_path = re2.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_LITERALS = frozenset(
    b"None null nil undefined true false True False str int bytes bool float object string "
    b"String break continue pass return".split()
)
_BEARER_PROSE = frozenset(
    b"token tokens auth authentication authorization scheme header headers format prefix "
    b"credential credentials value string type realm challenge error".split()
)
_BACKSLASH = 0x5C
# Shorter values are symbols of a program, not secrets.
_MIN_VALUE = 3
# No rule finds anything in less: `jwt=abc`, `://a:b@`.
MIN_TEXT = 7

_gate = re2.compile(
    b"|".join(
        (
            rb"-----BEGIN ",
            SHAPES,
            _BEARER,
            _USERINFO,
            rb"(?:" + _TWO_WORDS + rb"|" + NAME_ENDS + rb")" + _ASSIGNED,
        )
    )
)


def last_words(gap: bytes) -> bytes:
    """The last words of the names of secrets, and of what hides all below it (`secret_names`).

    `gap` matches one character that is no letter and no digit.
    """
    return (
        rb"(?i:auth|authentication|authorization|cookie|jwt|password|passwd|passphrase|token|"
        rb"bearer|credentials?|secret|key|(?:token|key)" + gap + rb"*id|aksk|headers|env|variables)"
    )


_GAP = rb"[^A-Za-z0-9]"
# In the text of JSON: an escaped letter or slash, or such a word at the end of a key or, in a
# value, before an escape, which the rules do not see through.
_hidden_by_json = re2.compile(rb"\\[u/]|" + last_words(_GAP) + _GAP + rb"*[\\:]")
_whole_field = re2.compile(rb"\s*(?:\$\{[A-Za-z_]\w*\}|\**)\s*")
_surrogate = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def may_hold_secret(text: str) -> bool:
    """False only if `mask_text` would change nothing; one pass, so cheap for joined texts."""
    return _gate.search(_searchable(text.encode("utf-8", "surrogatepass"))) is not None


def may_hide_secret(text: str) -> bool:
    """False only if reading `text` as JSON would show no key or text that tells of a secret.

    What stands in it plainly is not looked for: that is `may_hold_secret`.
    """
    data = _searchable(text.encode("utf-8", "surrogatepass"))
    return _hidden_by_json.search(data) is not None


def mask_text(text: str) -> tuple[str, int]:
    """Replace every secret that a shape or a name gives away; return the text and how many.

    Names stay: `password=hunter2` becomes `password=********`.
    """
    data = text.encode("utf-8", "surrogatepass")
    total = 0
    for rule in _RULES:
        spans = list(rule(_searchable(data)))
        if spans:
            data = _masked(data, spans)
            total += len(spans)
    return (data.decode("utf-8", "surrogatepass"), total) if total else (text, 0)


def is_placeholder(text: str) -> bool:
    """True for what stands where a value will be: `${NAME}`, or nothing but asterisks."""
    return _whole_field.fullmatch(text.encode("utf-8", "surrogatepass")) is not None


def _searchable(data: bytes) -> bytes:
    # RE2 wants valid UTF-8. A lone surrogate and U+FFFD both take three bytes, so ranges agree.
    return _surrogate.sub(b"\xef\xbf\xbd", data) if b"\xed" in data else data


def _masked(data: bytes, spans: list[Span]) -> bytes:
    mask = MASK.encode()
    pieces: list[bytes] = []
    done = 0
    for start, end in spans:
        pieces += (data[done:start], mask)
        done = end
    pieces.append(data[done:])
    return b"".join(pieces)


def _private_keys(data: bytes) -> Iterator[Span]:
    for match in _pem.finditer(data):
        yield match.span()


def _shapes(data: bytes) -> Iterator[Span]:
    for match in _shape.finditer(data):
        key = match.group(1)
        # `sk-` also begins ordinary hyphenated words
        if not key.startswith(b"sk-") or len(key) >= 19 or not key[3:].islower() or _digits(key):
            yield match.span(1)


def _digits(data: bytes) -> bool:
    return any(48 <= byte <= 57 for byte in data)


def _bearers(data: bytes) -> Iterator[Span]:
    for match in _bearer.finditer(data):
        scheme, token = match.group(1), match.group(2)
        word = token.strip(b"._~+/=%-")
        prose = scheme != b"Bearer" and word.isalpha() and word.islower() and len(word) < 16
        if not prose and word.lower() not in _BEARER_PROSE:
            yield match.span(2)


def _userinfos(data: bytes) -> Iterator[Span]:
    for match in _userinfo.finditer(data):
        if _placeholder.fullmatch(match.group(2)) is None:
            yield match.span(1)


def _assignments(data: bytes) -> Iterator[Span]:
    at = 0
    while (match := _name.search(data, at)) is not None:
        at = match.end()
        after = data[match.end(2) : match.end(2) + 2]
        # comparisons, scopes and schemes: `token == x`, `Token::new`, `token://x`
        if after[:1] in (b"=", b":") or after == b"//":
            continue
        name = _secret_name(data, match.start(1), match.group(1))
        span = _value_span(data, at, name) if name else None
        if span is not None:
            yield span
            at = span[1]


def _secret_name(data: bytes, start: int, raw: bytes) -> str | None:
    name = raw.decode("ascii", "replace")
    if start and data[start - 1] == _BACKSLASH and name[0] in "abfnrtv":
        # `\npassword=` in the repr of a text: the n is half of the escape, most likely
        rest = name[1:]
        if is_secret_name(rest):
            return rest
        if normalize(rest) in ORDINARY:
            return None
    return name if is_secret_name(name) else None


def _value_span(data: bytes, at: int, name: str) -> Span | None:
    quoted = _quote.match(data, at)
    if quoted is not None:
        start = quoted.end()
        end = _closing(data, start, quoted.group(1), quoted.group(2))
        if end is not None:
            return _hidden(data, start, end)
        at = start
    elif _call.match(data, at) is not None or _starts_with_placeholder(data, at):
        return None
    if normalize(name) in _HEADERS:
        match = _header.match(data, at)
        return _hidden(data, *match.span()) if match else None
    match = _bare.match(data, at)
    if match is None or _is_code(match.group(1), name):
        return None
    return _hidden(data, *match.span(1))


def _starts_with_placeholder(data: bytes, at: int) -> bool:
    match = _placeholder.match(data, at)
    return match is not None and not data[match.end() : match.end() + 1].isalnum()


def _closing(data: bytes, start: int, escape: bytes, quote: bytes) -> int | None:
    """Where the quoted value ends; None if the quote is not closed on its line."""
    if not escape and len(quote) == 1:
        match = _closed[quote].match(data, start)
        return match.end() - 1 if match else None
    end = data.find(escape + quote, start)
    one_line = end >= 0 and (len(quote) == 3 or b"\n" not in data[start:end])
    return end if one_line else None


def _hidden(data: bytes, start: int, end: int) -> Span | None:
    value = data[start:end]
    if len(value) < _MIN_VALUE or _placeholder.fullmatch(value) is not None:
        return None
    return start, end


def _is_code(value: bytes, name: str) -> bool:
    if value in _LITERALS:
        return True
    if _path.fullmatch(value) is None:
        return False
    # `token=token` and `api_key=settings.model_key` pass a value on
    last = value.rpartition(b".")[2].decode("ascii")
    own = normalize(last) == normalize(name.rpartition(".")[2])
    return own or (b"." in value and is_secret_name(last))


_RULES: tuple[Callable[[bytes], Iterator[Span]], ...] = (
    _private_keys,
    _shapes,
    _bearers,
    _userinfos,
    _assignments,
)
