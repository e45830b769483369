"""Foreign numbers: finite ones count, however large an integer is."""

import pytest

from runtime.importers.numbers import is_duration, is_measure, is_number, split_measures

HUGE = 10**400


@pytest.mark.parametrize("value", [0, -1, HUGE, -HUGE, 0.5, -0.0, 1e308])
def test_finite_numbers_are_numbers(value):
    assert is_number(value)
    assert is_measure(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, [1], {}, 1j])
def test_what_is_no_finite_number_is_none(value):
    assert not is_number(value)
    assert not is_measure(value)
    assert not is_duration(value)


def test_truth_values_are_measures_and_no_numbers():
    assert is_measure(True)
    assert not is_number(False)


@pytest.mark.parametrize(("value", "fits"), [(0, True), (1.5, True), (-1, False), (HUGE, False)])
def test_a_duration_can_be_held_by_a_float(value, fits):
    assert is_duration(value) is fits


def test_measures_are_split_from_the_rest():
    assert split_measures({"a": 1, "b": float("nan"), "c": True, "d": "x"}) == (
        {"a": 1, "c": True},
        {"b": pytest.approx(float("nan"), nan_ok=True), "d": "x"},
    )
    assert split_measures(None) == ({}, {})
    assert split_measures([1]) == ({}, {"metrics": [1]})
