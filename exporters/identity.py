"""Which prefix of which ledger an exported file was computed from."""

from dataclasses import dataclass, fields
from typing import Final, Self

from ledger.state import RunState

TRAILER_SCHEMA: Final = "acl.export.v1"


@dataclass(slots=True)
class Salvaged(RunState):
    """The state before event `damaged_at`, the first of a damaged ledger that is not as stored."""

    damaged_at: int = 0

    @classmethod
    def of(cls, state: RunState, damaged_at: int) -> Self:
        """The same state, which knows that the ledger went on."""
        known = {one.name: getattr(state, one.name) for one in fields(RunState)}
        return cls(**known, damaged_at=damaged_at)


@dataclass(frozen=True, slots=True)
class Identity:
    """A run, its ledger (id in hex), and the size and root (in hex) of the exported prefix.

    `damaged_at` is given where the prefix is what is left of a damaged ledger.
    """

    run_id: str
    ledger_id: str
    size: int
    root: str
    damaged_at: int | None = None

    @classmethod
    def of(cls, state: RunState) -> Self:
        """The identity of a state; raises RunNotFound where the ledger holds no run."""
        damaged_at = state.damaged_at if isinstance(state, Salvaged) else None
        return cls(state.run_id, state.ledger_id, state.size, state.root.hex(), damaged_at)

    def trailer(self, **more: object) -> dict[str, object]:
        """The object `acl` that ends every exported JSON object; `more` is what a file adds."""
        salvaged = {} if self.damaged_at is None else {"damaged_at": self.damaged_at}
        return {
            "schema": TRAILER_SCHEMA,
            "run_id": self.run_id,
            "ledger_id": self.ledger_id,
            "size": self.size,
            "root": self.root,
            **({"salvaged": salvaged} if salvaged else {}),
            **more,
        }
