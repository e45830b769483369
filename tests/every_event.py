"""One event of each type with every field filled, made from the models themselves."""

import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ledger import events as ev
from ledger.events import BY_CODE

_ANY = {"list": [1, 2.5, "text", None, True, {"deep": {"deeper": ["deepest", -0.0, 10**25]}}]}


def every_event() -> list[ev.AnyEvent]:
    """In the order of their codes; they are legal one by one, not as a run."""
    return [filled(model) for _, model in sorted(BY_CODE.items())]


def filled(model: type[Any]) -> Any:
    """An instance of a model, all its fields given."""
    fields = {
        name: _sample(field.annotation, name)
        for name, field in model.model_fields.items()
        if name != "type"
    }
    if issubclass(model, ev.Event):
        for name in ("task", "attempt"):
            if not model.model_fields[name].is_required():
                del fields[name]
        fields["lease"] = 1
    return model.model_validate(fields)


def _sample(kind: Any, name: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _sample(arguments[0], name)
    if origin in (Union, types.UnionType):
        return _sample(next(one for one in arguments if one is not type(None)), name)
    if origin is Literal:
        return arguments[0]
    if origin is tuple:
        return (_sample(arguments[0], name),) * 2
    if origin is dict:
        return {"first": _sample(arguments[1], name), "second": _sample(arguments[1], name)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return filled(kind)
    return {bool: True, int: 3, float: 1.5, str: f"some.{name}"}.get(kind, _ANY)
