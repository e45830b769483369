"""File names of task records."""

import hashlib
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.names import MAX_STEM, detail_names, distinct_names
from ledger.state import TaskState


def tasks(*keys: tuple[str, str | None]) -> list[TaskState]:
    return [
        TaskState(id=task_id, index=index, category=category, checksum=None, metadata={})
        for index, (task_id, category) in enumerate(keys)
    ]


def names(*keys: tuple[str, str | None]) -> list[str]:
    return list(detail_names(tasks(*keys)).values())


def mark(task_id: str, category: str = "") -> str:
    return "--" + hashlib.sha256(f"{task_id}\0{category}".encode()).hexdigest()[:12]


def test_a_plain_id_names_its_file_with_its_category() -> None:
    assert names(("math-1", "algebra"), ("loose", None)) == ["math-1_algebra", "loose"]


def test_characters_that_a_file_system_refuses_become_one_underscore() -> None:
    assert names(("a/b\\c: d", "w/e:ird")) == ["a_b_c_d_w_e_ird"]


def test_every_member_of_a_colliding_group_is_marked() -> None:
    assert names(("a/b", None), ("a_b", None), ("ab", None)) == [
        "a_b" + mark("a/b"),
        "a_b" + mark("a_b"),
        "ab",
    ]


def test_names_that_differ_in_case_only_are_marked() -> None:
    assert names(("A", None), ("a", None)) == ["A" + mark("A"), "a" + mark("a")]


def test_the_two_unicode_forms_of_a_letter_get_two_names() -> None:
    composed, decomposed = names(("caf\u00e9", None), ("cafe\u0301", None))
    assert {composed, decomposed} == {"caf_", "cafe_"}


def test_task_and_category_are_not_confused() -> None:
    assert names(("a_b", "c"), ("a", "b_c")) == [
        "a_b_c" + mark("a_b", "c"),
        "a_b_c" + mark("a", "b_c"),
    ]


def test_a_name_that_looks_like_a_mark_is_marked_itself() -> None:
    imitation = "a_b" + mark("a/b")
    found = names(("a/b", None), ("a_b", None), (imitation, None))
    assert len(set(found)) == 3
    assert found[0] == imitation
    assert found[2].endswith(mark(imitation))


def test_a_long_name_is_cut_and_marked() -> None:
    (name,) = names(("x" * 300, None))
    assert name == "x" * (MAX_STEM - 14) + mark("x" * 300)
    assert names(("y" * MAX_STEM, None)) == ["y" * MAX_STEM]


def test_device_names_are_marked_whatever_follows_a_dot() -> None:
    assert names(("CON", None), ("nul.txt", None), ("console", None)) == [
        "CON" + mark("CON"),
        "nul_txt" + mark("nul.txt"),
        "console",
    ]


def test_no_name_is_empty_hidden_or_taken_for_an_error() -> None:
    assert names(
        ("", None), (".git", None), ("_error_x", None), ("_ERROR_y", None), ("..", None)
    ) == [
        mark(""),
        "git" + mark(".git"),
        "error_x" + mark("_error_x"),
        "ERROR_y" + mark("_ERROR_y"),
        mark(".."),
    ]


def test_ids_and_categories_that_share_a_digest_still_get_two_names() -> None:
    first, second = names(("a\0b", "c"), ("a", "b\0c"))
    assert first != second


ODD = st.text(st.sampled_from("aAbB_./\\-\0é\ud835 =:CONcon"), max_size=8) | st.sampled_from(
    ["CON", "nul", "_error_a", "a" * 119, "a" * 121, "A" * 121, "é" * 300]
)


@given(st.dictionaries(ODD, st.none() | ODD, max_size=30))
@settings(max_examples=300)
def test_names_are_injective_on_a_file_system_that_folds_case(found: dict[str, str | None]) -> None:
    given_names = detail_names(tasks(*found.items()))
    assert len({name.casefold() for name in given_names.values()}) == len(found)
    for name in given_names.values():
        assert re.fullmatch(r"[A-Za-z0-9._=-]{1,120}", name)
        assert not name.startswith(".")
        assert not name.lower().startswith("_error_")
        assert name.split(".")[0].lower() not in {"con", "prn", "aux", "nul", "com1", "lpt1"}


@given(st.dictionaries(ODD, st.none() | ODD, max_size=12), st.randoms())
def test_names_do_not_depend_on_the_order_of_tasks(
    found: dict[str, str | None], random: object
) -> None:
    keys = list(found.items())
    random.shuffle(keys)
    assert detail_names(tasks(*keys)) == detail_names(tasks(*found.items()))


def test_a_reserved_name_is_no_tasks_whatever_its_case() -> None:
    keys = {task_id: (task_id, None) for task_id in ("analysis", "Analysis", "analysis2")}
    found = distinct_names(keys, frozenset({"analysis"}))
    assert found == {
        "analysis": "analysis" + mark("analysis"),
        "Analysis": "Analysis" + mark("Analysis"),
        "analysis2": "analysis2",
    }
