"""The recipes of a request: by id, from installed packages and from the request's directories."""

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

from ledger.errors import UsageError
from runtime.containment import contained, named
from runtime.contracts import BaseRecipe
from runtime.plugins import Plugins

GROUP: Final = "acl.recipes"


def find_recipes(
    enabled: Sequence[str], directories: Iterable[str], plugins: Plugins
) -> tuple[BaseRecipe, ...]:
    """The recipes called `enabled`, in this order.

    Each `*.py` file of `directories` whose name does not begin with `_` is loaded, in the order of
    their names. Raises UsageError for a directory that is none, a file that cannot be loaded, an id
    that is found twice, and an id that is not found.
    """
    found: dict[str, tuple[BaseRecipe, str]] = {}
    for directory in dict.fromkeys(directories):
        for recipe, where in _in_directory(Path(directory)):
            if recipe.id in found:
                raise UsageError(f"recipe {recipe.id!r} is in {found[recipe.id][1]} and in {where}")
            found[recipe.id] = recipe, where
    installed = plugins.ids(GROUP)
    for name in found.keys() & set(installed):
        raise UsageError(f"recipe {name!r} is installed and in {found[name][1]} as well")
    unknown = [name for name in enabled if name not in found and name not in installed]
    if unknown:
        known = ", ".join(sorted({*found, *installed})) or "none is installed"
        raise UsageError(f"there is no recipe {unknown[0]!r}", hint=f"known: {known}")
    return tuple(found[name][0] if name in found else plugins.recipe(name) for name in enabled)


def _in_directory(directory: Path) -> Iterator[tuple[BaseRecipe, str]]:
    """Each recipe of a directory, with the name of its file."""
    if not directory.is_dir():
        raise UsageError(f"there is no directory of recipes {directory}")
    for file in sorted(directory.glob("*.py")):
        if file.name.startswith("_"):
            continue
        for kind in _recipes_of(_load(file)):
            try:
                with contained():
                    recipe = kind()
            except Exception as error:  # a plug-in may raise anything
                raise UsageError(
                    f"the recipe {kind.__name__} of {file} cannot be made: {named(error)}"
                ) from error
            yield recipe, str(file)


def _recipes_of(module: ModuleType) -> Iterator[type[BaseRecipe]]:
    """The recipes that a module defines itself; bases without an id are none."""
    for kind in vars(module).values():
        if (
            inspect.isclass(kind)
            and issubclass(kind, BaseRecipe)
            and kind.__module__ == module.__name__
            and not inspect.isabstract(kind)
            and isinstance(getattr(kind, "id", None), str)
        ):
            yield kind


def _load(file: Path) -> ModuleType:
    """Run a file as a module of its own, under a name that no other file has."""
    digest = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]
    name = f"acl_recipes_{digest}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look their module up by its name.
    sys.modules[name] = module
    try:
        with contained():
            spec.loader.exec_module(module)
    except Exception as error:  # a plug-in may raise anything
        del sys.modules[name]
        raise UsageError(f"the recipes of {file} cannot be loaded: {named(error)}") from error
    return module
