"""Who signed which checkpoints: by the keys that the auditor brought, and by a policy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from ledger import note
from ledger.errors import ProofInvalid
from ledger.verify.finding import Finding, broken, remark, unproven

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN: Final = 3


class Policy(Protocol):
    """Whose signatures make a checkpoint good enough."""

    @property
    def verifiers(self) -> Sequence[note.Verifier]:
        """The keys that it names."""
        ...

    def fault(self, signed: note.SignedNote) -> str | None:
        """Say why a note is not good enough, or None if it is."""
        ...


@dataclass(frozen=True, slots=True)
class _Signed:
    """The largest checkpoint that a key signed; `time` is a witness's."""

    verifier: note.Verifier
    size: int
    time: int | None


class Signatures:
    """Judges signed checkpoints whose roots agree with the tree, in the order of their sizes."""

    def __init__(self, verifiers: Sequence[note.Verifier], policy: Policy | None) -> None:
        self._given = bool(verifiers) or policy is not None
        self._verifiers = (*verifiers, *(policy.verifiers if policy else ()))
        self._policy = policy
        self._policy_fault: str | None = "no checkpoint is signed"
        self._policy_size = 0
        self._last: dict[tuple[str, bytes], _Signed] = {}
        self._unknown: dict[str, None] = {}

    def judge(self, name: str, size: int, signed: note.SignedNote) -> Iterator[Finding]:
        """Look at the lines of the checkpoint called `name`; tell of a signature that is false."""
        known = {(one.name, one.key_id) for one in self._verifiers}
        for line in signed.signatures:
            if (line.name, line.key_id) not in known:
                self._unknown[f"{line.name}+{line.key_id.hex()}"] = None
        try:
            good = note.good_lines(signed, self._verifiers)
        except ProofInvalid as error:
            yield broken("signature", f"{name} at {size} events: {error.message}")
            return
        for verifier, line in good:
            time = verifier.time_of(line.signature)
            self._last[verifier.name, verifier.key_id] = _Signed(verifier, size, time)
        if self._policy is not None:
            fault = self._policy.fault(signed)
            if fault is None:
                self._policy_size = size
            self._policy_fault = fault

    def summarize(self, size: int) -> Iterator[Finding]:
        """Say who signed how much of `size` events, and whether the policy is met."""
        if self._policy is not None:
            yield self._judged_by_policy()
            if 0 < self._policy_size < size:
                why = f"events {self._policy_size} to {size - 1} do not meet the policy"
                yield unproven("policy_since", why, self._policy_size)
        for one in self._last.values():
            if one.time is None:
                what = f"the first {one.size} events are signed by {one.verifier.name}"
                yield remark("signed", what)
            else:
                what = f"witness {one.verifier.name} says that it saw the first {one.size} events"
                yield remark("cosigned", f"{what} at {_moment(one.time)}")
        signed = [one.size for one in self._last.values() if one.time is None]
        if not signed:
            yield unproven("unsigned", f"who wrote this ledger is not proven: {self._why()}")
        elif max(signed) < size:
            why = f"events {max(signed)} to {size - 1} are signed by no given key of a log"
            yield unproven("unsigned_since", why, max(signed))

    def _judged_by_policy(self) -> Finding:
        if self._policy_size:
            return remark("policy_met", f"the first {self._policy_size} events meet the policy")
        return unproven("policy", f"the policy is not met: {self._policy_fault}")

    def _why(self) -> str:
        if not self._unknown and not self._last:
            return "it holds no signature"
        if not self._given:
            return f"no key was given; it says that it is signed by {self._others()}"
        others = f"; it says that it is signed by {self._others()}" if self._unknown else ""
        return f"no given key of a log signed a checkpoint{others}"

    def _others(self) -> str:
        names = list(self._unknown)
        more = len(names) - _SHOWN
        return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _moment(seconds: int) -> str:
    try:
        return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return f"second {seconds}"
