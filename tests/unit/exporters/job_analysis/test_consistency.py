"""All files of an analysis tell one truth, whatever the run was like."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import events as ev
from tests.analysis_runs import (
    EXPECTED,
    Analysis,
    Job,
    broken,
    call,
    cancelled,
    options,
    right,
    tool,
    unjudged,
    wrong,
)

OUTCOMES = ("right", "wrong", "partial", "empty", "broken", "unjudged", "cancelled", "none")
WORDS = st.sampled_from(["easy", "hard", "unknown", "Ä", "a,b", 'q"', "lone \ud800"])


def made(name: str, number: int, outcome: str, calls: int, tools: int) -> list[ev.AnyEvent]:
    during = [
        *(event for i in range(calls) for event in call(name, number, i)),
        *(
            tool(name, "ls", {"n": i // 3}, is_error=i % 2 == 0, attempt=number)
            for i in range(tools)
        ),
    ]
    match outcome:
        case "right":
            return right(name, number, during=during)
        case "wrong":
            return wrong(name, number, during=during)
        case "partial":
            return wrong(name, number, score=0.5, during=during)
        case "empty":
            return wrong(name, number, answer="", during=during)
        case "broken":
            return broken(name, number, during=during)
        case "unjudged":
            return unjudged(name, number)
        case _:
            return cancelled(name, number)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    k = draw(st.sampled_from([1, 1, 3]))
    job = Job(k=k, ends=False)
    for index in range(draw(st.integers(0, 9))):
        outcomes = draw(st.lists(st.sampled_from(OUTCOMES), min_size=k, max_size=k))
        name = f"t{index}"
        attempts = [
            made(name, number, outcome, draw(st.integers(0, 4)), draw(st.integers(0, 7)))
            for number, outcome in enumerate(outcomes, 1)
            if outcome != "none"
        ]
        numbers = {event.attempt for events in attempts for event in events}
        if numbers != set(range(1, len(attempts) + 1)):
            attempts = []
        about: dict[str, Any] = draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "difficulty": WORDS,
                    "domain": WORDS,
                    "tags": st.lists(WORDS, max_size=5),
                    "size": st.integers(-3, 3),
                    "weight": st.floats(allow_nan=False, allow_infinity=False),
                },
            )
        )
        job.add(name, *attempts, category=draw(st.none() | WORDS), **about)
    return job


def shape(found: Analysis) -> None:
    rows = found.instances
    by_status = Counter("resolved" if one["resolved"] else "other" for one in rows)
    counted = found.tasks["summary"]
    excluded = found.summary["excluded"]
    assert counted["resolved_instances"] == by_status["resolved"]
    assert counted["total_instances"] + counted["cancelled_instances"] == len(rows)
    assert counted["resolved_instances"] + counted["failed_instances"] == counted["total_instances"]
    assert found.resolved["summary"]["total_instances"] == counted["resolved_instances"]
    assert found.failed["summary"]["total_instances"] == counted["failed_instances"]
    overview = found.json("score_comparison.json")
    assert overview["failed_total"] == counted["failed_instances"]
    assert overview["resolved_total"] == counted["resolved_instances"]
    assert found.summary["n_rows"] == len(rows)
    assert found.summary["n_resolved"] == counted["resolved_instances"]
    assert found.summary["n_unresolved"] + excluded["error"] == counted["failed_instances"]
    assert excluded["cancelled"] == counted["cancelled_instances"]
    trajectories = found.trajectories
    groups = trajectories["resolved"]["n"] + trajectories["unresolved"]["n"]
    assert groups + sum(trajectories["excluded"].values()) == len(rows)


def distributions(found: Analysis) -> None:
    for report in (found.failed, found.resolved):
        total = report["summary"]["total_instances"]
        assert sum(count for _, count, _ in report["primary_distribution"]["rows"]) == total
        assert sum(count for _, count, _ in report["verdict_distribution"]["rows"]) == total
        for axis in report["axis_distributions"].values():
            assert sum(count for _, count, _ in axis["rows"]) == axis["total"]
            assert axis["total"] + axis["not_applicable"] == total
        flags = report["flag_distribution"]
        assert sum(count for _, count, _ in flags["rows"]) == flags["total"]
    total = found.tasks["summary"]["total_instances"]
    for kind in ("domain", "bug_type", "category"):
        assert sum(one["count"] for one in found.tasks[f"{kind}_distribution"].values()) == total
        rates = found.tasks[f"{kind}_resolve_rate"]
        assert sum(one["total"] for one in rates.values()) == total
        resolved = sum(one["resolved"] for one in rates.values())
        assert resolved == found.tasks["summary"]["resolved_instances"]


def tables(found: Analysis) -> None:
    for axis, table in found.summary["tables"].items():
        totals = table["totals"]
        assert totals["resolved"] == found.summary["n_resolved"]
        assert totals["unresolved"] == found.summary["n_unresolved"]
        for part in ("resolved", "unresolved", "total"):
            assert sum(one[part] for one in table["counts"].values()) == totals[part]
        ordered = [table["counts"][name]["total"] for name in table["categories"]]
        assert ordered == sorted(ordered, reverse=True)
        lines = found.csv(f"instance_analysis/contingency_{axis}.csv")
        assert int(lines[-1]["total"]) == totals["total"]
        assert len(lines) == len(table["categories"]) + 1
    for name, record in found.correlations.items():
        assert record["n"] == record["n_resolved"] + record["n_unresolved"], name
        assert record["n"] <= found.summary["n_resolved"] + found.summary["n_unresolved"]
        assert (record["pearson_p"] is None) == (record["pearson_q"] is None)
    assert found.summary["correlations"] == found.correlations


def listing(found: Analysis) -> None:
    listed = found.json("MANIFEST.json")["files"]
    assert set(listed) == set(found.files) - {"MANIFEST.json"}
    for path, entry in listed.items():
        data = found.files[path]
        assert entry == {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(job=jobs(), unit=st.sampled_from(["task", "attempt"]))
def test_counts_agree_in_all_files(
    job: Job, unit: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = job.analyze(tmp_path_factory.mktemp("job"), options(analysis={"unit": unit}))
    assert set(found.files) == EXPECTED
    for check in (shape, distributions, tables, listing):
        check(found)
    ids = [one["instance_id"] for one in found.instances]
    assert ids == sorted(set(ids))


def test_the_order_in_which_tasks_ended_changes_no_row(tmp_path: Path) -> None:
    def run(names: str) -> Job:
        job = Job()
        for name in names:
            job.add(name, (right if name in "ac" else wrong)(name), category=name)
        return job

    def plain(found: Analysis) -> list[str]:
        return [
            found.text(f"instance_analysis/contingency_category.{end}") for end in ("csv", "txt")
        ]

    one, other = run("abcd").analyze(tmp_path / "1"), run("dbca").analyze(tmp_path / "2")
    assert [row["instance_id"] for row in other.instances] == list("abcd")
    assert plain(one) == plain(other)
    assert one.tasks["category_resolve_rate"] == other.tasks["category_resolve_rate"]


def test_money_has_ten_decimals_and_other_floats_six(tmp_path: Path) -> None:
    job = Job()
    for index, name in enumerate("abc"):
        made = right if index else wrong
        job.add(name, made(name, during=call(name, cost_usd=1.23456789e-7, ttft_ms=1.23456789)))
    found = job.analyze(tmp_path)
    assert found.features("a")["cost_usd"] == 1.235e-7
    assert found.features("a")["ttft_ms_median"] == 1.234568
    assert found.trajectories["resolved"]["metrics"]["cost_usd"]["mean"] == 1.235e-7


def test_awkward_names_are_written_and_read_back(tmp_path: Path) -> None:
    names = ["a/b", "é", "lone \ud800", 'quote", comma', "line\nbreak"]
    job = Job()
    for name in names:
        job.add(name, right(name), category=name, tags=[name, 3, None])
    found = job.analyze(tmp_path)
    assert [one["instance_id"] for one in found.instances] == sorted(names)
    assert found.instance("é")["tags"] == ["é", "3", "null"]
    assert set(found.summary["tables"]["category"]["counts"]) == set(names)
    assert len(found.text("instances.jsonl").splitlines()) == len(names)
