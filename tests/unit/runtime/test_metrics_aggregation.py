"""Results as a whole: denominators, exclusions, reused and erased attempts, categories."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import UsageError
from ledger.state import AttemptState, RunState, TaskState
from runtime.metrics import aggregate
from runtime.results import MetricResult
from tests.metric_states import answered, failed, judged, run, run_of, task

DATA = Path(__file__).resolve().parents[2] / "data" / "metrics"


def measured(state: RunState, *reducers: str, policy: str = "count_as_zero") -> MetricResult:
    return aggregate(state, reducers=reducers, policy=policy)[0]


def detail(state: RunState, reducer: str, policy: str = "count_as_zero") -> dict[str, Any]:
    result = measured(state, reducer, policy=policy)
    (name,) = set(result.details) - {"evaluated_tasks"}
    return dict(result.details[name])


# -- denominators (cases C1, C2, C13) -------------------------------------------------------------


def test_unscorable_tasks_leave_no_denominator_silently() -> None:
    # C1: 6 tasks, 2 right, 2 wrong, 2 that could not be scored.
    bad = [task(f"e{i}", [failed("eval_error")]) for i in range(2)]
    good = [task(f"t{i}", [judged(i < 2)]) for i in range(4)]
    result, _ = aggregate(run(*good, *bad))

    counted = result.details["correct.accuracy"]
    assert (counted["numerator"], counted["denominator"]) == (2, 6)
    assert counted["value"] == result.metrics["correct.accuracy"] == 2 / 6
    assert counted["counted_as_zero"] == {"eval_error": 2}
    assert counted["coverage"] == {"numerator": 4, "denominator": 6}

    left_out = result.details["correct.accuracy[exclude]"]
    assert (left_out["numerator"], left_out["denominator"]) == (2, 4)
    assert left_out["excluded"] == {"eval_error": 2}

    evaluated = result.details["evaluated_tasks"]
    assert (evaluated["numerator"], evaluated["denominator"]) == (4, 6)
    assert evaluated["excluded"] == {"error": 2}
    assert result.metrics["evaluated_tasks"] == 4


def mixed_attempts() -> RunState:
    """C2: reward 1; agent timeout with reward 0; verifier timeout without one; dead sandbox."""
    return run(
        task(
            "t",
            [
                judged(True),
                judged(False, status="run_error"),
                failed("eval_error"),
                failed("run_error", fatal=True),
            ],
        ),
        k=4,
    )


@pytest.mark.parametrize(
    ("policy", "value"), [("count_as_zero", 1 / 4), ("exclude", None), ("unavailable", None)]
)
def test_error_class_and_reward_are_kept_apart(policy: str, value: float | None) -> None:
    state = mixed_attempts()
    found = detail(state, "avg@4", policy)
    assert found["value"] == value
    assert found["policy"] == policy
    assert found["attempts"] == {"observed": 2, "eval_error": 1, "run_error": 1}


def test_an_agent_timeout_that_was_graded_is_a_wrong_answer_under_every_policy() -> None:
    state = run(task("t", [judged(True), judged(False, status="run_error")]), k=2)
    for policy in ("count_as_zero", "exclude", "unavailable"):
        assert detail(state, "avg@2", policy)["value"] == 0.5


def test_failed_attempts_are_not_dropped_to_make_a_perfect_score() -> None:
    state = run_of([True, None, None])
    assert detail(state, "avg@3")["value"] == 1 / 3
    # Leaving them out is possible, by name, and never claims to know three attempts.
    assert detail(state, "avg@3", "exclude")["reason"] == "needs k attempts"


def test_each_policy_gives_its_own_number() -> None:
    state = run_of([True, None], [True, True])
    values = {p: detail(state, "avg@2", p)["value"] for p in ("count_as_zero", "exclude")}
    assert values == {"count_as_zero": 0.75, "exclude": 1.0}
    unavailable = detail(state, "avg@2", "unavailable")
    assert (unavailable["value"], unavailable["excluded"]) == (1.0, {"run_error": 1})


def test_a_judge_that_failed_gave_no_grade() -> None:
    # C13: grades 5, 5, and a judge that could not be read.
    state = run(*(task(f"t{i}", [judged(5)]) for i in range(2)), task("t2", [failed("eval_error")]))
    result, _ = aggregate(state)
    graded = result.details["score.avg@1[exclude]"]
    assert (graded["value"], graded["denominator"]) == (5.0, 2)
    assert graded["excluded"] == {"eval_error": 1}
    zero = result.details["score.avg@1"]
    assert (zero["value"], zero["denominator"]) == (10 / 3, 3)
    assert zero["counted_as_zero"] == {"eval_error": 1}


def test_skipped_and_open_attempts_are_no_errors() -> None:
    state = run(
        task("s", [failed("skipped")]),
        task("o", [AttemptState(1)]),
        task("m", []),
        task("c", [failed("cancelled")]),
        task("t", [judged(True)]),
    )
    found = detail(state, "accuracy")
    assert (found["value"], found["denominator"]) == (1.0, 1)
    assert found["excluded"] == {"cancelled": 1, "missing": 1, "open": 1, "skipped": 1}


# -- too few attempts (case C3) -------------------------------------------------------------------


def test_a_metric_that_no_task_can_give_is_unavailable_with_its_reason() -> None:
    result = measured(run_of([False, False], k=5), "pass@5")
    assert "correct.pass@5" not in result.metrics
    assert result.extra["unavailable"] == {"correct.pass@5": "needs k attempts"}
    assert result.details["correct.pass@5"]["value"] is None


def test_how_many_tasks_had_enough_attempts_is_shown() -> None:
    found = detail(run_of([True] * 5, [False] * 2), "pass@5")
    assert (found["value"], found["denominator"]) == (1.0, 1)
    assert found["excluded"] == {"needs k attempts": 1}


def test_an_empty_run_has_its_count_and_reasons() -> None:
    result, _ = aggregate(run())
    assert result.metrics == {"evaluated_tasks": 0}
    assert set(result.extra["unavailable"].values()) == {"no tasks"}
    assert result.counts.total == 0


# -- pass^k (case C5) -----------------------------------------------------------------------------


def test_tau_bench_rewards_give_its_published_pass_hat_k() -> None:
    rewards = json.loads((DATA / "tau_bench_airline_rewards.json").read_text("utf-8"))["rewards"]
    state = run(
        *(
            task(task_id, [judged(r == 1.0, score=r) for r in row])
            for task_id, row in rewards.items()
        ),
        k=4,
    )
    result = measured(state, "pass^1", "pass^2", "pass^3", "pass^4")
    published = {1: 0.420, 2: 0.273, 3: 0.220, 4: 0.200}
    for k, value in published.items():
        found = result.details[f"correct.pass^{k}"]
        assert round(found["value"], 3) == value
        assert found["denominator"] == 50
        assert found["estimator"] == "unbiased"
    # The rewards themselves, 0.0 and 1.0, are as good as truth values.
    assert (
        measured(state, "score.pass^2").metrics["score.pass^2"] == result.metrics["correct.pass^2"]
    )


def test_copies_of_one_attempt_are_one_sample() -> None:
    same = {"result_address": b"\1" * 32}
    state = run(task("t", [judged(True, **same), judged(True, **same)]), k=2)
    assert detail(state, "pass^2")["reason"] == "needs k attempts"
    assert detail(state, "avg@1")["attempts"] == {"observed": 1, "duplicate": 1}


def test_a_copy_under_another_task_is_no_new_sample_either() -> None:
    same = {"result_address": b"\1" * 32}
    state = run(task("a", [judged(True, **same)]), task("b", [judged(True, **same)]))
    found = detail(state, "accuracy")
    assert (found["denominator"], found["excluded"]) == (1, {"duplicate": 1})


# -- evaluators (case C7) -------------------------------------------------------------------------


def test_a_partial_rescore_says_mixed() -> None:
    tasks = [
        task(f"t{i}", [judged(True, evaluator=("judge", "2" if i < 5 else "1"))]) for i in range(10)
    ]
    result, _ = aggregate(run(*tasks))
    assert result.extra["evaluator"] == "mixed"
    assert result.extra["evaluators"] == {"judge 1": 5, "judge 2": 5}


def test_one_evaluator_is_named() -> None:
    result, _ = aggregate(run(task("t", [judged(True, evaluator=("judge", "1"))])))
    assert result.extra["evaluator"] == "judge 1"


def test_errors_stay_counted_when_others_were_scored_again() -> None:
    tasks = [task(f"t{i}", [failed() if i < 5 else judged(True)]) for i in range(10)]
    result, _ = aggregate(run(*tasks))
    assert (result.counts.error, result.counts.evaluated) == (5, 5)
    assert result.details["correct.accuracy"]["denominator"] == 10


# -- erased verdicts ------------------------------------------------------------------------------


def test_an_erased_verdict_makes_its_metrics_unavailable() -> None:
    gone = judged(None, evaluation=7, erased=[7], metrics={})
    state = run(task("a", [judged(True)]), task("b", [gone]))
    result = measured(state, "accuracy", "avg@1")
    assert set(result.metrics) == {"evaluated_tasks"}
    assert result.extra["unavailable"] == {
        "correct.accuracy": "erased",
        "correct.avg@1": "erased",
    }


def test_an_erased_end_does_not_turn_an_attempt_into_a_verdict_or_an_error() -> None:
    gone = AttemptState(1, finished=9, erased=[9])
    assert detail(run(task("a", [gone])), "accuracy")["reason"] == "erased"
    judged_before = AttemptState(1, correct=True, finished=9, erased=[9])
    assert detail(run(task("a", [judged_before])), "accuracy")["value"] == 1.0


# -- strategies -----------------------------------------------------------------------------------


def test_runs_that_stop_early_name_estimator_and_reason() -> None:
    state = run_of([True], [False, True], [False, False, False], k=3, strategy="stop_on_correct")
    result, _ = aggregate(state)
    for j, value in {1: 1 / 3, 2: 2 / 3, 3: 2 / 3}.items():
        assert result.metrics[f"correct.pass@{j}"] == pytest.approx(value)
    assert result.details["correct.pass@1"]["estimator"] == "first_attempt"
    assert result.details["correct.pass@3"]["estimator"] == "first_success"
    assert result.details["correct.avg@3"]["estimator"] == "mean"
    unavailable = result.extra["unavailable"]
    assert unavailable == {"correct.avg@3": "stopped_early", "correct.pass^3": "stopped_early"}
    assert result.metrics["correct.accuracy"] == pytest.approx(2 / 3)


def test_a_task_whose_outcome_at_j_is_unknown_is_left_out_and_shown() -> None:
    state = run_of([True], [False], k=2, strategy="stop_on_correct")
    found = detail(state, "pass@2")
    assert (found["numerator"], found["denominator"]) == (1, 1)
    assert found["excluded"] == {"needs k attempts": 1}


def test_under_unavailable_an_error_after_the_j_th_attempt_does_no_harm() -> None:
    state = run_of([True, None], [False, None, True], k=3, strategy="stop_on_correct")
    assert detail(state, "pass@1", "unavailable")["value"] == 0.5
    assert detail(state, "pass@2", "unavailable")["excluded"] == {"run_error": 2}


def test_a_reused_task_that_stopped_early_keeps_its_own_estimator() -> None:
    # Reused from a run that stopped at the first success, into one that makes all attempts.
    reused = task("r", [judged(False), judged(True)], stopped_early=True)
    state = run(reused, task("n", [judged(v) for v in (True, False, False)]), k=3)
    result, _ = aggregate(state)
    passes = {j: result.metrics[f"correct.pass@{j}"] for j in (1, 2, 3)}
    assert passes == {1: (0 + 1 / 3) / 2, 2: (1 + 2 / 3) / 2, 3: 1.0}
    assert result.details["correct.pass@2"]["estimator"] == "unbiased, first_success"
    # Its third attempt was never made; without the task the mean would be of other tasks.
    assert result.extra["unavailable"]["correct.avg@3"] == "stopped_early"


# -- intervals ------------------------------------------------------------------------------------


def test_one_outcome_per_task_gets_a_wilson_interval() -> None:
    result, _ = aggregate(run_of([True], [False], [True]))
    for name in ("correct.accuracy", "correct.avg@1", "correct.pass@1"):
        assert result.details[name]["interval"]["name"] == "wilson"
        assert result.details[name]["interval"]["level"] == 0.95


def test_a_mean_over_attempts_gets_a_task_clustered_interval() -> None:
    result, _ = aggregate(run_of([True, False], [False, False], [True, True]))
    for name in ("correct.avg@2", "correct.pass@1"):
        assert result.details[name]["interval"]["name"] == "task_clustered_normal"
    # All of two attempts right or not: one outcome per task.
    assert result.details["correct.pass^2"]["interval"]["name"] == "wilson"


def test_scores_get_a_clustered_interval_that_is_not_cut_to_a_share() -> None:
    found = detail(run_of([50.0], [100.0]), "score.avg@1")
    assert found["interval"]["name"] == "task_clustered_normal"
    assert found["interval"]["high"] > 100


# -- categories, other metrics, the default set ---------------------------------------------------


def test_categories_have_their_own_denominators() -> None:
    state = run(
        task("a", [judged(True)], category="x"),
        task("b", [failed()], category="x"),
        task("c", [judged(False)]),
    )
    categories = aggregate(state)[0].extra["categories"]
    assert list(categories) == ["__uncategorized__", "x"]
    assert categories["x"]["correct.accuracy[exclude]"] == {
        "value": 1.0,
        "numerator": 1,
        "denominator": 1,
        "excluded": {"run_error": 1},
    }
    assert categories["x"]["evaluated_tasks"]["value"] == 1
    assert categories["__uncategorized__"]["correct.accuracy"]["value"] == 0.0


def test_a_category_without_values_says_why() -> None:
    state = run(task("a", [judged(True)], category="x"), task("b", [], category="y"))
    found = aggregate(state)[0].extra["categories"]["y"]["correct.accuracy"]
    assert (found["value"], found["reason"]) == (None, "missing")


def test_a_measure_of_the_evaluation_is_a_metric_like_any_other() -> None:
    state = run(
        task("a", [judged(True, metrics={"chars": 10, "format_ok": True})]),
        task("b", [judged(False, metrics={"chars": 20, "format_ok": False})]),
        task("c", [failed()]),
    )
    result, _ = aggregate(state)
    chars = result.details["chars.avg@1[exclude]"]
    assert (chars["value"], chars["denominator"]) == (15.0, 2)
    assert measured(state, "format_ok.accuracy").metrics["format_ok.accuracy"] == 1 / 3


def test_a_task_that_lacks_the_measure_is_left_out_by_reason() -> None:
    state = run(task("a", [judged(True, metrics={"chars": 1})]), task("b", [judged(True)]))
    found = detail(state, "chars.avg@1")
    assert (found["denominator"], found["excluded"]) == (1, {"no value": 1})


def test_the_default_set_of_truth_values() -> None:
    result, _ = aggregate(run_of([True, False, True]))
    assert list(result.metrics) == [
        "evaluated_tasks",
        "correct.accuracy",
        "correct.accuracy[exclude]",
        "correct.avg@3",
        "correct.pass@1",
        "correct.pass@2",
        "correct.pass@3",
        "correct.pass^3",
    ]


def test_the_default_set_of_scores() -> None:
    result, _ = aggregate(run_of([0.5, 0.25]))
    assert list(result.metrics) == [
        "evaluated_tasks",
        "score.avg@2",
        "score.avg@2[exclude]",
        "score.best@2",
    ]
    assert result.metrics["score.best@2"] == 0.5


def test_a_run_in_which_everything_failed_is_zero_by_name() -> None:
    result, _ = aggregate(run_of([None], [None]))
    assert result.metrics["correct.accuracy"] == 0.0
    assert result.extra["unavailable"]["correct.accuracy[exclude]"] == "run_error"


def test_values_may_be_told_under_another_k() -> None:
    state = run_of([True, False, False, False])
    assert aggregate(state, k=2)[0].metrics["correct.pass@2"] == 0.5


def test_majority_uses_the_answers() -> None:
    state = run(task("t", [answered(False, "a"), answered(True, "b"), answered(True, "b")]), k=3)
    assert measured(state, "majority@3").metrics["correct.majority@3"] == 1.0


def test_tasks_with_equal_verdicts_and_other_answers_have_majorities_of_their_own() -> None:
    def one(name: str, *answers: str) -> TaskState:
        verdicts = (False, True, True)
        return task(name, [answered(v, a) for v, a in zip(verdicts, answers, strict=True)])

    state = run(one("t", "a", "b", "b"), one("u", "a", "a", "b"), one("v", "c", "d", "d"), k=3)
    assert detail(state, "majority@3")["numerator"] == 2


def test_a_score_beyond_a_float_ends_the_metric_by_name() -> None:
    state = run_of([1], [10**400])
    assert detail(state, "score.avg@1")["reason"] == "too large for a float"


def test_scores_whose_sum_is_beyond_a_float_have_a_mean_and_no_numerator() -> None:
    found = detail(run_of([1.7e308], [1.7e308]), "score.avg@1")
    assert found["value"] == pytest.approx(1.7e308)
    assert found["numerator"] is None


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="accuracy"):
        measured(run_of([True]), "accuracies")
    with pytest.raises(UsageError, match="count_as_zero"):
        aggregate(run_of([True]), policy="ignore")


def test_the_uses_are_returned_to_be_recorded() -> None:
    _, uses = aggregate(run_of([True, True]), reducers=["pass@2", "accuracy[exclude]", "pass@2"])
    assert [(u.metric, u.name, u.version, u.k, u.policy) for u in uses] == [
        ("correct", "pass@k", 1, 2, "count_as_zero"),
        ("correct", "accuracy", 1, None, "exclude"),
    ]


def test_recorded_uses_give_the_same_result_again() -> None:
    state = run_of([True, None, 0.5], [False, True, True])
    first, uses = aggregate(state)
    second, again = aggregate(state, reducers=uses)
    assert (first, uses) == (second, again)


# -- properties -----------------------------------------------------------------------------------

ROWS = st.lists(st.lists(st.sampled_from([True, False, None]), max_size=4), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_tasks_and_attempts_changes_no_bit(
    rows: list[list[bool | None]], random_: random.Random
) -> None:
    shuffled = [random_.sample(row, len(row)) for row in random_.sample(rows, len(rows))]
    for policy in ("count_as_zero", "exclude", "unavailable"):
        before = aggregate(run_of(*rows, k=3), policy=policy)[0]
        after = aggregate(run_of(*shuffled, k=3), policy=policy)[0]
        assert before == after


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from(["all", "stop_on_correct"]))
def test_every_task_is_in_the_denominator_or_left_out_by_reason(
    rows: list[list[bool | None]], strategy: str
) -> None:
    state = run_of(*rows, k=3, strategy=strategy)
    result, _ = aggregate(state)
    counted = result.details["evaluated_tasks"]
    assert counted["numerator"] + sum(counted["excluded"].values()) == counted["denominator"]
    for name, found in list(result.details.items())[1:]:
        assert found["denominator"] + sum(found["excluded"].values()) == len(rows)
        assert (name in result.metrics) != (name in result.extra["unavailable"])
        parts = [c[name] for c in result.extra["categories"].values()]
        assert sum(part["denominator"] for part in parts) == found["denominator"]
        if found["value"] is not None:
            assert found["value"] == found["numerator"] / found["denominator"]
    assert all(math.isfinite(value) for value in result.metrics.values())


VERDICTS = st.tuples(st.sampled_from([True, False, None]), st.sampled_from(["a", "b", None]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(VERDICTS, max_size=4), min_size=2, max_size=12))
def test_a_task_gives_beside_others_what_it_gives_alone(
    rows: list[list[tuple[bool | None, str | None]]],
) -> None:
    def measure(*numbers: int) -> MetricResult:
        tasks = [
            task(f"t{n}", [failed() if v is None else answered(v, a) for v, a in rows[n]])
            for n in numbers
        ]
        return measured(run(*tasks, k=2), "majority@3", "pass@2", "avg@2", "accuracy[exclude]")

    together = measure(*range(len(rows)))
    alone = [measure(number) for number in range(len(rows))]
    for name, found in together.details.items():
        parts = [one.details[name] for one in alone]
        assert found["denominator"] == sum(part["denominator"] for part in parts)
        assert (found["numerator"] or 0) == pytest.approx(
            sum(part["numerator"] or 0 for part in parts)
        )


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_without_errors_the_policies_agree(rows: list[list[bool | None]]) -> None:
    clean = [[bool(value) for value in row] for row in rows]
    values = [
        aggregate(run_of(*clean, k=3), policy=policy, reducers=["avg@3", "pass@2", "pass^2"])[
            0
        ].metrics
        for policy in ("count_as_zero", "exclude", "unavailable")
    ]
    assert values[0] == values[1] == values[2]
