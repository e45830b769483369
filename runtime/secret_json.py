"""Whether JSON text, as orjson writes it, can show or hide a secret: one search of all of it.

Each rule is one of `secret_text` or `secret_names` as it looks behind JSON's escapes, and says yes
rather too often: who asks looks at each value then. A no holds for every text and key within.
"""

from typing import Final

import re2

from runtime.secret_text import NAME_ENDS, SHAPES, TWO_WORDS, last_words

# One character of a text, and one that is no letter or digit, as they are written.
_ANY: Final = rb"""(?:[^"\\]|\\.)"""
_OTHER: Final = rb"""(?:[^A-Za-z0-9"\\]|\\(?:["\\bfnrt]|u[0-9a-f]{4}))"""
_BLANK: Final = rb"(?: |\\t)"
_NAME: Final = last_words(_OTHER)

_BEARER: Final = rb"[Bb][Ee][Aa][Rr][Ee][Rr](?:" + _BLANK + rb"+|%20|\+)[A-Za-z0-9._~+/=%\-]{4}"
# Control characters are no white space, but for some.
_USERINFO: Final = rb"""://(?:[^\s/?#"'`<>@:\\]|\\[bu])*:(?:[^\s/?#"'`<>\\]|\\[bu])+@"""
# Up to three backslashes and a quote; or a key, whose quote nothing stands before.
_ASSIGNED: Final = rb"""\\{0,7}["'`]?\]?""" + _BLANK + rb"*[:=]"
_KEY: Final = _NAME + _OTHER + rb"""*":"""
# A text or key that begins as JSON does, and in it an escape, or a name that hides something.
_JSON: Final = rb"""[\[{,:]"(?: |\\[nrt])*[\[{]""" + _ANY + rb"*"
_HIDDEN: Final = rb"(?:\\\\[u/]|" + _NAME + _OTHER + rb"*(?:\\\\|:))"

_may_tell = re2.compile(
    b"|".join(
        (
            rb"-----BEGIN ",
            SHAPES,
            _BEARER,
            _USERINFO,
            rb"(?:" + TWO_WORDS + rb"|" + NAME_ENDS + rb")" + _ASSIGNED,
            _KEY,
            _JSON + _HIDDEN,
        )
    )
)


def may_tell(data: bytes) -> bool:
    """False only if no text or key in `data` holds a secret, hides one, or tells of one."""
    return _may_tell.search(data) is not None
