"""Replay of real ledgers: equal, different, as of an event, with additions, imported, erased."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView, fold
from ledger import events as ev
from ledger.errors import RunNotFound, UsageError
from ledger.state import RunState
from ledger.store import Ledger
from ledger.view import Recorded
from runtime.contracts import Benchmark, Task
from runtime.metrics import aggregate
from runtime.replay import Replay, replay
from runtime.results import MetricResult
from tests.events_of import attempt, created, failed_attempt, opening

DATA = Path(__file__).resolve().parents[2] / "data" / "metrics"
ROWS = {"a": [True, False], "b": [None, True], "c": [False, False]}


def work(rows: dict[str, list[bool | None]]) -> Iterator[ev.AnyEvent]:
    for name, values in rows.items():
        yield ev.TaskStarted(task=name)
        for number, value in enumerate(values, 1):
            if value is None:
                yield from failed_attempt(name, number)
            else:
                yield from attempt(name, number, correct=value, answer=str(value))
        yield ev.TaskFinished(task=name, reason="all_attempts", error=None in values)


def computed(
    ledger: Ledger, result: MetricResult, uses: tuple[ev.ReducerUse, ...], **fields: Any
) -> ev.MetricsComputed:
    given = {
        "metrics": dict(result.metrics),
        "counts": result.counts.model_dump(),
        "details": result.details,
        "extra": result.extra,
        "reducers": uses,
        "size": ledger.size,
        "root": ledger.root().hex(),
        "source": "evaluation",
    }
    return ev.MetricsComputed(**{**given, **fields})


Change = Callable[[MetricResult], MetricResult]


def write(
    path: Path,
    *,
    rows: dict[str, list[bool | None]] = ROWS,
    change: Change = lambda result: result,
    fields: dict[str, Any] | None = None,
    uses: Callable[[tuple[ev.ReducerUse, ...]], tuple[ev.ReducerUse, ...]] = lambda uses: uses,
    finish: bool = True,
) -> Path:
    """A ledger of a whole run whose recorded result is `change` of what aggregation gave."""
    path.mkdir(exist_ok=True)
    with Ledger.create(path / "ledger.sqlite") as ledger:
        k = max(map(len, rows.values()))
        ledger.append(*opening(*rows, k=k), *work(rows))
        if finish:
            ledger.append(ev.SummaryStarted())
            with ledger.view() as view:
                result, used = aggregate(fold(view.events()))
            ledger.append(computed(ledger, change(result), uses(used), **(fields or {})))
            ledger.append(ev.RunFinished(status="completed", exit_code=0))
    return path


def replayed(path: Path, **options: Any) -> Replay:
    with LedgerView.open(path) as view:
        return replay(view, **options)


def names(result: Replay) -> list[str]:
    return [difference.name for difference in result.differences]


def test_a_run_replays_equal_to_what_it_recorded(tmp_path: Path) -> None:
    found = replayed(write(tmp_path))
    assert found.equal is True
    assert found.differences == ()
    assert found.not_compared == {}
    assert found.recorded is not None
    assert found.recorded.metrics == found.metrics.metrics
    assert found.metrics.metrics["correct.avg@2"] == pytest.approx(2 / 6)
    assert found.source == "evaluation"


def test_a_changed_value_is_named_with_both_numbers(tmp_path: Path) -> None:
    def better(result: MetricResult) -> MetricResult:
        return result.model_copy(update={"metrics": {**result.metrics, "correct.accuracy": 0.9}})

    found = replayed(write(tmp_path, change=better))
    assert found.equal is False
    (difference,) = found.differences
    assert difference.name == "metrics/correct.accuracy"
    assert (difference.recorded, difference.replayed) == (0.9, pytest.approx(2 / 3))


@pytest.mark.parametrize(("off", "equal"), [(5e-10, True), (2e-9, False)])
def test_floats_may_be_off_by_one_billionth(tmp_path: Path, off: float, equal: bool) -> None:
    def shifted(result: MetricResult) -> MetricResult:
        value = result.metrics["correct.avg@2"] + off
        return result.model_copy(update={"metrics": {**result.metrics, "correct.avg@2": value}})

    assert replayed(write(tmp_path, change=shifted)).equal is equal


def test_counts_are_compared_exactly(tmp_path: Path) -> None:
    counts = {"total": 3, "evaluated": 2, "error": 1, "missing": 0, "skipped": 0}
    found = replayed(write(tmp_path, fields={"counts": counts}))
    assert names(found) == ["counts/error", "counts/evaluated"]


def test_a_denominator_that_was_changed_is_named(tmp_path: Path) -> None:
    def fewer(result: MetricResult) -> MetricResult:
        details = json.loads(json.dumps(result.details))
        details["correct.accuracy"]["denominator"] = 2
        return result.model_copy(update={"details": details})

    assert names(replayed(write(tmp_path, change=fewer))) == [
        "details/correct.accuracy/denominator"
    ]


def test_a_metric_that_was_left_out_is_named(tmp_path: Path) -> None:
    def without(result: MetricResult) -> MetricResult:
        kept = {n: v for n, v in result.metrics.items() if n != "correct.pass@1"}
        return result.model_copy(update={"metrics": kept})

    assert names(replayed(write(tmp_path, change=without))) == ["metrics/correct.pass@1"]


def test_another_prefix_than_the_recorded_one_is_named(tmp_path: Path) -> None:
    found = replayed(write(tmp_path, fields={"root": "00" * 32}))
    assert names(found) == ["root"]
    found = replayed(write(tmp_path / "2", fields={"size": 10_000}))
    assert names(found) == ["root"]


def test_replay_uses_exactly_the_recorded_reducers(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.append(*opening(*ROWS, k=2), *work(ROWS), ev.SummaryStarted())
        with ledger.view() as view:
            state = fold(view.events())
        result, uses = aggregate(state, reducers=["majority@2", "avg@1"], policy="exclude")
        ledger.append(computed(ledger, result, uses))
    found = replayed(tmp_path)
    assert found.equal is True
    assert found.reducers == uses
    assert set(found.metrics.details) == {
        "evaluated_tasks",
        "correct.majority@2",
        "correct.avg@1",
    }


def test_an_interrupted_run_has_nothing_to_compare_and_still_has_metrics(tmp_path: Path) -> None:
    found = replayed(write(tmp_path, finish=False))
    assert found.equal is None
    assert found.recorded is None
    assert found.source is None
    assert found.metrics.metrics["evaluated_tasks"] == 3


def test_replay_as_of_an_event_sees_no_later_one(tmp_path: Path) -> None:
    write(tmp_path)
    with LedgerView.open(tmp_path) as view:
        verdicts = [r.seq for r in view.events() if r.type == "evaluation.finished"]
        root = view.root(verdicts[0] + 1).hex()
    found = replayed(tmp_path, at=verdicts[0])
    assert (found.size, found.root) == (verdicts[0] + 1, root)
    assert found.equal is None
    assert found.metrics.metrics["evaluated_tasks"] == 1
    assert found.metrics.counts.missing == 2
    before = replayed(tmp_path, at=verdicts[0] - 1)
    assert before.metrics.metrics["evaluated_tasks"] == 0


@pytest.mark.parametrize("at", [-1, 10_000])
def test_an_event_that_is_not_there_is_refused(tmp_path: Path, at: int) -> None:
    write(tmp_path)
    with pytest.raises(RunNotFound, match=str(at)):
        replayed(tmp_path, at=at)


def test_reducers_are_added_after_the_fact(tmp_path: Path) -> None:
    found = replayed(write(tmp_path), reducers=("majority@2", "accuracy"))
    assert found.equal is True
    assert found.added == ("correct.majority@2",)
    # a: True, False, tie: first seen; b: the error has no answer, tie: first seen; c: wrong.
    assert found.metrics.metrics["correct.majority@2"] == pytest.approx(1 / 3)
    assert found.recorded is not None
    assert "correct.majority@2" not in found.recorded.metrics


def test_policies_are_added_after_the_fact(tmp_path: Path) -> None:
    found = replayed(write(tmp_path), policies=("unavailable",))
    assert found.equal is True
    assert found.metrics.metrics["correct.avg@2[unavailable]"] == pytest.approx(1 / 4)
    assert found.metrics.details["correct.avg@2[unavailable]"]["denominator"] == 2
    assert "correct.accuracy[unavailable]" in found.added


def test_a_new_reducer_is_added_under_each_new_policy(tmp_path: Path) -> None:
    found = replayed(write(tmp_path), reducers=("best@2",), policies=("exclude",))
    assert {"correct.best@2", "correct.best@2[exclude]"} <= set(found.added)


def test_an_unknown_addition_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(UsageError, match="median"):
        replayed(tmp_path, reducers=("median@2",))
    with pytest.raises(UsageError, match="ignore"):
        replayed(tmp_path, policies=("ignore",))


def test_a_reducer_that_is_not_installed_is_named_and_not_a_difference(tmp_path: Path) -> None:
    def of_another(uses: tuple[ev.ReducerUse, ...]) -> tuple[ev.ReducerUse, ...]:
        return tuple(
            use.model_copy(update={"version": 7}) if use.name == "pass^k" else use for use in uses
        )

    def marked(result: MetricResult) -> MetricResult:
        details = json.loads(json.dumps(result.details))
        details["correct.pass^2"]["version"] = 7
        return result.model_copy(update={"details": details})

    found = replayed(write(tmp_path, uses=of_another, change=marked))
    assert found.equal is True
    assert list(found.not_compared) == ["correct.pass^2"]
    assert "version 7" in found.not_compared["correct.pass^2"]


def test_a_reducer_that_is_not_installed_and_left_no_detail_is_named_too(tmp_path: Path) -> None:
    theirs = ev.ReducerUse(metric="correct", name="vendor", version=1, k=3, policy="count_as_zero")
    found = replayed(write(tmp_path, uses=lambda uses: (*uses, theirs)))
    assert list(found.not_compared) == ["correct.vendor@3"]


def test_that_a_task_stopped_early_is_told_by_its_own_end(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.append(*opening("a", "b", k=2), *work({"a": [False, False]}))
        ledger.append(ev.TaskStarted(task="b"), *attempt("b"))
        ledger.append(ev.TaskFinished(task="b", reason="stopped_early", error=False))
    found = replayed(tmp_path).metrics
    assert found.metrics["correct.pass@2"] == 0.5
    assert found.extra["unavailable"]["correct.avg@2"] == "stopped_early"


# -- the benchmark's own metrics ------------------------------------------------------------------


class Bench(Benchmark):
    """A benchmark that adds how many tasks it has."""

    id = "bench"
    version = "1"

    def load_tasks(self, params: Any) -> list[Task]:
        return []

    async def evaluate(self, task: Any, result: Any, context: Any) -> Any:
        raise NotImplementedError

    def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
        return metrics.model_copy(
            update={"metrics": {**metrics.metrics, "bench.tasks": len(state.tasks)}}
        )


class Broken(Bench):
    def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
        raise RuntimeError("no table")


def with_bench(path: Path, tasks: int = 3) -> Path:
    return write(
        path,
        change=lambda result: result.model_copy(
            update={"metrics": {**result.metrics, "bench.tasks": tasks}}
        ),
    )


def test_what_the_benchmark_added_is_replayed_by_it(tmp_path: Path) -> None:
    assert replayed(with_bench(tmp_path), benchmark=Bench()).equal is True
    wrong = replayed(with_bench(tmp_path / "2", tasks=4), benchmark=Bench())
    assert names(wrong) == ["metrics/bench.tasks"]


def test_without_its_plug_in_what_the_benchmark_added_is_named(tmp_path: Path) -> None:
    found = replayed(with_bench(tmp_path))
    assert found.equal is True
    assert "plug-in" in found.not_compared["bench.tasks"]


def test_a_benchmark_that_fails_is_named_and_does_not_stop_the_replay(tmp_path: Path) -> None:
    found = replayed(with_bench(tmp_path), benchmark=Broken())
    assert found.equal is True
    assert "no table" in found.not_compared["benchmark bench"]


class Listing(Bench):
    def aggregate_metrics(self, state: RunState, metrics: MetricResult) -> MetricResult:
        return metrics.model_copy(update={"extra": {**metrics.extra, "ids": list(state.tasks)}})


def test_a_difference_within_a_list_is_named_by_its_place(tmp_path: Path) -> None:
    def listed(result: MetricResult) -> MetricResult:
        return result.model_copy(update={"extra": {**result.extra, "ids": ["a", "x", "c"]}})

    found = replayed(write(tmp_path, change=listed), benchmark=Listing())
    assert names(found) == ["extra/ids/1"]
    assert "plug-in" in replayed(tmp_path).not_compared["extra/ids"]


# -- erased verdicts ------------------------------------------------------------------------------


class Erased:
    """A ledger of which the bodies of some events were erased."""

    def __init__(self, view: LedgerView, *types: str) -> None:
        self.view = view
        self.types = types
        self.size = view.size

    def events(self, since: int = 0, until: int | None = None) -> Iterator[Recorded]:
        for recorded in self.view.events(since, until):
            gone = recorded.type in self.types and recorded.task == "a"
            yield changed(recorded, event=None) if gone else recorded

    def root(self, size: int | None = None) -> bytes:
        return self.view.root(size)


def test_erased_verdicts_leave_nothing_to_compare_and_no_difference(tmp_path: Path) -> None:
    write(tmp_path)
    with LedgerView.open(tmp_path) as view:
        found = replay(Erased(view, "evaluation.finished"))
    assert found.equal is None
    assert found.differences == ()
    assert found.not_compared["correct.accuracy"] == "erased"
    assert found.metrics.extra["unavailable"]["correct.accuracy"] == "erased"
    assert "correct.accuracy" not in found.metrics.metrics


def test_an_erased_verdict_is_no_excuse_for_another_prefix(tmp_path: Path) -> None:
    write(tmp_path, fields={"root": "00" * 32})
    with LedgerView.open(tmp_path) as view:
        assert names(replay(Erased(view, "evaluation.finished"))) == ["root"]


def test_an_erased_answer_takes_only_what_needs_answers(tmp_path: Path) -> None:
    write(tmp_path)
    with LedgerView.open(tmp_path) as view:
        found = replay(Erased(view, "result.recorded"), reducers=("majority@2",))
    assert found.equal is True
    assert found.metrics.extra["unavailable"] == {"correct.majority@2": "erased"}


# -- imported runs --------------------------------------------------------------------------------


def source(name: str) -> dict[str, Any]:
    return dict(json.loads((DATA / f"agentcompass_{name}.json").read_text("utf-8")))


def write_import(path: Path, record: dict[str, Any], **values: float) -> Path:
    """A ledger of a real AgentCompass run, with the numbers of its own report."""
    refs = tuple(
        ev.TaskRef(task_id=row["task_id"], category=row["category"]) for row in record["tasks"]
    )
    with Ledger.create(path / "ledger.sqlite") as ledger:
        ledger.append(
            created(k=record["k"]),
            ev.RunImported(format="agentcompass", identity="0" * 64, records_in=1, records_out=1),
            ev.RunStarted(),
            ev.TasksSelected(benchmark="acl_demo", tasks=refs),
        )
        for row in record["tasks"]:
            ledger.append(*imported_task(row))
        ledger.append(ev.SummaryStarted(), reported(ledger, record, values))
    return path


def imported_task(row: dict[str, Any]) -> list[ev.AnyEvent]:
    name = row["task_id"]
    found: list[ev.AnyEvent] = [ev.TaskStarted(task=name)]
    for number, made in enumerate(row["attempts"], 1):
        metrics = dict(made["metrics"])
        correct, status = metrics.pop("correct", None), made["status"]
        error = None
        if status != "completed":
            error = ev.ErrorInfo(code="x", message="x", fatal=made["fatal"])
        at = {"task": name, "attempt": number}
        judge = ev.Evaluator(id="import:agentcompass", version="1.0.1")
        found += [
            ev.AttemptStarted(**at),
            ev.ResultRecorded(**at, status=status),
            ev.EvaluationFinished(**at, correct=correct, metrics=metrics, evaluator=judge),
            ev.AttemptFinished(**at, status=status, correct=correct, error=error),
        ]
    failed = any(made["status"] != "completed" for made in row["attempts"])
    return [*found, ev.TaskFinished(task=name, reason="all_attempts", error=failed)]


def reported(
    ledger: Ledger, record: dict[str, Any], values: dict[str, float]
) -> ev.MetricsComputed:
    series = record["series"]
    known = {n: s["value"] for n, s in series.items() if s["value"] is not None}
    return ev.MetricsComputed(
        metrics={**known, **values, "evaluated_tasks": 9},
        counts={},
        details={n: {"value": s["value"], "source": s} for n, s in series.items()},
        extra={"unavailable": {n: "gone" for n in series if n not in known}},
        reducers=tuple(
            ev.ReducerUse(
                metric=n.rpartition(".")[0],
                name=n.rpartition(".")[2].partition("@")[0],
                version=1,
                k=record["k"],
                policy="unavailable",
            )
            for n in series
        ),
        size=ledger.size,
        root=ledger.root().hex(),
        source="import",
    )


def test_an_imported_run_shows_its_own_numbers_and_ours_each_by_its_policy(tmp_path: Path) -> None:
    found = replayed(write_import(tmp_path, source("k3-avg")))
    assert found.equal is True
    assert found.source == "import"
    shown = {
        name: (
            round(value, 4),
            found.metrics.details[name]["denominator"],
            found.metrics.details[name]["policy"],
        )
        for name, value in found.metrics.metrics.items()
        if name.startswith(("correct.avg", "correct.pass@3"))
    }
    assert shown == {
        "correct.avg@3": (0.7037, 9, "unavailable"),
        "correct.pass@3": (0.7778, 9, "unavailable"),
        "correct.avg@3[count_as_zero]": (0.5278, 12, "count_as_zero"),
        "correct.pass@3[count_as_zero]": (0.5833, 12, "count_as_zero"),
    }
    assert found.metrics.metrics["answer_chars.avg@3"] == pytest.approx(300.55555555555554)
    assert list(found.not_compared) == ["evaluated_tasks"]


def test_a_number_of_the_source_that_does_not_follow_is_named(tmp_path: Path) -> None:
    found = replayed(write_import(tmp_path, source("k3-avg"), **{"correct.avg@3": 0.75}))
    assert found.equal is False
    assert names(found) == ["metrics/correct.avg@3"]


def test_a_number_that_only_the_source_can_compute_is_not_compared(tmp_path: Path) -> None:
    found = replayed(write_import(tmp_path, source("k3-avg"), **{"vendor.index": 3.0}))
    assert found.equal is True
    assert "not known here" in found.not_compared["vendor.index"]


def test_an_invalidated_report_replays_without_official_values(tmp_path: Path) -> None:
    found = replayed(write_import(tmp_path, source("k3-fatal")))
    assert found.equal is True  # what was compared are the reference values
    assert found.metrics.extra["unavailable"]["correct.avg@3"] == "invalidated"
    reference = found.metrics.details["correct.avg@3"]["reference_value"]
    assert reference == pytest.approx(0.7037037037037037)
    assert found.metrics.metrics["correct.avg@3[count_as_zero]"] == pytest.approx(19 / 42)


def test_an_erased_verdict_of_an_import_is_told_and_no_difference(tmp_path: Path) -> None:
    record = source("k3-avg")
    record["tasks"][0]["task_id"] = "a"
    write_import(tmp_path, record)
    with LedgerView.open(tmp_path) as view:
        found = replay(Erased(view, "evaluation.finished"))
    assert found.equal is None
    assert found.not_compared["correct.avg@3"] == "erased"


def test_a_reference_value_that_does_not_follow_is_named(tmp_path: Path) -> None:
    record = source("k3-fatal")
    record["series"]["correct.pass@3"]["reference_value"] = 0.5
    found = replayed(write_import(tmp_path, record))
    assert names(found) == ["details/correct.pass@3/reference_value"]


def test_a_series_that_is_no_mean_over_tasks_is_not_compared(tmp_path: Path) -> None:
    record = source("k3-avg")
    record["series"]["correct.avg@3"] |= {"aggregation": "category_mean", "value": 0.9}
    found = replayed(write_import(tmp_path, record))
    assert found.equal is True
    assert "category_mean" in found.not_compared["correct.avg@3"]


def test_the_document_is_json(tmp_path: Path) -> None:
    document = replayed(write(tmp_path), policies=("exclude",)).document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert {"equal", "metrics", "differences", "not_compared"} <= set(document)


def test_a_ledger_without_a_run_is_refused(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.append(
            ev.RegistryOpened(
                run_id="r", path="p", ledger_id="0", request_digest="0", planned_tasks=1, k=1
            )
        )
    with pytest.raises(RunNotFound):
        replayed(tmp_path)
