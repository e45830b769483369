"""Steps, actions and characters in trajectories of any shape."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.analyzers.trajectory import (
    Action,
    characters,
    longest_repetition,
    read_trajectory,
    speaker,
)

CALL = {"id": "1", "type": "function", "function": {"name": "grep", "arguments": '{"q": "x"}'}}
CHAT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "find x"},
    {"role": "assistant", "content": None, "tool_calls": [CALL, {**CALL, "id": "2"}]},
    {"role": "tool", "content": "x:1", "tool_call_id": "1"},
    {"role": "assistant", "content": "it is in line 1"},
]
SEARCH = [
    {"step": 1, "action": "try", "changes": ["a"], "passed": 0, "observation": "no"},
    {"step": 2, "action": "try", "changes": ["a"], "passed": 0, "observation": "still no"},
    {"step": 3, "action": "submit"},
]
ATIF = {
    "schema_version": "ATIF-v1.7",
    "steps": [
        {"step_id": 1, "source": "user", "message": "do it"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": "c", "function_name": "bash", "arguments": {"c": 1}}],
            "observation": {"results": []},
        },
    ],
}


def tools(value: Any) -> list[str | None]:
    return [action.tool for action in read_trajectory(value).actions()]


@pytest.mark.parametrize(
    ("value", "form", "steps", "messages", "actions"),
    [
        (CHAT, "messages", 5, 5, ["grep", "grep", None]),
        ({"messages": CHAT, "info": 1}, "messages", 5, 5, ["grep", "grep", None]),
        (SEARCH, "steps", 3, 0, ["try", "try", "submit"]),
        (ATIF, "messages", 2, 2, ["bash"]),
        ([], "steps", 0, 0, []),
        ("it went well", "text", 1, 0, []),
        ({"anything": "else"}, "other", 1, 0, []),
        (7, "other", 1, 0, []),
        ([{"role": 3, "content": []}, None, [CALL]], "steps", 3, 0, []),
        ([{"role": "assistant", "tool_calls": ["x", {"function": 1}]}], "messages", 1, 1, [None]),
        (
            [{"role": "assistant", "function_call": {"name": "f"}, "content": ""}],
            "messages",
            1,
            1,
            ["f"],
        ),
    ],
)
def test_the_shapes_that_trajectories_come_in(
    value: Any, form: str, steps: int, messages: int, actions: list[str | None]
) -> None:
    seen = read_trajectory(value)
    assert (seen.form, len(seen.steps), seen.messages) == (form, steps, messages)
    assert tools(value) == actions


def test_a_call_is_the_same_whatever_its_id() -> None:
    assert longest_repetition(read_trajectory(CHAT).actions())[0] == 2


def test_a_step_is_the_same_whatever_its_number_and_what_came_of_it() -> None:
    times, action = longest_repetition(read_trajectory(SEARCH).actions())
    assert times == 2
    assert action is not None
    assert action.tool == "try"


def test_what_is_said_again_is_a_repetition_and_what_others_say_is_none() -> None:
    said = [{"role": "assistant", "content": "hm"}, {"role": "user", "content": "hm"}] * 4
    assert longest_repetition(read_trajectory(said).actions())[0] == 4
    asked = [{"role": "user", "content": "hm"}] * 4
    assert longest_repetition(read_trajectory(asked).actions()) == (0, None)


@given(st.lists(st.sampled_from("ab"), max_size=12))
def test_the_longest_run_of_equal_actions_is_found(names: list[str]) -> None:
    times, _ = longest_repetition(iter([Action(name, name) for name in names]))
    text = "".join(names)
    assert times == max(n for n in range(len(text) + 1) if "a" * n in text or "b" * n in text)


def test_characters_are_those_of_texts_at_any_depth() -> None:
    assert characters({"a": ["bc", {"d": "efg"}, 7, None], "key that does not count": "h"}) == 6


def test_whose_message_a_step_is() -> None:
    assert speaker({"role": "user", "content": "x"}) == "user"
    assert speaker({"source": "agent", "message": "x"}) == "agent"
    assert speaker({"role": "a role without words"}) is None
    assert speaker("user") is None


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("role", "content", "source", "message", "tool_calls", "function", "name"),
                    *("function_call", "arguments", "action", "steps", "messages"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(PLAIN)
def test_nothing_that_a_harness_gives_is_too_odd(value: Any) -> None:
    seen = read_trajectory(value)
    assert 0 <= seen.messages <= len(seen.steps)
    longest_repetition(seen.actions())
    assert characters(value) >= 0
