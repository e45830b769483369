"""The canonical form: plain JSON with sorted keys, and one reserved key for what JSON cannot say.

Keys are sorted by code point, there are no spaces, and 1, 1.0 and -0.0 are three values. Equal
values give equal bytes. Floats are written with the fewest digits that read back, as decimals from
0.00001 up to below 1e+16, else with an exponent. The reserved key `$acl` opens an envelope::

    {"$acl":["int", hex]}                    beyond 64 bits: sign, lower-case digits
    {"$acl":["float", "nan"|"inf"|"-inf"]}   every NaN is the same value
    {"$acl":["str", escaped]}                text with lone surrogates, see `escape`
    {"$acl":["text", [digest...], rest]}     pieces of 4,096 characters, UTF-8
    {"$acl":["list", [digest...], [rest]]}   pieces: arrays of at least 4,096 bytes
    {"$acl":["bytes", [digest...], base64]}  pieces of 65,536 bytes; often there are none

A key of the user's that begins with `$acl` is escaped, so no data can imitate an envelope. Tuples
are written as lists. Refused, with the path: other keys than text, bare bytes, sets, numpy
scalars, enums, dates and every other object, subclasses of the plain types, nesting over 200.

>>> encode({"b": 1.0, "a": [1, None], "$acl": 2**64})
b'{"$acl.$acl":{"$acl":["int","10000000000000000"]},"a":[1,null],"b":1.0}'
"""

from ledger.canonical.cutting import Spill
from ledger.canonical.decoding import (
    decode,
    decode_canonical,
    decode_with_spelling,
    is_canonical,
    spelled_again,
)
from ledger.canonical.encoding import encode, has_envelopes
from ledger.canonical.pruning import prune
from ledger.canonical.references import (
    DEFAULT_BUDGET,
    Fetch,
    pieces,
    reachable,
    references,
    resolve,
)
from ledger.canonical.values import (
    BINARY_PIECE,
    MAX_DEPTH,
    PIECE,
    Binary,
    SpilledBinary,
    SpilledList,
    SpilledText,
)

__all__ = [
    "BINARY_PIECE",
    "DEFAULT_BUDGET",
    "MAX_DEPTH",
    "PIECE",
    "Binary",
    "Fetch",
    "Spill",
    "SpilledBinary",
    "SpilledList",
    "SpilledText",
    "decode",
    "decode_canonical",
    "decode_with_spelling",
    "encode",
    "has_envelopes",
    "is_canonical",
    "pieces",
    "prune",
    "reachable",
    "references",
    "resolve",
    "spelled_again",
]
