"""Which prefix of which ledger an exported file was computed from."""

from dataclasses import dataclass
from typing import Final, Self

from ledger.state import RunState

TRAILER_SCHEMA: Final = "acl.export.v1"


@dataclass(frozen=True, slots=True)
class Identity:
    """A run, its ledger (id in hex), and the size and root (in hex) of the exported prefix."""

    run_id: str
    ledger_id: str
    size: int
    root: str

    @classmethod
    def of(cls, state: RunState) -> Self:
        """The identity of a state; raises RunNotFound where the ledger holds no run."""
        return cls(state.run_id, state.ledger_id, state.size, state.root.hex())

    def trailer(self, **more: object) -> dict[str, object]:
        """The object `acl` that ends every exported JSON object; `more` is what a file adds."""
        return {
            "schema": TRAILER_SCHEMA,
            "run_id": self.run_id,
            "ledger_id": self.ledger_id,
            "size": self.size,
            "root": self.root,
            **more,
        }
