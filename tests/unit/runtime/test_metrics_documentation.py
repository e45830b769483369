"""docs/metrics.md names whatever a result may name."""

from pathlib import Path

import pytest

from runtime.metrics import BUILT_IN, POLICIES, intervals, reasons

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "metrics.md").read_text("utf-8")


@pytest.mark.parametrize(
    "name",
    [
        *(reducer.name for reducer in BUILT_IN),
        *POLICIES,
        *reasons.ERRORS,
        *reasons.ENDS_THE_METRIC,
        intervals.WILSON,
        intervals.TASK_CLUSTERED,
    ],
)
def test_the_page_names_it(name: str) -> None:
    assert f"`{name}`" in PAGE
