from typing import Any

import pytest

from runtime.importers.agentcompass.metrics import source_metrics


def series(**fields: Any) -> dict[str, Any]:
    return {
        "series_id": "correct.avg@2",
        "metric_id": "correct",
        "reducer": "avg",
        "role": "headline",
        "k": 2,
        "value": 0.5,
        "reference_value": None,
        "counts": {"total": 5, "evaluated": 2, "error": 3, "unavailable": 3, "invalidated": 0},
        **fields,
    }


def test_values_counts_and_reducers_are_those_of_the_source():
    found = source_metrics({"aggregation": "micro_weighted", "k": 2, "series": [series()]})
    assert found is not None
    assert found.metrics == {"correct.avg@2": 0.5, "evaluated_tasks": 2}
    assert found.counts == {"total": 5, "evaluated": 2, "error": 3, "missing": 0, "skipped": 0}
    assert found.extra["source"] == {"aggregation": "micro_weighted", "k": 2}
    (use,) = found.reducers
    assert (use.metric, use.name, use.k, use.policy) == ("correct", "avg", 2, "unavailable")
    assert found.details["correct.avg@2"]["source"] == series()


def test_a_whole_number_stays_one():
    found = source_metrics({"series": [series(value=1)]})
    assert found is not None
    assert type(found.metrics["correct.avg@2"]) is int


def test_no_value_is_no_zero_and_says_why():
    counts = {"total": 5, "evaluated": 2, "error": 3, "unavailable": 1, "invalidated": 2}
    found = source_metrics(
        {
            "series": [
                series(value=None, reference_value=0.25, counts=counts),
                series(series_id="x.avg@2", value=None),
            ]
        }
    )
    assert found is not None
    assert found.metrics == {"evaluated_tasks": 2}
    assert found.extra["unavailable"] == {
        "correct.avg@2": "invalidated by fatal issues in 2 tasks; reference value 0.25",
        "x.avg@2": "the source has no value",
    }
    assert found.details["correct.avg@2"]["excluded"] == {"unavailable": 1, "invalidated": 2}


def test_counts_are_told_by_the_headline_only():
    found = source_metrics({"series": [series(role="auxiliary")]})
    assert found is not None
    assert found.counts == {}
    assert found.metrics == {"correct.avg@2": 0.5}


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"series": {}},
        {"series": [1]},
        {"series": [series(value=float("nan"))]},
        {"series": [series(value=True)]},
        {"series": [{key: value for key, value in series().items() if key != "value"}]},
        {"series": [series(k=0)]},
        {"series": [series(reducer=None)]},
        {"series": [series(counts={"total": 1})]},
        {"series": [series(counts=series()["counts"] | {"evaluated": 9})]},
    ],
)
def test_what_is_no_report_is_told_apart(report):
    assert source_metrics(report) is None
