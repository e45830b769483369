import math

import pytest
from pydantic import ValidationError

from runtime.results import MetricCounts, MetricResult

COUNTS = MetricCounts(total=3, evaluated=2, error=1)


def test_a_metric_result_needs_a_metric() -> None:
    with pytest.raises(ValidationError):
        MetricResult(metrics={}, counts=COUNTS)


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None])
def test_metrics_are_finite_numbers(value: object) -> None:
    with pytest.raises(ValidationError):
        MetricResult.model_validate({"metrics": {"x": value}, "counts": COUNTS})


def test_metrics_keep_the_type_they_were_given() -> None:
    result = MetricResult(metrics={"whole": 1, "real": 1.0}, counts=COUNTS)
    assert repr(result.metrics) == "{'whole': 1, 'real': 1.0}"


def test_every_task_is_in_exactly_one_count() -> None:
    with pytest.raises(ValidationError, match="total must be"):
        MetricCounts(total=3, evaluated=1, error=1)
    assert MetricCounts(total=4, evaluated=1, error=1, missing=1, skipped=1).total == 4
