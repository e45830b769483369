"""Mutations of texts that have lines and words: notes, proofs, policies, keys, messages."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from random import Random

from tests.fuzz import texts

_WORDS = (
    b"",
    b" ",
    b"\n",
    b"\n\n",
    b"\r\n",
    b"0",
    b"1",
    b"-1",
    b"01",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551616",
    b"9" * 5000,
    "٣".encode(),
    "— ".encode(),
    "\u2028".encode(),
    "\x85".encode(),
    b"\xed\xa0\x80",
    b"\xff",
    b"\0",
    b"\x1b[2J",
    b"+",
    b"/",
    b"=",
    b"..",
    b"none",
    b"all",
    b"any",
    b"AAAA",
    b"A" * 70_000,
)
_NUMBER = re.compile(rb"[0-9]+")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")


def mutate(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Another text, made from this one and perhaps lines of `others`."""
    match random.randrange(9):
        case 0:
            return _lines(data, random.choice(others) if others else data, random)
        case 1:
            return _replaced(_NUMBER, data, random.choice(_WORDS), random)
        case 2:
            return _replaced(_BASE64, data, _coded(random), random)
        case 3:
            at = random.randrange(len(data) + 1)
            return data[:at] + random.choice(_WORDS) + data[at:]
        case 4 if others:
            other = random.choice(others)
            cut, there = random.randrange(len(data) + 1), random.randrange(len(other) + 1)
            return data[:cut] + other[there:]
        case 5 | 6:
            edit = texts.json_edit(data, random)
            if edit is not None:
                return texts.edit_json(data, *edit)
        case 7:
            found = [*_BASE64.finditer(data)]
            if found:
                one = random.choice(found)
                at = random.randrange(one.start(), one.end())
                return (
                    data[:at] + random.choice((b"A", b"B", b"/", b"=", b"", b"-")) + data[at + 1 :]
                )
    return texts.splice(data, *texts.byte_edit(data, random))


def reduced(data: bytes) -> Iterator[bytes]:
    """Without lines, without bytes."""
    lines = data.split(b"\n")
    for index in range(len(lines)):
        yield b"\n".join(lines[:index] + lines[index + 1 :])
    size = len(data) // 2
    while size:
        for at in range(0, len(data), size):
            yield data[:at] + data[at + size :]
        size //= 2


def _lines(data: bytes, other: bytes, random: Random) -> bytes:
    lines, more = data.split(b"\n"), other.split(b"\n")
    at = random.randrange(len(lines))
    match random.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, random.choice(more))
        case 2:
            lines[at : at + 1] = [lines[at]] * random.choice((2, 3, 64, 101))
        case _:
            there = random.randrange(len(lines))
            lines[at], lines[there] = lines[there], lines[at]
    return b"\n".join(lines)


def _replaced(what: "re.Pattern[bytes]", data: bytes, new: bytes, random: Random) -> bytes:
    found = [*what.finditer(data)]
    if not found:
        return data + new
    one = random.choice(found)
    return data[: one.start()] + new + data[one.end() :]


def _coded(random: Random) -> bytes:
    return b64encode(random.randbytes(random.choice((0, 1, 4, 31, 32, 33, 36, 68, 76, 200))))


_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|/\S*|[0-9a-f]{8,}|\d+")


def shape(message: str) -> str:
    """A message without what differs from one input to the next."""
    return _VARIABLE.sub("*", message[:300])
