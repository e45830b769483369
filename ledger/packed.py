"""Fields of a state that are kept in few bytes: a run has hundreds of thousands of attempts.

Numbers, digests, flags and words stand side by side in one `bytes` of the object; what most
objects lack stands in a dictionary that is made at the first need.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, Generic, Self, TypeVar, cast, overload

T = TypeVar("T")

_NUMBER: Final = struct.Struct(">Q")
_NO_NUMBER: Final = b"\xff" * 8
_DIGEST_BYTES: Final = 32
_NO_DIGEST: Final = bytes(1 + _DIGEST_BYTES)


class Packed:
    """What has fields of a `Layout`; equal to another of its class whose fields are all equal."""

    __slots__ = ("fixed", "rare")

    fixed: bytes
    """The fields of the layout; what a class stores behind them has no fixed length."""
    rare: dict[str, Any] | None

    def held(self, name: str) -> Any:
        """The value of a rare field, or None where it was neither set nor asked for."""
        return None if self.rare is None else self.rare.get(name)

    def plain(self) -> tuple[object, ...]:
        """What two equal ones have in common."""
        # One that was made and left as it was is as good as none.
        rare = (self.rare or {}).items()
        return self.fixed, {n: value for n, value in rare if value != getattr(type(self), n).make()}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.plain() == other.plain()

    __hash__ = None  # type: ignore[assignment] # its fields change


class Field(Generic[T]):
    """A field of `Packed`: read and set like any other."""

    @overload
    def __get__(self, one: None, kind: type) -> Self: ...
    @overload
    def __get__(self, one: Packed, kind: type) -> T: ...
    def __get__(self, one: Packed | None, kind: type) -> Self | T:
        return self if one is None else self.get(one)

    def __set__(self, one: Packed, value: T) -> None:
        raise NotImplementedError

    def get(self, one: Packed) -> T:
        """The value of the field of `one`."""
        raise NotImplementedError


class Layout:
    """The fixed-size fields of a class, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.blank = b""
        """The bytes of an object of which nothing was set yet."""

    def _place(self, blank: bytes) -> int:
        self.blank += blank
        return len(self.blank) - len(blank)

    def number(self) -> "Field[int | None]":
        """A number from 0 to 2^64 - 2, None by default."""
        return _Number(self._place(_NO_NUMBER))

    def count(self) -> "Field[int]":
        """A number from 0 to 2^64 - 1, 0 by default."""
        return _Count(self._place(bytes(8)))

    def digest(self) -> "Field[bytes | None]":
        """32 bytes, None by default."""
        return _Digest(self._place(_NO_DIGEST))

    def word(self, *words: T) -> "Field[T]":
        """One of these values, the first by default."""
        return _Word(self._place(bytes(1)), words)


class _Number(Field[int | None]):
    __slots__ = ("_at", "_end")

    def __init__(self, at: int) -> None:
        self._at, self._end = at, at + 8

    def get(self, one: Packed) -> int | None:
        found = one.fixed[self._at : self._end]
        return None if found == _NO_NUMBER else int.from_bytes(found, "big")

    def __set__(self, one: Packed, value: int | None) -> None:
        new = _NO_NUMBER if value is None else _NUMBER.pack(value)
        held = one.fixed
        one.fixed = held[: self._at] + new + held[self._end :]


class _Count(Field[int]):
    __slots__ = ("_at", "_end")

    def __init__(self, at: int) -> None:
        self._at, self._end = at, at + 8

    def get(self, one: Packed) -> int:
        return int.from_bytes(one.fixed[self._at : self._end], "big")

    def __set__(self, one: Packed, value: int) -> None:
        held = one.fixed
        one.fixed = held[: self._at] + _NUMBER.pack(value) + held[self._end :]


class _Digest(Field[bytes | None]):
    __slots__ = ("_at", "_end")

    def __init__(self, at: int) -> None:
        self._at, self._end = at, at + len(_NO_DIGEST)

    def get(self, one: Packed) -> bytes | None:
        return one.fixed[self._at + 1 : self._end] if one.fixed[self._at] else None

    def __set__(self, one: Packed, value: bytes | None) -> None:
        new = _NO_DIGEST if value is None else b"\x01" + value
        assert len(new) == len(_NO_DIGEST), "a digest has 32 bytes"
        held = one.fixed
        one.fixed = held[: self._at] + new + held[self._end :]


class _Word(Field[T]):
    __slots__ = ("_at", "_codes", "_words")

    def __init__(self, at: int, words: tuple[T, ...]) -> None:
        self._at, self._words = at, words
        self._codes = {word: code for code, word in enumerate(words)}

    def get(self, one: Packed) -> T:
        return self._words[one.fixed[self._at]]

    def __set__(self, one: Packed, value: T) -> None:
        at, held, code = self._at, one.fixed, self._codes[value]
        if held[at] != code:
            one.fixed = held[:at] + bytes((code,)) + held[at + 1 :]


class Rare(Field[T]):
    """A field that most objects lack; `make` gives its value for them.

    What is made is kept, so that a list can be added to, unless it is `shared`: then nobody may
    change it.
    """

    __slots__ = ("_name", "_shared", "make")

    def __init__(self, make: Callable[[], T], *, shared: bool = False) -> None:
        self.make, self._shared = make, shared

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def get(self, one: Packed) -> T:
        """The value of the field of `one`, made now if there was none."""
        held = one.rare
        if held is not None and self._name in held:
            return cast("T", held[self._name])
        made = self.make()
        if not self._shared:
            self._put(one, made)
        return made

    def __set__(self, one: Packed, value: T) -> None:
        if value or one.rare is not None:
            self._put(one, value)

    def _put(self, one: Packed, value: T) -> None:
        if one.rare is None:
            one.rare = {}
        one.rare[self._name] = value


def rare_or_none() -> "Rare[Any]":
    """A field that is None for most objects."""
    return Rare(_none, shared=True)


def _none() -> None:
    """What is not there."""
