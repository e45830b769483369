"""The canonical form a second time, slowly and from its description, to compare with."""

import base64
import hashlib
import math
import string

from hypothesis import strategies as st

from ledger.canonical import Binary

PIECE = 4096
BINARY_PIECE = 65_536


def float_text(number):
    """Fewest digits that read back; decimal from 0.00001 up to below 1e16, else an exponent."""
    digits = repr(abs(number))
    sign = "-" if math.copysign(1, number) < 0 else ""
    mantissa, _, exponent = digits.partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    figures = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0")
    if not figures:
        return sign + "0.0"
    if len(figures) <= point <= 16:
        return f"{sign}{figures}{'0' * (point - len(figures))}.0"
    if 0 < point <= 16:
        return f"{sign}{figures[:point]}.{figures[point:]}"
    if -5 < point <= 0:
        return f"{sign}0.{'0' * -point}{figures}"
    tail = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{tail}e{point - 1:+d}"


_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def json_text(text):
    """A JSON string with only the escapes that JSON demands."""
    return (
        '"' + "".join(_SHORT.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'
    )


def has_surrogate(text):
    return any(0xD800 <= ord(char) <= 0xDFFF for char in text)


def escaped(text):
    return "".join(
        "\\\\" if c == "\\" else f"\\u{ord(c):04x}" if has_surrogate(c) else c for c in text
    )


def key_text(key):
    if has_surrogate(key):
        return "$acl:" + escaped(key)
    return "$acl." + key if key.startswith("$acl") else key


def envelope(kind, *parts):
    return '{"$acl":[' + ",".join([f'"{kind}"', *parts]) + "]}"


class Reference:
    """Writes values; with `store` (digest to bytes) it cuts large ones."""

    def __init__(self, store=None):
        self.store = store

    def put(self, piece):
        digest = hashlib.sha256(piece)
        self.store[digest.digest()] = piece
        return digest.hexdigest()

    def encode(self, value):
        return self.write(value).encode()

    def write(self, value):
        match value:
            case str():
                return self.text(value)
            case Binary():
                return self.binary(value.data)
            case dict():
                entries = sorted((key_text(key), item) for key, item in value.items())
                # Keys are unique, so items are never compared.
                inside = ",".join(f"{json_text(key)}:{self.write(item)}" for key, item in entries)
                return "{" + inside + "}"
            case list() | tuple():
                return self.list(value)
            case _:
                return self.scalar(value)

    def scalar(self, value):
        match value:
            case None:
                return "null"
            case bool():
                return "true" if value else "false"
            case int():
                inside = -(2**63) <= value < 2**64
                return str(value) if inside else envelope("int", f'"{value:x}"')
            case float() if math.isfinite(value):
                return float_text(value)
            case float():
                name = "nan" if value != value else "inf" if value > 0 else "-inf"
                return envelope("float", f'"{name}"')

    def whole_text(self, text):
        return envelope("str", json_text(escaped(text))) if has_surrogate(text) else json_text(text)

    def text(self, text):
        if self.store is None or len(text) <= PIECE:
            return self.whole_text(text)
        digests = []
        while len(text) >= PIECE:
            digests.append(self.put(text[:PIECE].encode("utf-8", "surrogatepass")))
            text = text[PIECE:]
        return envelope("text", hex_list(digests), self.whole_text(text))

    def binary(self, data):
        digests = []
        if self.store is not None and len(data) > BINARY_PIECE:
            while len(data) >= BINARY_PIECE:
                digests.append(self.put(data[:BINARY_PIECE]))
                data = data[BINARY_PIECE:]
        return envelope("bytes", hex_list(digests), f'"{base64.b64encode(data).decode()}"')

    def list(self, items):
        written = [self.write(item) for item in items]
        digests, run = [], []
        if self.store is not None and any(isinstance(item, dict) for item in items):
            for item in written:
                run.append(item)
                if len(array(run).encode()) >= PIECE:
                    digests.append(self.put(array(run).encode()))
                    run = []
        else:
            run = written
        return envelope("list", hex_list(digests), array(run)) if digests else array(run)


def array(written):
    return "[" + ",".join(written) + "]"


def hex_list(digests):
    return "[" + ",".join(f'"{digest}"' for digest in digests) + "]"


def typed(value):
    """A hashable picture of a value: equal exactly for equal values of equal types."""
    match value:
        case dict():
            return ("dict", frozenset((key, typed(item)) for key, item in value.items()))
        case list() | tuple():
            return ("list", tuple(map(typed, value)))
        case float():
            return ("float", "nan" if value != value else value.hex())
        case _:
            return (type(value).__name__, value)


texts = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    [
        "",
        "\ud83d\ude00",
        "a\ud835",
        "\\ud800",
        "\\\ud800",
        "\x00",
        "\u2028",
        "\x1f",
        "0",
        "\x7f",
        "😀",
    ]
)
keys = texts | st.sampled_from(
    ["$acl", "$acl.", "$acl.$acl", "$acl:", "$acl:\\ud800", "$aclx\ud800", "$ac", "$", "text"]
)
integers = (
    st.integers(-3, 3)
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 2**53 + 1])
)
scalars = (
    st.none()
    | st.booleans()
    | integers
    | st.floats()
    | st.sampled_from([-0.0, 1.0, 1e16, 1e-5, 1e21])
    | texts
    | st.binary(max_size=9).map(Binary)
)
forged = st.sampled_from(
    [
        {"$acl": ["int", "10000000000000000"]},
        {"$acl": ["float", "nan"]},
        {"$acl": ["text", ["00" * 32], "rest"]},
        {"$acl": ["list", [], []]},
        {"$acl": 1, "b": 2},
        {"$acl.$acl": ["float", "inf"]},
    ]
)
values = st.recursive(
    scalars | forged,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
plain_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
)
plain_values = st.recursive(
    plain_scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(string.printable, max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def large_values(draw):
    """Values with parts around the sizes at which something is cut."""
    near = st.integers(-2, 2)
    odd = st.sampled_from(["x", "é", "😀", "\ud800", '"'])

    def text():
        return draw(odd) * max(0, draw(st.sampled_from([0, 1, 2])) * PIECE + draw(near))

    def item():
        size = draw(st.sampled_from([1, 700, 2000, PIECE - 14, PIECE]))
        return {"k": "y" * (size + draw(near) + 2), "n": draw(scalars)}

    items = [item() for _ in range(draw(st.integers(0, 5)))]
    nested = [{"inner": [item() for _ in range(draw(st.integers(0, 3)))]}, draw(values)]
    blob = Binary(b"z" * (draw(st.sampled_from([0, 1, 2])) * BINARY_PIECE + max(0, draw(near))))
    return {"text": text(), "items": items, "nested": nested, "texts": [text(), 1], "blob": blob}
