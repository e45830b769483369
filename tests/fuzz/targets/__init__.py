"""Everything that is fuzzed, by name."""

from collections.abc import Mapping

from tests.fuzz.target import Target
from tests.fuzz.targets.commands import Commands, Tiles
from tests.fuzz.targets.imports import IMPORTS
from tests.fuzz.targets.ledger import Recovering, Telling, Verifying
from tests.fuzz.targets.texts import TEXTS


def targets() -> Mapping[str, Target]:
    """All targets, in the order in which they run."""
    return {
        one.name: one
        for one in (Verifying(), Recovering(), Telling(), Commands(), Tiles(), *IMPORTS, *TEXTS)
    }
