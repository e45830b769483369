import typing

import pytest
from pydantic import ValidationError

from ledger import events as ev


def test_every_event_of_the_union_has_a_code_of_its_own() -> None:
    members = typing.get_args(ev.AnyEvent)
    assert set(members) == set(ev.BY_CODE.values())
    assert len({model.code for model in members}) == len(members)


def test_type_names_are_a_noun_and_a_past_participle() -> None:
    for name in ev.TYPE_NAMES.values():
        noun, _, participle = name.partition(".")
        assert noun.isidentifier()
        assert participle.removesuffix("_requested").isidentifier() or participle == "lost"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "1", None, [1]])
def test_metrics_are_finite_numbers(bad: object) -> None:
    with pytest.raises(ValidationError):
        ev.ResultRecorded(task="t", attempt=1, status="completed", metrics={"m": bad})


@pytest.mark.parametrize("value", [1, 1.0, True, 2**70])
def test_a_number_keeps_the_type_it_was_given(value: object) -> None:
    event = ev.ResultRecorded(task="t", attempt=1, status="completed", metrics={"m": value})
    assert type(event.metrics["m"]) is type(value)
    assert event.metrics["m"] == value


def test_unknown_fields_are_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="surprise"):
        ev.TaskStarted.model_validate({"task": "t", "surprise": 1})


def test_events_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        ev.TaskStarted(task="t").task = "u"


@pytest.mark.parametrize("attempt", [0, -1, 2**32])
def test_attempts_count_from_one(attempt: int) -> None:
    with pytest.raises(ValidationError):
        ev.AttemptStarted(task="t", attempt=attempt)


def test_text_may_hold_lone_surrogates() -> None:
    assert ev.TaskStarted(task="a\ud800").task == "a\ud800"


def test_an_extension_is_named_vendor_dot_thing() -> None:
    with pytest.raises(ValidationError):
        ev.ExtensionRecorded(name="thing")
