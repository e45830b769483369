"""Packages that load what they offer when somebody asks for it, so that a program starts quickly.

``offer("ledger", {"fold": "ledger.fold"})`` in the package makes ``from ledger import fold`` load
`ledger.fold` then, and not with the package. A home may end in ``:name`` where the name differs
there; ``:`` alone stands for the module itself.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def offer(package: str, homes: Mapping[str, str]) -> None:
    """Let `package`, which is being imported, offer these names from the modules `homes`."""
    module = sys.modules[package]
    vars(module)["_homes"] = dict(homes)
    module.__class__ = _Later


class _Later(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name not in vars(self)["_homes"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self._offered(name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # Python names each module in its package once it is loaded, also where the package offers
        # something else by that name, which is what stays.
        if isinstance(value, ModuleType) and name in vars(self)["_homes"]:
            value = self._offered(name)
        super().__setattr__(name, value)

    def _offered(self, name: str) -> Any:
        home, is_named, there = vars(self)["_homes"][name].partition(":")
        module = import_module(home)
        return module if is_named and not there else getattr(module, there or name)
