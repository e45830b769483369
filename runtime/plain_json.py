"""Values of another library's making as plain JSON values, with known secrets taken out."""

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel

from ledger.canonical import MAX_DEPTH
from runtime.secret_names import secret_values
from runtime.secret_text import MASK

LEFT_OUT: Final = "$left_out"
"""Key of the object that stands for a value which JSON cannot hold; its value names the type."""

# Below what the canonical form refuses, with room for the event around it.
_DEEPEST: Final = MAX_DEPTH - 20


class Plain:
    """Copies values into plain ones: models become objects, tuples lists, number keys text.

    Each of `secrets` that has at least 8 characters is replaced by the mask wherever it stands,
    also in keys. What no JSON can hold is named by its type. `masked` and `left_out` tell whether
    either happened.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = secret_values({}, secrets)
        self.masked = False
        self.left_out = False

    def of(self, value: Any, depth: int = 0) -> Any:
        """The plain copy of `value`; never fails."""
        if value is None or type(value) in (bool, int, float):
            return value
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if depth < _DEEPEST:
            if isinstance(value, BaseModel):
                value = dict(_fields(value))
            if isinstance(value, dict):
                return self._object(value, depth)
            if isinstance(value, list | tuple):
                return [self.of(one, depth + 1) for one in value]
        self.left_out = True
        return {LEFT_OUT: f"{type(value).__module__}.{type(value).__qualname__}"}

    def _object(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        for key, one in value.items():
            if isinstance(key, str) or type(key) is int:
                copy[self._text(str(key))] = self.of(one, depth + 1)
            else:
                self.left_out = True
        return copy

    def _text(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                self.masked = True
                text = text.replace(secret, MASK)
        return text


def _fields(model: BaseModel) -> list[tuple[str, Any]]:
    # Not `model_dump`, which warns of values that are not of their declared type. What is None was
    # not sent either.
    pairs = [*model.__dict__.items(), *(model.__pydantic_extra__ or {}).items()]
    return [(name, value) for name, value in pairs if value is not None]
