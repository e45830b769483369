r"""Spelling of texts and object keys that JSON or the reserved key cannot take as they are.

A text with lone surrogates is written with each surrogate as `\` `u` and four lower-case hex digits
and each backslash doubled; this spelling then goes into JSON like any other text. A pair of
surrogates that are two code points stays two: each is escaped alone.

A key that begins with `$acl` is written `$acl.` + key; a key with lone surrogates `$acl:` + its
escaped spelling, whatever it begins with. No other key begins with `$acl`.
"""

import re

from ledger.errors import LedgerDamaged

RESERVED = "$acl"
_PLAIN_MARK = RESERVED + "."
_ESCAPED_MARK = RESERVED + ":"

_SURROGATE_OR_BACKSLASH = re.compile("[\ud800-\udfff\\\\]")
_ESCAPED = re.compile(r"\\(?:\\|u(d[89a-f][0-9a-f]{2}))")


def has_surrogate(text: str) -> bool:
    """Tell whether `text` cannot be written as UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def escape_text(text: str) -> str:
    """Spell any text without surrogates; `unescape_text` gives it back."""
    return _SURROGATE_OR_BACKSLASH.sub(_escape_one, text)


def _escape_one(match: re.Match[str]) -> str:
    char = match.group()
    return "\\\\" if char == "\\" else f"\\u{ord(char):04x}"


def unescape_text(spelling: str) -> str:
    """Read what `escape_text` wrote.

    Raises LedgerDamaged for a spelling that `escape_text` would not have chosen, and for one
    without surrogates, which needs no escape.
    """
    text = _ESCAPED.sub(_unescape_one, spelling)
    if escape_text(text) != spelling or not has_surrogate(text):
        raise LedgerDamaged("a text is escaped in another way than the canonical one")
    return text


def _unescape_one(match: re.Match[str]) -> str:
    digits = match.group(1)
    return chr(int(digits, 16)) if digits else "\\"


def escape_key(key: str) -> str:
    """Spell an object key so that it is UTF-8 and never reads as the reserved key."""
    if has_surrogate(key):
        return _ESCAPED_MARK + escape_text(key)
    return _PLAIN_MARK + key if key.startswith(RESERVED) else key


def unescape_key(spelling: str) -> str:
    """Read what `escape_key` wrote; raise LedgerDamaged for a spelling it would not have chosen."""
    if not spelling.startswith(RESERVED):
        return spelling
    if spelling.startswith(_PLAIN_MARK + RESERVED):
        return spelling.removeprefix(_PLAIN_MARK)
    if spelling.startswith(_ESCAPED_MARK):
        return unescape_text(spelling.removeprefix(_ESCAPED_MARK))
    raise LedgerDamaged(f"an object uses the reserved key {RESERVED} in an unknown way")
