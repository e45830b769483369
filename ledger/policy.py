"""Whose signatures make a checkpoint good enough: policy files as in C2SP tlog-policy.

    log <verifier key> [<url>]
    witness <name> <verifier key> [<url>]
    group <name> <k|any|all> <members…>
    quorum <name|none>

One statement a line, `#` begins a comment; names are used after they were defined. A checkpoint is
good if the key of a log signed it, and the witnesses of the quorum cosigned it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ledger import note
from ledger.errors import KeyRefused, ProofInvalid, UsageError
from ledger.keys import LogKey, Verifier, WitnessKey, parse_verifier, refuse_signing_key

_NONE: Final = "none"
_MOST_BYTES: Final = 1_000_000
_COUNT: Final = re.compile(r"[1-9][0-9]{0,5}")
_HINT: Final = "a policy holds lines of log, witness and group, and one of quorum"


@dataclass(frozen=True, slots=True)
class Group:
    """So many of its members, witnesses or groups, must have signed."""

    needed: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The keys of logs, the keys of witnesses by name, and what is asked of the witnesses."""

    logs: tuple[LogKey, ...]
    witnesses: Mapping[str, WitnessKey]
    groups: Mapping[str, Group]
    quorum: str | None

    @property
    def verifiers(self) -> tuple[Verifier, ...]:
        """All keys."""
        return (*self.logs, *self.witnesses.values())

    def fault(self, signed: note.SignedNote) -> str | None:
        """Say why a checkpoint is not good enough, or None if it is."""
        try:
            good = note.signers_of(signed, self.verifiers)
        except ProofInvalid as error:
            return error.message
        if not any(isinstance(one, LogKey) for one in good):
            return "no log of the policy signed it"
        signers = {one.name for one in good if isinstance(one, WitnessKey)}
        names = {
            name for name, key in self.witnesses.items() if key.name in signers and key in good
        }
        if self.quorum is not None and not self._holds(self.quorum, names):
            return f"the quorum {self.quorum!r} is not reached: {self._told(names)}"
        return None

    def _holds(self, name: str, signers: set[str]) -> bool:
        group = self.groups.get(name)
        if group is None:
            return name in signers
        return sum(self._holds(member, signers) for member in group.members) >= group.needed

    def _told(self, signers: set[str]) -> str:
        who = ", ".join(sorted(signers)) or "none"
        return f"of {len(self.witnesses)} witnesses signed {who}"


def parse_policy(data: bytes) -> Policy:
    """Read a policy file; UsageError names the line that cannot be understood."""
    if len(data) > _MOST_BYTES:
        raise UsageError(f"a policy of {len(data)} bytes is not read", hint=_HINT)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise UsageError("the policy is not UTF-8", hint=_HINT) from None
    draft = _Draft()
    for number, words in _statements(text):
        try:
            draft.take(words)
        except KeyRefused as error:
            raise KeyRefused(f"line {number} of the policy: {error.message}") from error
        except _Refused as error:
            raise UsageError(f"line {number} of the policy: {error}", hint=_HINT) from error
    return draft.finish()


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.split("\n"), 1):
        words = [word for word in re.split("[ \t]+", line.removesuffix("\r")) if word]
        if words and not words[0].startswith("#"):
            yield number, words


class _Refused(Exception):
    """Why a line cannot be understood."""


class _Draft:
    """A policy as far as it was read."""

    def __init__(self) -> None:
        self.logs: list[LogKey] = []
        self.witnesses: dict[str, WitnessKey] = {}
        self.groups: dict[str, Group] = {}
        self.quorum: list[str | None] = []
        self._keys: set[bytes] = set()
        self._members: set[str] = set()

    def take(self, words: list[str]) -> None:
        """Add one statement; _Refused or KeyRefused if it cannot be understood."""
        for word in words:
            # What is refused is quoted, and a name stands in what is told later.
            refuse_signing_key(word)
        match words:
            case ["log", key] | ["log", key, _]:
                self.logs.append(LogKey.parse(key))
                self._once(self.logs[-1].public)
            case ["witness", name, key] | ["witness", name, key, _]:
                self._define(name)
                witness = parse_verifier(key)
                if not isinstance(witness, WitnessKey):
                    raise _Refused("this is the key of a log, not of a witness")
                self._once(witness.public)
                self.witnesses[name] = witness
            case ["group", name, needed, *members] if members:
                self._define(name)
                self.groups[name] = self._group(needed, members)
            case ["quorum", name]:
                if name != _NONE and name not in self.witnesses and name not in self.groups:
                    raise _Refused(f"{name!r} was not defined")
                self.quorum.append(None if name == _NONE else name)
            case _:
                # It may be a part of a signing key.
                first = words[0].partition("+")[0][:20]
                raise _Refused(f"{first!r} and {len(words) - 1} more words are no statement")

    def _once(self, public: bytes) -> None:
        # One key under several names would count as several.
        if public in self._keys:
            raise _Refused("this public key was named before")
        self._keys.add(public)

    def _define(self, name: str) -> None:
        if name == _NONE or name in self.witnesses or name in self.groups:
            raise _Refused(f"{name!r} cannot be defined, or was before")

    def _group(self, needed: str, members: list[str]) -> Group:
        for member in members:
            if member not in self.witnesses and member not in self.groups:
                raise _Refused(f"{member!r} was not defined")
            if member in self._members:
                raise _Refused(f"{member!r} is in a group already")
            self._members.add(member)
        count = {"any": 1, "all": len(members)}.get(needed)
        if count is None:
            if not _COUNT.fullmatch(needed) or int(needed) > len(members):
                raise _Refused(f"{needed!r} of {len(members)} members cannot be asked for")
            count = int(needed)
        return Group(count, tuple(members))

    def finish(self) -> Policy:
        """Return the policy; UsageError if it lacks a log or its quorum."""
        if not self.logs:
            raise UsageError("the policy names no log", hint=_HINT)
        if len(self.quorum) != 1:
            raise UsageError(f"the policy has {len(self.quorum)} quorum lines, not one", hint=_HINT)
        return Policy(tuple(self.logs), self.witnesses, self.groups, self.quorum[0])
