"""A ledger as it reads after an erasure: bodies and pieces that are gone."""

from collections.abc import Iterator
from dataclasses import replace

from ledger import canonical
from ledger.errors import RunNotFound
from ledger.view import LedgerView, Recorded


class Erased:
    """Passes a view on without some bodies, and without the pieces of large values."""

    def __init__(self, view: LedgerView, *bodies: int, pieces: bool = False) -> None:
        self._view = view
        self._bodies = set(bodies)
        self._pieces = pieces

    def events(self, until: int | None = None) -> Iterator[Recorded]:
        return (self._shown(recorded) for recorded in self._view.events(until=until))

    def event(self, seq: int) -> Recorded:
        return self._shown(self._view.event(seq))

    def blob(self, digest: bytes) -> bytes:
        if self._pieces:
            raise RunNotFound(f"blob {digest.hex()} was erased")
        return self._view.blob(digest)

    def resolve(self, value: object) -> object:
        return canonical.resolve(value, self.blob)

    def _shown(self, recorded: Recorded) -> Recorded:
        return replace(recorded, event=None) if recorded.seq in self._bodies else recorded
