"""Summaries of what analyzers found."""

import json
import math
import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.analysis import analysis_files, numeric_stats
from ledger import events as ev
from ledger.fold import fold
from ledger.view import LedgerView
from tests.golden.erasing import Erased
from tests.golden.runs import attempt, create, opening, ref, task


def finding(task_id: str, analyzer: str = "loops", **fields: object) -> ev.AnalysisFinished:
    return ev.AnalysisFinished(task=task_id, attempt=1, analyzer=analyzer, family="f", **fields)


def written(path: Path, *findings: ev.AnalysisFinished, category: str | None = None) -> None:
    """One task for each finding."""
    with create(path, "analysis") as ledger:
        ledger.append(*opening("r", *(ref(f.task, category) for f in findings)))
        for found in findings:
            *events, end = attempt(found.task)
            ledger.append(*task(found.task, [*events, found, end]))


def files(path: Path, *erased: int) -> dict[str, bytes]:
    with LedgerView.open(path) as ledger:
        view = Erased(ledger, *erased)
        return {file.path: file.data for file in analysis_files(fold(view.events()), view)}


def told(path: Path, *erased: int) -> dict:
    return json.loads(files(path, *erased)["analysis_summary.json"])


def test_there_are_no_files_where_no_analyzer_ran(tmp_path: Path) -> None:
    with create(tmp_path, "none") as ledger:
        ledger.append(*opening("r", ref("t")), *task("t", attempt("t")))
    assert files(tmp_path) == {}


def test_rows_count_bad_cases_errors_and_scores(tmp_path: Path) -> None:
    failed = ev.ErrorInfo(code="x", message="y")
    written(
        tmp_path,
        finding("a", is_badcase=True, score=1.0),
        finding("b", is_badcase=False, score=0.0),
        finding("c", is_badcase=False),
        finding("d", error=failed),
        category="math",
    )
    wanted = {
        "total": 4,
        "badcase_count": 1,
        "error_count": 1,
        "badcase_ratio": 1 / 3,
        "avg_score": 0.5,
    }
    found = told(tmp_path)
    assert found["rows"] == [{"category": "math", "analyzer": "loops", **wanted}]
    assert found["overall"] == [{"analyzer": "loops", **wanted}]


def test_an_undefined_number_is_null_with_a_reason(tmp_path: Path) -> None:
    written(tmp_path, finding("a", error=ev.ErrorInfo(code="x", message="y")))
    (row,) = told(tmp_path)["overall"]
    assert (row["badcase_ratio"], row["avg_score"]) == (None, None)
    assert row["reasons"] == {
        "badcase_ratio": "every analysis failed",
        "avg_score": "no analysis gave a score",
    }


def test_a_task_without_a_category_has_a_row(tmp_path: Path) -> None:
    written(tmp_path, finding("a", is_badcase=True))
    assert [row["category"] for row in told(tmp_path)["rows"]] == ["__uncategorized__"]
    assert (
        r"| \_\_uncategorized\_\_ | loops | 1 |" in files(tmp_path)["analysis_summary.md"].decode()
    )


def test_distributions_are_those_that_the_analyzer_declares(tmp_path: Path) -> None:
    written(
        tmp_path,
        finding("a", details={"value_counts": {"kind": "loop"}, "numeric_stats": {"turns": 1}}),
        finding("b", details={"value_counts": {"kind": "loop"}, "numeric_stats": {"turns": 4}}),
        finding("c", details={"value_counts": {"kind": None}, "other": {"turns": 9}}),
        finding("d", details="only text"),
        finding("e", details={"value_counts": "no object", "numeric_stats": {"turns": "many"}}),
    )
    assert told(tmp_path)["distributions"] == {
        "loops": {
            "value_counts": {
                "kind": [{"value": "loop", "count": 2}, {"value": "null", "count": 1}]
            },
            "numeric_stats": {
                "turns": {
                    "count": 2,
                    "min": 1,
                    "mean": 2.5,
                    "p50": 2.5,
                    "p90": pytest.approx(3.7),
                    "p95": pytest.approx(3.85),
                    "max": 4,
                }
            },
        }
    }


def test_the_fifty_most_frequent_values_are_told(tmp_path: Path) -> None:
    names = [f"v{n:02}" for n in range(60)]
    found = [finding(name, details={"value_counts": {"v": name}}) for name in names]
    again = finding("again", details={"value_counts": {"v": "v59"}})
    written(tmp_path, *found, again)
    counts = told(tmp_path)["distributions"]["loops"]["value_counts"]["v"]
    assert [count["value"] for count in counts] == ["v59", *names[:49]]


def test_an_erased_finding_is_named_and_not_counted(tmp_path: Path) -> None:
    with create(tmp_path, "erased") as ledger:
        ledger.append(*opening("r", ref("a"), ref("b")))
        for name in ("a", "b"):
            *events, end = attempt(name)
            ledger.append(*task(name, [*events, finding(name, is_badcase=True), end]))
        ledger.append(ev.PayloadErased(sequence=(8,), reason="asked to"))
    found = told(tmp_path, 8)
    assert found["overall"][0]["total"] == 1
    assert found["acl"]["erased"] == [
        {"event": 8, "type": "analysis.finished", "attempt": 1, "reason": "erased by event 19"}
    ]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_percentiles_are_those_of_the_standard_library(values: list[float]) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    found = numeric_stats(values)
    for percent in (50, 90, 95):
        assert found[f"p{percent}"] == pytest.approx(cuts[percent - 1], abs=1e-6)


def test_numbers_that_are_not_finite_are_left_out_and_counted() -> None:
    assert numeric_stats([math.nan, 2.0, math.inf])["not_finite"] == 2
    assert numeric_stats([math.nan]) == {"count": 0, "not_finite": 1}
