"""What can be held of a value that cannot be held whole."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ledger.canonical.encoding import TOO_DEEP, why_no_key, why_unholdable
from ledger.canonical.path import spell_path
from ledger.canonical.values import (
    MAX_DEPTH,
    Binary,
    SpilledBinary,
    SpilledList,
    SpilledText,
)
from ledger.errors import ValueRefused

_LEAVES = frozenset({type(None), bool, int, float, str, Binary, SpilledText, SpilledBinary})


def prune(value: object) -> tuple[object, list[ValueRefused]]:
    """Return `value` without what `encode` refuses, and a refusal with its path for each part.

    An object loses the entry, a list has None in its place (positions mean something), and a
    value that is refused itself becomes None. What is kept is encoded without error; `value` is
    not changed. Costs a full walk: meant for values that `encode` has refused.
    """
    pruner = _Pruner()
    kept = pruner.keep(value)
    return (None if kept is _GONE else kept), pruner.refusals


class _Gone:
    """Stands for a part that is left out."""


_GONE = _Gone()


@dataclass(slots=True)
class _Pruner:
    refusals: list[ValueRefused] = field(default_factory=list)
    steps: list[str | int] = field(default_factory=list)
    around: set[int] = field(default_factory=set)
    """Containers that hold the present one: a value can hold itself."""

    def keep(self, value: object) -> object:
        kind = type(value)
        if kind in _LEAVES:
            return value
        if kind not in _CONTAINERS:
            return self._refuse(why_unholdable(value))
        if id(value) in self.around:
            return self._refuse("the value holds itself")
        if len(self.around) >= MAX_DEPTH:
            return self._refuse(TOO_DEEP)
        self.around.add(id(value))
        kept = _CONTAINERS[kind](self, value)
        self.around.remove(id(value))
        return kept

    def _keep_spilled(self, value: SpilledList) -> SpilledList:
        return SpilledList(value.pieces, tuple(self._keep_items(value.rest)))

    def _keep_entries(self, value: dict[object, object]) -> dict[str, object]:
        kept: dict[str, object] = {}
        for key, item in value.items():
            if type(key) is not str:
                self._refuse(why_no_key(key))
                continue
            self.steps.append(key)
            now = self.keep(item)
            self.steps.pop()
            if now is not _GONE:
                kept[key] = now
        return kept

    def _keep_items(self, items: list[object] | tuple[object, ...]) -> list[object]:
        kept: list[object] = []
        for position, item in enumerate(items):
            self.steps.append(position)
            now = self.keep(item)
            self.steps.pop()
            kept.append(None if now is _GONE else now)
        return kept

    def _refuse(self, why: str) -> object:
        self.refusals.append(ValueRefused(spell_path(self.steps), why))
        return _GONE


_CONTAINERS: dict[type, Callable[[_Pruner, Any], object]] = {
    dict: _Pruner._keep_entries,
    list: _Pruner._keep_items,
    tuple: _Pruner._keep_items,
    SpilledList: _Pruner._keep_spilled,
}
