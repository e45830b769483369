"""What is fuzzed: where inputs come from, how they are changed, and what must hold for each."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from tests.fuzz import trees


class Target(ABC):
    """One entry point of the product for what strangers wrote."""

    name: str

    @abstractmethod
    def seeds(self) -> Iterable[bytes]:
        """Valid inputs."""

    @abstractmethod
    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        """Another input, made from this one and perhaps a part of `others`."""

    @abstractmethod
    def reduced(self, data: bytes) -> Iterator[bytes]:
        """Smaller inputs that may do the same, the smallest first."""

    def prepare(self, data: bytes, home: Path) -> None:  # noqa: B027 - not all write files
        """Write what an input tells to an empty directory."""

    @abstractmethod
    def run(self, data: bytes, home: Path) -> Iterable[str]:
        """Give an input to the product, in its prepared directory, and say what came of it.

        Errors of the AclError tree may leave it. AssertionError says what does not hold.
        """


class TreeTarget(Target):
    """One that is given trees of files, told as recipes."""

    recipes: trees.Recipes

    def seeds(self) -> Iterable[bytes]:
        return self.recipes.seeds()

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        return self.recipes.mutate(data, others, random)

    def reduced(self, data: bytes) -> Iterator[bytes]:
        return trees.reduced(data)


def holds(fact: object, why: str) -> None:
    """Raise AssertionError, which is a finding; `python -O` does not take this away."""
    if not fact:
        raise AssertionError(why)
