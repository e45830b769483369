from enum import StrEnum

import pytest

from ledger.errors import UsageError
from ledger.events import ExtensionRecorded, TasksSelected
from runtime.contracts import Task
from runtime.selection import REFUSED, select, selection_events
from tests.fake_plugins import Listed, task

ODD = [
    "a/b",
    "../x",
    "a:b",
    "CON",
    "x.",
    " x",
    "A",
    "a",
    "é",
    "e\u0301",
    "é" * 300,
    "\ud835",
    "\0",
    "",
]


def test_tasks_keep_their_order_and_any_text_is_an_id() -> None:
    tasks = [task(task_id) for task_id in ODD]
    assert [one.task_id for one in select(Listed(tasks), {})] == ODD


def test_two_tasks_with_one_id_are_refused_with_both_positions() -> None:
    tasks = [task("a"), task("b"), task("c"), task("b")]
    with pytest.raises(UsageError, match=r"tasks 1 and 3 have the same id 'b'"):
        select(Listed(tasks), {})


def test_parameters_select() -> None:
    tasks = [task("a", category="x"), task("b", category="y"), task("c", category="x")]
    chosen = select(Listed(tasks), {"category": "x", "limit": 1})
    assert [one.task_id for one in chosen] == ["a"]


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="task 0"):
        select(Listed([Task(7)]), {})  # type: ignore[arg-type]


def test_an_id_too_long_for_a_header_is_refused_before_the_run() -> None:
    assert select(Listed([task("x" * 60_000)]), {})
    with pytest.raises(UsageError, match="60000 bytes"):
        select(Listed([task("x" * 60_001)]), {})


def test_metadata_that_no_ledger_holds_is_left_out_and_named() -> None:
    tasks = [task("a", metadata={"tags": {"x"}, "difficulty": 2})]
    event, refused = selection_events("b", "1", {"limit": 1}, tasks)
    assert isinstance(event, TasksSelected)
    assert event.tasks[0].metadata == {"difficulty": 2}
    assert event.selection == {"limit": 1}
    assert isinstance(refused, ExtensionRecorded)
    assert refused.name == REFUSED
    assert isinstance(refused.payload, list)
    assert [(one["task"], one["path"]) for one in refused.payload] == [("a", "$.metadata.tags")]


def test_no_task_at_all_is_a_plan_too() -> None:
    (event,) = selection_events("b", None, {}, select(Listed(), {}))
    assert isinstance(event, TasksSelected)
    assert event.tasks == ()


def test_a_category_of_an_enum_is_its_text() -> None:
    class Kind(StrEnum):
        MATH = "math"

    (event,) = selection_events("b", "1", {}, [task("a", category=Kind.MATH)])
    assert isinstance(event, TasksSelected)
    assert type(event.tasks[0].category) is str
    assert event.tasks[0].category == "math"


def test_a_category_that_is_no_text_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="category of task 'a'"):
        selection_events("b", "1", {}, [task("a", category=3)])
