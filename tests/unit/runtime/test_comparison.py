"""Two runs side by side."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.state import RunState, Spend
from runtime.comparison import compare_runs, request_differences
from tests import events_of as say
from tests.metric_states import failed, judged, run, run_of, task


def directions(before: RunState, after: RunState) -> list[tuple[str, str]]:
    return [(change.task, change.direction) for change in compare_runs(before, after).changes]


def test_equal_runs_have_no_changes() -> None:
    found = compare_runs(run_of([True], [False], [None]), run_of([True], [False], [None]))
    assert found.equal
    assert (found.changes, found.settings, found.equal_tasks) == ((), (), 3)
    assert all(pair.change in (0, None) for pair in found.metrics)


@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [
        ([False], [True], "gained"),
        ([None], [True], "gained"),
        ([True], [False], "lost"),
        ([True], [None], "lost"),
        ([False], [None], "other"),
        ([0.2], [0.7], "better"),
        ([0.7], [0.2], "worse"),
        ([True, False], [True, True], "better"),
        ([True, True], [False, True], "worse"),
        ([0.5], [None], "other"),
    ],
)
def test_a_changed_verdict_has_a_direction(
    before: list[bool | float | None], after: list[bool | float | None], direction: str
) -> None:
    found = compare_runs(run_of(before), run_of(after))
    assert [change.direction for change in found.changes] == [direction]
    assert found.directions == {direction: 1}
    assert not found.equal


def test_a_score_that_differs_by_less_than_a_rounding_is_equal() -> None:
    assert compare_runs(run_of([0.1 + 0.2]), run_of([0.3])).equal


def test_tasks_of_one_run_only_are_named_and_make_the_verdicts_differ() -> None:
    a = run(task("x", [judged(True)]), task("y", [judged(True)]))
    b = run(task("z", [judged(True)]), task("x", [judged(True)]))
    found = compare_runs(a, b)
    assert (found.only_before, found.only_after, found.equal_tasks) == (("y",), ("z",), 1)
    assert not found.equal


def test_a_task_whose_input_changed_is_named() -> None:
    a = run(task("x", [judged(True)], checksum="1"), task("y", [judged(True)]))
    b = run(task("x", [judged(False)], checksum="2"), task("y", [judged(True)], checksum="3"))
    found = compare_runs(a, b)
    assert found.inputs_changed == ("x",)
    assert found.changes[0].input_changed


def test_metrics_stand_side_by_side_with_their_named_intervals() -> None:
    pairs = {p.name: p for p in compare_runs(run_of([True], [False]), run_of([True])).metrics}
    accuracy = pairs["correct.accuracy"]
    assert accuracy.before is not None
    assert accuracy.after is not None
    assert (accuracy.before.value, accuracy.after.value, accuracy.change) == (0.5, 1.0, 0.5)
    assert (accuracy.before.denominator, accuracy.after.denominator) == (2, 1)
    assert accuracy.before.interval is not None
    assert accuracy.before.interval["name"] == "wilson"
    assert accuracy.rules_differ == ()


def test_a_metric_that_one_run_lacks_stands_alone() -> None:
    pairs = {p.name: p for p in compare_runs(run_of([True]), run_of([True, True])).metrics}
    assert pairs["correct.avg@2"].before is None
    assert pairs["correct.avg@2"].change is None


def test_metrics_by_other_rules_are_told_apart() -> None:
    early = run_of([True], [False, True], k=2, strategy="stop_on_correct")
    found = compare_runs(run_of([True, True], [False, True]), early)
    pairs = {pair.name: pair for pair in found.metrics}
    assert pairs["correct.pass@2"].rules_differ == ("estimator",)
    assert pairs["correct.avg@2"].after is not None
    assert pairs["correct.avg@2"].after.reason == "stopped_early"


def test_what_was_asked_for_is_compared_path_by_path() -> None:
    before = {"a": {"b": 1, "c": [1]}, "same": "x", "gone": {}}
    after = {"a": {"b": 1.0, "c": [1, 2]}, "same": "x", "new": True}
    found = request_differences(before, after)
    assert [(d.path, d.before, d.after) for d in found] == [
        ("a.b", 1, 1.0),
        ("a.c", [1], [1, 2]),
        ("gone", {}, None),
        ("new", None, True),
    ]


def test_the_run_id_is_no_setting_and_the_versions_are() -> None:
    a, b = run_of([True]), run_of([True])
    a.created, b.created = say.created("one"), say.created("two")
    a.benchmark_version, b.benchmark_version = "1", "2"
    found = compare_runs(a, b)
    assert [(d.path, d.before, d.after) for d in found.settings] == [
        ("benchmark_version", "1", "2")
    ]
    assert found.equal


def test_the_very_same_attempts_are_counted() -> None:
    def side(*identities: bytes) -> RunState:
        return run(
            *(task(str(n), [judged(True, result_address=i * 32)]) for n, i in enumerate(identities))
        )

    assert compare_runs(side(b"1", b"2", b"3"), side(b"1", b"2", b"x")).shared == 2
    assert compare_runs(run_of([True]), run_of([True])).shared == 0


def test_what_a_run_spent_and_what_it_stands_on_are_told_apart() -> None:
    reused = judged(True, copied=True, spend=Spend(calls=1, cost_usd=1.0))
    own = judged(True, spend=Spend(calls=2, cost_usd=0.5), discarded=Spend(calls=1, cost_usd=0.25))
    side = compare_runs(run(task("a", [reused]), task("b", [own])), run_of([True])).before
    assert (side.spent.calls, side.spent.cost_usd) == (3, 0.75)
    assert (side.spend_with_reuse.calls, side.spend_with_reuse.cost_usd) == (4, 1.75)


def test_an_attempt_that_failed_is_an_error_and_no_wrong_answer() -> None:
    found = compare_runs(run(task("t", [failed()])), run(task("t", [judged(False)])))
    (change,) = found.changes
    assert (change.before.outcome, change.after.outcome) == ("error", "wrong")


VALUES = st.sampled_from([True, False, None])
ROWS = st.lists(st.lists(VALUES, min_size=1, max_size=2), min_size=1, max_size=5)
OPPOSITE = {
    "gained": "lost",
    "lost": "gained",
    "better": "worse",
    "worse": "better",
    "other": "other",
}


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_looked_at_from_the_other_side_directions_turn_round(
    one: list[list[bool | None]], two: list[list[bool | None]]
) -> None:
    def side(rows: list[list[bool | None]]) -> RunState:
        return run_of(*rows, k=2)

    there, back = directions(side(one), side(two)), directions(side(two), side(one))
    assert [(name, OPPOSITE[direction]) for name, direction in there] == back
