"""AgentCompass's own numbers from its own attempts, beside ours."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.events import ReducerUse
from ledger.state import AttemptState, RunState
from runtime.metrics import agentcompass, aggregate
from runtime.results import MetricResult
from tests.metric_states import run, task

DATA = Path(__file__).resolve().parents[2] / "data" / "metrics"


def source(name: str) -> dict[str, Any]:
    return dict(json.loads((DATA / f"agentcompass_{name}.json").read_text("utf-8")))


def imported(record: dict[str, Any]) -> RunState:
    tasks = [
        task(row["task_id"], [attempt(a) for a in row["attempts"]], category=row["category"])
        for row in record["tasks"]
    ]
    return run(*tasks, k=record["k"])


def attempt(record: dict[str, Any]) -> AttemptState:
    metrics = dict(record["metrics"])
    return AttemptState(
        0,
        status=record["status"],
        correct=metrics.pop("correct", None),
        metrics=metrics,
        fatal=record["fatal"],
    )


def uses(record: dict[str, Any]) -> list[ReducerUse]:
    found = [agentcompass.series_use(name) for name in record["series"]]
    assert all(found)
    return [use for use in found if use is not None]


def replayed(record: dict[str, Any]) -> MetricResult:
    return aggregate(imported(record), reducers=uses(record), policy="unavailable")[0]


def test_every_series_of_a_real_run_comes_out_as_agentcompass_wrote_it() -> None:
    record = source("k3-avg")
    result = replayed(record)
    for name, series in record["series"].items():
        assert result.metrics[name] == pytest.approx(series["value"], abs=1e-12)
        assert result.details[name]["denominator"] == series["counts"]["evaluated"]
        for category, breakdown in series["categories"].items():
            found = result.extra["categories"][category][name]
            assert found["value"] == pytest.approx(breakdown["value"], abs=1e-12)
            assert found["denominator"] == breakdown["counts"]["evaluated"]


def test_both_policies_stand_beside_each_other_by_name() -> None:
    record = source("k3-avg")
    state = imported(record)
    theirs, _ = aggregate(state, reducers=["avg@3", "pass@3"], policy="unavailable")
    ours, _ = aggregate(state, reducers=["avg@3", "pass@3"])
    shown = {
        name: (round(result.metrics[name], 4), result.details[name]["denominator"])
        for result in (theirs,)
        for name in ("correct.avg@3", "correct.pass@3")
    }
    assert shown == {"correct.avg@3": (0.7037, 9), "correct.pass@3": (0.7778, 9)}
    assert theirs.details["correct.avg@3"]["policy"] == "unavailable"
    assert theirs.details["correct.avg@3"]["excluded"] == {
        "eval_error": 1,
        "run_error": 1,
        "run_error_or_eval_error": 1,
    }
    # 19 of 27 attempts of nine tasks were correct, seven tasks were solved; ours is over twelve.
    assert ours.metrics["correct.avg@3"] == pytest.approx(19 / 36)
    assert ours.metrics["correct.pass@3"] == pytest.approx(7 / 12)
    assert ours.details["correct.avg@3"]["policy"] == "count_as_zero"


def test_a_fatal_attempt_takes_the_official_value_from_every_series() -> None:
    record = source("k3-fatal")
    result = replayed(record)
    assert set(result.metrics) == {"evaluated_tasks"}
    for name, series in record["series"].items():
        assert series["value"] is None
        assert result.extra["unavailable"][name] == "invalidated"
        reference = result.details[name]["reference_value"]
        assert reference == pytest.approx(series["reference_value"], abs=1e-12)
        assert result.details[name]["excluded"]["invalidated"] == series["counts"]["invalidated"]


@pytest.mark.parametrize("name", ["k3-avg", "k3-fatal"])
def test_counts_of_each_series_are_those_of_agentcompass(name: str) -> None:
    record = source(name)
    state = imported(record)
    for use, series in zip(uses(record), record["series"].values(), strict=True):
        assert agentcompass.series_counts(state, use) == series["counts"]


def series(state: RunState, reducer: str, k: int) -> MetricResult:
    use = ReducerUse(metric="correct", name=reducer, version=1, k=k, policy="unavailable")
    return aggregate(state, reducers=[use], policy="unavailable")[0]


def row(*attempts: bool | None, strategy: str = "all", k: int = 3) -> RunState:
    made = [
        AttemptState(0, status="run_error" if a is None else "completed", correct=a)
        for a in attempts
    ]
    return run(task("t", made), k=k, strategy=strategy)


def test_its_pass_needs_one_success_or_all_k_values() -> None:
    assert series(row(None, True, None), "pass", 3).metrics["correct.pass@3"] == 1.0
    assert series(row(False, False, False), "pass", 3).metrics["correct.pass@3"] == 0.0
    unknown = series(row(False, None, False), "pass", 3)
    assert unknown.extra["unavailable"] == {"correct.pass@3": "run_error"}


def test_its_average_needs_all_k_values() -> None:
    assert series(row(True, False, False), "avg", 3).metrics["correct.avg@3"] == 1 / 3
    lacking = series(row(True, True, None), "avg", 3)
    assert lacking.extra["unavailable"] == {"correct.avg@3": "run_error"}
    few = series(row(True, True), "avg", 3)
    assert few.extra["unavailable"] == {"correct.avg@3": "needs k attempts"}


def test_its_pass_strategy_may_stop_at_the_first_success() -> None:
    state = row(False, True, strategy="stop_on_correct")
    assert series(state, "pass", 3).metrics["correct.pass@3"] == 1.0
    use = ReducerUse(metric="correct", name="pass", version=1, k=3, policy="unavailable")
    assert agentcompass.series_counts(state, use)["error"] == 0


def test_a_single_attempt_is_taken_as_it_is() -> None:
    assert series(row(True, k=1), "native", 1).metrics["correct.native@1"] == 1.0


def test_only_its_own_series_ids_are_read() -> None:
    assert agentcompass.series_use("a.b.pass@2") == ReducerUse(
        metric="a.b", name="pass", version=1, k=2, policy="unavailable"
    )
    assert agentcompass.series_use("correct.median@3") is None
    assert agentcompass.series_use("evaluated_tasks") is None
