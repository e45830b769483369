"""Benchmarks, harnesses, environments, recipes and analyzers by id, from entry points.

Built-ins come by the same road as anybody's plug-in. A plug-in is loaded when it is first asked
for, so that a broken one breaks only the runs that name it.
"""

from collections.abc import Callable, Iterable
from importlib import metadata
from typing import Any, Protocol

from ledger.errors import UsageError
from runtime.containment import contained, named
from runtime.contracts import BaseAnalyzer, BaseEnvironment, BaseHarness, BaseRecipe, Benchmark


class EntryPoint(Protocol):
    """The part of `importlib.metadata.EntryPoint` that is used."""

    @property
    def name(self) -> str:
        """The id of the plug-in."""

    def load(self) -> Any:
        """Import the module and return the class."""


Source = Callable[[str], Iterable[EntryPoint]]
"""Gives the entry points of a group."""


def installed(group: str) -> Iterable[EntryPoint]:
    """The entry points of everything that is installed."""
    return metadata.entry_points(group=group)


class Plugins:
    """The plug-ins of one program; `source` says where entry points are found."""

    def __init__(self, source: Source = installed) -> None:
        self._source = source

    def benchmark(self, benchmark_id: str) -> Benchmark:
        """A new benchmark of this id; UsageError names the known ones if there is none."""
        made: Benchmark = self._new("acl.benchmarks", "benchmark", benchmark_id, Benchmark)
        return made

    def harness(self, harness_id: str) -> BaseHarness:
        """A new harness of this id."""
        made: BaseHarness = self._new("acl.harnesses", "harness", harness_id, BaseHarness)
        return made

    def environment(self, environment_id: str) -> BaseEnvironment:
        """A new environment of this id."""
        made: BaseEnvironment = self._new(
            "acl.environments", "environment", environment_id, BaseEnvironment
        )
        return made

    def recipe(self, recipe_id: str) -> BaseRecipe:
        """A new recipe of this id."""
        made: BaseRecipe = self._new("acl.recipes", "recipe", recipe_id, BaseRecipe)
        return made

    def analyzers(self) -> list[BaseAnalyzer]:
        """One of each analyzer, by id."""
        ids = self.ids("acl.analyzers")
        return [self._new("acl.analyzers", "analyzer", name, BaseAnalyzer) for name in ids]

    def ids(self, group: str) -> list[str]:
        """The ids known in a group, sorted."""
        return sorted({point.name for point in self._source(group)})

    def _new(self, group: str, what: str, wanted: str, base: type) -> Any:
        points = {point.name: point for point in self._source(group)}
        if wanted not in points:
            known = ", ".join(sorted(points)) or "none is installed"
            raise UsageError(f"there is no {what} {wanted!r}", hint=f"known: {known}")
        try:
            with contained():
                made = points[wanted].load()()
        except Exception as error:  # a plug-in may raise anything
            raise UsageError(
                f"the {what} {wanted!r} cannot be loaded: {named(error)}",
                hint="repair or uninstall the package that provides it",
            ) from error
        if not isinstance(made, base):
            raise UsageError(f"the {what} {wanted!r} is no {base.__name__}")
        own = getattr(made, "id", None)
        if own != wanted:
            raise UsageError(f"the {what} {wanted!r} calls itself {own!r}")
        return made
