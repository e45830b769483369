import json
from enum import StrEnum
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict

from ledger import canonical
from runtime.plain_json import LEFT_OUT, Plain


class Message(BaseModel):
    model_config = ConfigDict(extra="allow")
    role: str
    content: str | None = None


class Role(StrEnum):
    USER = "user"


def test_plain_values_stay_as_they_are() -> None:
    value = {"a": [1, 1.5, True, None, "\ud835"], "b": {"c": []}}
    plain = Plain()
    assert plain.of(value) == value
    assert plain.of(value) is not value
    assert (plain.masked, plain.left_out) == (False, False)


def test_models_become_objects_without_what_was_not_sent() -> None:
    message = Message.model_validate({"role": "user", "tool_calls": [Message(role="x")]})
    assert Plain().of([message]) == [{"role": "user", "tool_calls": [{"role": "x"}]}]


def test_tuples_number_keys_and_enums_become_what_json_has() -> None:
    assert Plain().of({"t": (1, 2), 7: Role.USER}) == {"t": [1, 2], "7": "user"}
    assert type(Plain().of(Role.USER)) is str


@pytest.mark.parametrize("value", [b"x", {1, 2}, np.float32(1), np.int64(1), object()])
def test_what_json_cannot_hold_is_named_by_its_type(value: Any) -> None:
    plain = Plain()
    kept = plain.of({"x": value})
    assert set(kept["x"]) == {LEFT_OUT}
    assert type(value).__qualname__ in kept["x"][LEFT_OUT]
    assert plain.left_out
    canonical.encode(kept)


def test_depth_has_an_end() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    plain = Plain()
    canonical.encode({"messages": plain.of(deep)})
    assert plain.left_out
    circle: list[Any] = []
    circle.append(circle)
    canonical.encode(Plain().of(circle))


def test_a_secret_is_masked_in_texts_and_keys_however_it_is_spelled() -> None:
    plain = Plain(["p@ss word/1"])
    kept = plain.of({"p@ss word/1": "x", "url": "http://h/?k=p%40ss%20word%2F1"})
    assert kept == {"********": "x", "url": "http://h/?k=********"}
    assert plain.masked


def test_short_secrets_and_none_are_not_looked_for() -> None:
    assert Plain(["user", ""]).of("user") == "user"
    assert json.dumps(Plain([]).of(["a"])) == '["a"]'
