"""Counts and metrics for programs."""

import json
from pathlib import Path

import pytest

from exporters.counts import COUNTS, metric_rows, summary_counts
from ledger import events as ev
from ledger.fold import fold
from ledger.state import RunState
from ledger.view import LedgerView
from tests.golden.runs import create, empty, full, interrupted, opening, reused


def state_of(path: Path) -> RunState:
    with LedgerView.open(path) as view:
        return fold(view.events())


def counts(path: Path) -> dict:
    return json.loads(summary_counts(state_of(path)).data)


def computed(path: Path, **fields: object) -> RunState:
    """A run that recorded these metrics."""
    with create(path, "metrics") as ledger:
        ledger.append(*opening("r"), ev.SummaryStarted())
        whole = {"metrics": {"evaluated_tasks": 0}, "counts": {}, **fields}
        ledger.append(
            ev.MetricsComputed(
                size=ledger.size, root=ledger.root().hex(), source="evaluation", **whole
            )
        )
    return state_of(path)


def test_the_file_has_the_documented_fields_in_their_order(tmp_path: Path) -> None:
    full(tmp_path)
    told = counts(tmp_path)
    assert list(told) == ["schema_version", *COUNTS, "by_category", "metrics", "acl"]
    assert list(COUNTS) == [
        "total",
        "evaluated",
        "error",
        "correct",
        "incorrect",
        "skipped",
        "missing",
        "reused",
        "attempts",
        "retries",
        "files_error",
    ]


def test_every_task_is_counted_in_one_of_four_bins(tmp_path: Path) -> None:
    full(tmp_path)
    told = counts(tmp_path)
    assert {name: told[name] for name in ("total", "evaluated", "error", "skipped", "missing")} == {
        "total": 6,
        "evaluated": 4,
        "error": 1,
        "skipped": 1,
        "missing": 0,
    }
    assert (told["attempts"], told["retries"], told["files_error"]) == (6, 2, 1)


def test_a_scalar_is_neither_correct_nor_incorrect(tmp_path: Path) -> None:
    full(tmp_path)
    told = counts(tmp_path)
    assert (told["correct"], told["incorrect"], told["evaluated"]) == (2, 1, 4)


def test_categories_add_up_and_tasks_without_one_have_their_own(tmp_path: Path) -> None:
    full(tmp_path)
    told = counts(tmp_path)
    assert list(told["by_category"]) == ["__uncategorized__", "code", "math"]
    for name in COUNTS:
        assert sum(found[name] for found in told["by_category"].values()) == told[name]


def test_an_interrupted_run_counts_what_is_missing(tmp_path: Path) -> None:
    interrupted(tmp_path)
    told = counts(tmp_path)
    assert (told["total"], told["evaluated"], told["missing"]) == (3, 2, 1)


def test_reused_tasks_and_their_retries_are_counted(tmp_path: Path) -> None:
    reused(tmp_path)
    told = counts(tmp_path)
    assert (told["total"], told["reused"], told["retries"]) == (2, 1, 2)


def test_without_metrics_the_file_says_why(tmp_path: Path) -> None:
    empty(tmp_path)
    told = counts(tmp_path)
    assert told["metrics"] == {}
    assert told["metrics_reason"] == "no metrics were computed"


def test_each_metric_stands_with_its_denominator_and_exclusions(tmp_path: Path) -> None:
    full(tmp_path)
    assert counts(tmp_path)["metrics"] == {
        "correct.accuracy": {
            "value": 2 / 3,
            "numerator": 2,
            "denominator": 3,
            "excluded": {"no | verdict": 1, "run_error": 1},
        },
        "correct.pass@5": {
            "value": None,
            "denominator": None,
            "excluded": {},
            "reason": "needs k attempts",
        },
        "evaluated_tasks": {
            "value": 3,
            "denominator": None,
            "excluded": {},
            "reason": "no denominator was recorded",
        },
        "tokens.avg@1": {"value": 110.0, "denominator": 3, "excluded": {}},
    }


def test_an_unavailable_metric_keeps_what_was_left_out(tmp_path: Path) -> None:
    state = computed(
        tmp_path,
        details={"pass@5": {"denominator": 0, "excluded": {"needs k attempts": 2}}},
        extra={"unavailable": {"pass@5": "needs k attempts"}},
    )
    row = metric_rows(state)["pass@5"]
    assert (row.value, row.denominator, row.excluded) == (None, 0, {"needs k attempts": 2})


@pytest.mark.parametrize("detail", ["text", ["list"], {"denominator": "many"}, {"excluded": [1]}])
def test_an_explanation_in_other_words_does_not_hide_the_value(
    tmp_path: Path, detail: object
) -> None:
    state = computed(tmp_path, metrics={"own": 0.5}, details={"own": detail})
    row = metric_rows(state)["own"]
    assert (row.value, row.denominator) == (0.5, None)
    assert row.reason == "no denominator was recorded"


def test_the_metrics_that_were_recorded_last_are_told(tmp_path: Path) -> None:
    state = computed(tmp_path)
    seq, at, event = state.metrics[0]
    state.metrics.append((seq + 1, at, event.model_copy(update={"metrics": {"later": 1}})))
    assert list(metric_rows(state)) == ["later"]
