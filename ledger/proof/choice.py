"""Which of a ledger's checkpoints a proof is made for."""

from collections.abc import Iterator
from typing import Protocol

from ledger import note, sidefile
from ledger.errors import ProofInvalid


class Checkpoints(Protocol):
    """Where checkpoints are kept; a `LedgerView` is one."""

    def published(self) -> Iterator[tuple[int, str]]:
        """Yield (size, note) of each."""
        ...


def covering(
    held: Checkpoints, size: int, *, most: int | None = None, like: note.SignedNote | None = None
) -> bytes | None:
    """Return the newest checkpoint of at least `size` events (and at most `most`), if there is one.

    Signed ones come before unsigned ones, and those that a signer of `like` signed before both.
    Raises ProofInvalid where what is kept is no checkpoint.
    """
    wanted = {(one.name, one.key_id) for one in like.signatures} if like else set()
    best: tuple[int, int] | None = None
    found = None
    for at, text in held.published():
        if at < size or (most is not None and at > most):
            continue
        rank = (_rank(sidefile.parse(text.encode()), wanted, at), at)
        if best is None or rank >= best:
            best, found = rank, text.encode()
    return found


def _rank(claim: sidefile.Claim, wanted: set[tuple[str, bytes]], size: int) -> int:
    if claim.checkpoint.size != size:
        raise ProofInvalid(f"the checkpoint kept for {size} events is of another size")
    if claim.signed is None:
        return 0
    return 2 if any((s.name, s.key_id) in wanted for s in claim.signed.signatures) else 1
