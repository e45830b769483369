"""Formulas against brute force, and the rules for tasks that give no value."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.metrics import reducers
from runtime.metrics.estimates import estimate
from runtime.metrics.observations import Observation, TaskObservations
from runtime.metrics.policies import Sample
from runtime.metrics.reducers import Estimate, Reducer

TRUTHS = st.lists(st.booleans(), min_size=1, max_size=7)
SCORES = st.lists(st.floats(-100, 100), min_size=1, max_size=7)


def sample(values: list[bool] | list[float], answers: list[bytes | None] | None = None) -> Sample:
    return Sample(
        values=tuple(values),
        judged=(True,) * len(values),
        answers=tuple(answers) if answers else (None,) * len(values),
    )


def over_subsets(values: list[bool] | list[float], k: int, choose: object) -> Fraction:
    """The mean of `choose` over every choice of k attempts, exactly."""
    subsets = list(itertools.combinations(values, k))
    return sum((Fraction(choose(subset)) for subset in subsets), Fraction()) / len(subsets)


def reduced(
    reducer: Reducer, values: list[bool | float | None], k: int, **rules: object
) -> Estimate:
    seen = [
        Observation(None, "run_error") if value is None else Observation(value, None)
        for value in values
    ]
    task = TaskObservations("c", tuple(seen), stopping=bool(rules.pop("stopping", False)))
    return estimate(reducer, task, k=k, **{"policy": "exclude", **rules})


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_the_share_of_k_subsets_with_a_success(n: int) -> None:
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        values = [True] * c + [False] * (n - c)
        expected = over_subsets(values, k, any)
        assert reducers.pass_at_k(sample(values), k).value == float(expected)


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_hat_k_is_the_share_of_k_subsets_that_are_all_successes(n: int) -> None:
    for c, k in itertools.product(range(n + 1), range(1, n + 1)):
        values = [True] * c + [False] * (n - c)
        expected = over_subsets(values, k, all)
        assert reducers.pass_hat_k(sample(values), k).value == float(expected)


@settings(max_examples=60, deadline=None)
@given(SCORES, st.data())
def test_best_at_k_is_the_mean_of_the_best_over_k_subsets(
    values: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(values)))
    expected = over_subsets(values, k, max)
    assert reducers.best_at_k(sample(values), k).value == pytest.approx(float(expected), abs=1e-11)


def test_best_at_n_is_the_best_score_itself() -> None:
    assert reducers.best_at_k(sample([0.1, 0.7, 0.3]), 3).value == 0.7


@settings(max_examples=60, deadline=None)
@given(SCORES, st.data())
def test_avg_at_k_is_the_mean_of_the_mean_over_k_subsets(
    values: list[float], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(values)))
    expected = over_subsets(values, k, lambda subset: sum(map(Fraction, subset)) / k)
    assert reducers.avg_at_k(sample(values), k).value == pytest.approx(float(expected), abs=1e-11)


def test_pass_at_k_is_exact_where_floating_products_are_not() -> None:
    values = [True] * 3 + [False] * 1997
    ways = Fraction(math.comb(1997, 1000), math.comb(2000, 1000))
    assert reducers.pass_at_k(sample(values), 1000).value == float(1 - ways)


@pytest.mark.parametrize("reducer", [reducers.PASS, reducers.PASS_HAT, reducers.AVG, reducers.ANY])
def test_without_a_success_the_value_is_zero(reducer: Reducer) -> None:
    assert reduced(reducer, [False, False, False], 3).value == 0.0


@pytest.mark.parametrize(
    "reducer",
    [
        reducers.AVG,
        reducers.PASS,
        reducers.PASS_HAT,
        reducers.BEST,
        reducers.ANY,
        reducers.MAJORITY,
    ],
)
def test_a_task_with_fewer_than_k_attempts_gives_no_value(reducer: Reducer) -> None:
    # n = 2, c = 0, k = 5: not 1, not 0.
    assert reduced(reducer, [False, False], 5) == Estimate(reason="needs k attempts")
    # Nor where an attempt was correct: the other three might have been made, and were not.
    assert reduced(reducer, [True, False], 5) == Estimate(reason="needs k attempts")


def test_a_task_without_attempts_is_missing() -> None:
    assert reduced(reducers.AVG, [], 1).reason == "missing"


def test_a_task_with_errors_only_names_the_error_not_the_number_of_attempts() -> None:
    assert reduced(reducers.AVG, [None, None], 2).reason == "run_error"


def test_any_at_k_looks_at_the_first_k_attempts_only() -> None:
    assert reduced(reducers.ANY, [False, False, True], 2).value == 0.0
    assert reduced(reducers.ANY, [False, True, False], 2).value == 1.0


def test_majority_takes_the_verdict_of_the_most_frequent_answer() -> None:
    votes = sample([True, False, False], [b"a", b"b", b"b"])
    assert reducers.majority_at_k(votes, 3).value == 0.0


def test_majority_breaks_ties_for_the_answer_seen_first() -> None:
    assert reducers.majority_at_k(sample([True, False], [b"a", b"b"]), 2).value == 1.0
    assert reducers.majority_at_k(sample([False, True], [b"b", b"a"]), 2).value == 0.0


def test_majority_does_not_look_beyond_the_first_k() -> None:
    votes = sample([True, False, False], [b"a", b"b", b"b"])
    assert reducers.majority_at_k(votes, 1).value == 1.0


def test_majority_of_failures_is_not_a_perfect_score() -> None:
    # [error, error, correct] under count_as_zero: "no answer" has two votes.
    votes = Sample(values=(0, 0, True), judged=(False, False, True), answers=(None, None, b"42"))
    assert reducers.majority_at_k(votes, 3).value == 0.0


def test_majority_lets_a_judged_attempt_speak_for_its_answer() -> None:
    # The first try's judge failed; the same answer was judged correct afterwards.
    votes = Sample(values=(0, True, False), judged=(False, True, True), answers=(b"a", b"a", b"b"))
    assert reducers.majority_at_k(votes, 3).value == 1.0


def test_majority_has_no_value_where_success_leaves_no_answer() -> None:
    assert reducers.majority_at_k(sample([True, False]), 2) == Estimate(reason="no answer")


def test_majority_is_unavailable_where_an_answer_was_erased() -> None:
    seen = (Observation(True, None, answer_erased=True), Observation(False, None, answer=b"a"))
    given_ = estimate(reducers.MAJORITY, TaskObservations("c", seen), k=2, policy="exclude")
    assert given_.reason == "erased"


@pytest.mark.parametrize("reducer", [reducers.PASS, reducers.ACCURACY, reducers.MAJORITY])
def test_a_partial_reward_is_no_truth_value(reducer: Reducer) -> None:
    assert reduced(reducer, [1.0, 0.5], 2).reason == "not a truth value"


def test_rewards_of_zero_and_one_are_truth_values() -> None:
    assert reduced(reducers.PASS, [1.0, 0.0], 1).value == 0.5


@pytest.mark.parametrize(
    ("values", "j", "expected"),
    [
        ([False, True], 1, Estimate(0.0, binary=True)),
        ([False, True], 2, Estimate(1.0, binary=True)),
        ([False, True], 3, Estimate(1.0, binary=True)),
        ([True], 3, Estimate(1.0, binary=True)),
        ([False, False, False], 3, Estimate(0.0, binary=True)),
        ([False, False], 3, Estimate(reason="needs k attempts")),
        ([None, True], 2, Estimate(1.0, binary=True)),
    ],
)
def test_the_first_success_tells_the_outcome_at_every_later_j(
    values: list[bool | None], j: int, expected: Estimate
) -> None:
    found = reduced(reducers.PASS, values, j, stopping=True, policy="count_as_zero")
    assert found == expected


@pytest.mark.parametrize(
    "reducer", [reducers.AVG, reducers.PASS_HAT, reducers.MAJORITY, reducers.BEST]
)
def test_what_needs_all_attempts_is_unavailable_when_runs_stop_early(reducer: Reducer) -> None:
    assert reduced(reducer, [False, True], 2, stopping=True).reason == "stopped_early"


def test_the_first_attempt_is_unbiased_when_runs_stop_early() -> None:
    assert reduced(reducers.AVG, [False, True], 1, stopping=True).value == 0.0
    assert reduced(reducers.PASS, [False, True], 1, stopping=True).value == 0.0


@settings(max_examples=80, deadline=None)
@given(TRUTHS, st.randoms(use_true_random=False), st.data())
def test_the_order_of_attempts_does_not_matter(
    values: list[bool], random: object, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(values)))
    shuffled = list(values)
    random.shuffle(shuffled)
    for reducer in (reducers.AVG, reducers.PASS, reducers.PASS_HAT, reducers.BEST):
        assert reduced(reducer, values, k) == reduced(reducer, shuffled, k)
    assert reduced(reducers.ANY, values, len(values)) == reduced(
        reducers.ANY, shuffled, len(values)
    )


@settings(max_examples=60, deadline=None)
@given(TRUTHS)
def test_pass_at_k_grows_and_pass_hat_k_falls_with_k(values: list[bool]) -> None:
    ks = range(1, len(values) + 1)
    passes = [reduced(reducers.PASS, values, k).value for k in ks]
    hats = [reduced(reducers.PASS_HAT, values, k).value for k in ks]
    assert passes == sorted(passes)
    assert hats == sorted(hats, reverse=True)
    assert passes[0] == hats[0] == reduced(reducers.AVG, values, 1).value


@pytest.mark.parametrize(
    ("reducer", "k", "name"),
    [
        (reducers.ACCURACY, None, "accuracy"),
        (reducers.AVG, 3, "avg@3"),
        (reducers.PASS_HAT, 4, "pass^4"),
        (Reducer("native", 1, "mean", reducers.avg_at_k), 1, "native@1"),
    ],
)
def test_a_reducer_is_named_with_its_k(reducer: Reducer, k: int | None, name: str) -> None:
    assert reducer.named(k) == name


def test_every_built_in_formula_says_what_it_is_and_where_it_is_from() -> None:
    for reducer in (v for v in vars(reducers).values() if isinstance(v, Reducer)):
        assert "Source:" in reducer.text
