"""Exported, imported and exported again: the same files, whatever a ledger holds."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import LedgerView, canonical
from ledger import events as ev
from ledger.verify import verify
from runtime.replay import replay
from tests.details_runs import do_import, export, round_trip
from tests.golden.runs import RUNS, create, opening, ref
from tests.importer_runs import state_of


@pytest.mark.parametrize("case", sorted(RUNS))
def test_a_golden_run_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RUNS[case](tmp_path / "run")
    report, comparison = round_trip(tmp_path / "run", tmp_path)
    assert comparison.differences == ()
    assert report.unplaced == ()
    assert report.records_in == report.records_out
    assert [f for f in verify(report.path) if f.severity == "broken"] == []


@pytest.mark.parametrize("case", sorted(RUNS))
def test_an_import_of_an_import_comes_back_as_it_was(case: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    RUNS[case](tmp_path / "run")
    report, _ = round_trip(tmp_path / "run", tmp_path)
    _, comparison = round_trip(report.path, tmp_path / "again")
    assert comparison.differences == ()


# -- whatever a ledger holds --------------------------------------------------------------------

# The names under which an export tells what it knows itself: a plug-in may use them too.
NAMES = (
    "a",
    "$acl",
    "$acl.b",
    "k\ud835",
    "attempt_error",
    "attempt_error_info",
    "benchmark.a",
    "collected_artifacts",
    "error_info",
    "evaluator",
    "files",
    "harness.a",
    "harness_ground_truth",
    "harness_metrics",
    "issues",
    "reason",
    "resolved_execution_plan",
    "stdout",
    "telemetry",
    "tests_status",
    "truncated",
)
texts = st.sampled_from(
    ("", "x", "a: b", "é", "\ud83d\ude00", "a\udc00b", "\x00", "\u2028", "********")
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    texts,
    st.sampled_from((0, 1, 1.0, -0.0, 2**64, -(2**63), 1e300, 1e-05)),
    st.sampled_from((float("nan"), float("inf"), float("-inf"))),
    st.just(canonical.Binary(b"\x00\xff")),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=6,
)
objects = st.one_of(st.none(), st.dictionaries(st.sampled_from(NAMES), values, max_size=4))
measures = st.dictionaries(
    st.sampled_from(("m", "n", "lines")), st.sampled_from((True, 0, 1, 1.0, 2.5)), max_size=3
)
errors = st.one_of(
    st.none(),
    st.builds(
        ev.ErrorInfo,
        code=st.sampled_from(("a", "429", "words and more")),
        message=texts,
        phase=st.sampled_from((None, "evaluate")),
        fatal=st.booleans(),
        traceback=st.sampled_from((None, "line\nline")),
    ),
)


@st.composite
def attempts(draw: Any, task: str, number: int) -> list[ev.AnyEvent]:
    """All events of one attempt, as the state machine takes them."""
    events: list[ev.AnyEvent] = [ev.AttemptStarted(task=task, attempt=number)]
    at = {"task": task, "attempt": number}
    made = draw(st.integers(0, 2))
    for retry in range(1, made + 1):
        events += draw(calls(task, number, retry - 1))
        events.append(draw(retries(task, number, retry, "attempt")))
    if draw(st.booleans()):
        plan = draw(objects) or {}
        events.append(ev.PlanResolved(**at, plan=plan, plan_hash="x", applied_recipes=("r",)))
    events += draw(calls(task, number, made))
    error = draw(errors)
    events.append(draw(results(task, number, error)))
    if draw(st.booleans()):
        kept = {"f": draw(texts)} if draw(st.booleans()) else {}
        files = (ev.Artifact(path="f", bytes=3),)
        events.append(ev.ArtifactsCollected(**at, artifacts=files, contents=kept))
    if draw(st.booleans()):
        made += 1
        events.append(draw(retries(task, number, made, "evaluate")))
        events += draw(calls(task, number, made))
    verdict = draw(st.one_of(st.none(), verdicts(task, number)))
    if verdict is not None:
        events.append(verdict)
    if draw(st.booleans()):
        found = {"value_counts": {"kind": "x"}, "numeric_stats": {"n": draw(st.integers(0, 9))}}
        events.append(
            ev.AnalysisFinished(
                **at, analyzer="an", family="f", is_badcase=True, details=found, error=draw(errors)
            )
        )
    events.append(draw(ends(task, number, made, error, verdict)))
    return events


def retries(task: str, number: int, retry: int, scope: str) -> st.SearchStrategy[Any]:
    return st.builds(
        ev.AttemptRetried,
        task=st.just(task),
        attempt=st.just(number),
        retry=st.just(retry),
        max_retries=st.just(3),
        retry_delay_seconds=st.just(0.5),
        stage=st.sampled_from(("run", "run.harness/x", "")),
        scope=st.just(scope),
        error=st.builds(ev.ErrorInfo, code=st.just("a"), message=texts),
        discarded_result=values,
    )


@st.composite
def calls(draw: Any, task: str, number: int, retry: int) -> list[ev.AnyEvent]:
    events: list[ev.AnyEvent] = []
    for index in range(draw(st.integers(0, 2))):
        at = {"task": task, "attempt": number, "call_id": f"{retry}/{index}"}
        events.append(ev.CallStarted(**at, call_index=index, model="m"))
        if draw(st.booleans()):
            events.append(ev.CallLost(**at))
            continue
        usage = draw(st.sampled_from((None, ev.Usage(input_tokens=3, output_tokens=2))))
        events.append(
            ev.CallFinished(
                **at,
                success=draw(st.booleans()),
                usage=usage,
                cost_usd=draw(st.sampled_from((None, 0.1, 0.25))),
                error=draw(errors),
                flags=("slow",) if draw(st.booleans()) else (),
            )
        )
    return events


def results(task: str, number: int, error: ev.ErrorInfo | None) -> st.SearchStrategy[Any]:
    return st.builds(
        ev.ResultRecorded,
        task=st.just(task),
        attempt=st.just(number),
        status=st.just("completed" if error is None else "run_error"),
        final_answer=values,
        ground_truth=values,
        trajectory=values,
        artifacts=values,
        metrics=measures,
        telemetry=values,
        error=st.just(error),
        meta=objects,
        extra=objects,
        redactions=st.sampled_from((None, 2)),
    )


def verdicts(task: str, number: int) -> st.SearchStrategy[Any]:
    return st.builds(
        ev.EvaluationFinished,
        task=st.just(task),
        attempt=st.just(number),
        correct=st.sampled_from((None, True, False)),
        score=st.sampled_from((None, 0, 0.5, 1.0)),
        metrics=measures,
        reason=st.one_of(st.none(), texts),
        evaluation_error=errors,
        tests_status=values,
        evaluator=st.just(ev.Evaluator(id="judge", version="1")),
        stdout=values,
        stderr=values,
        ground_truth=values,
        extra=objects,
        redactions=st.sampled_from((None, 1)),
    )


@st.composite
def ends(
    draw: Any, task: str, number: int, made: int, error: Any, verdict: Any
) -> ev.AttemptFinished:
    judge = None if verdict is None else verdict.evaluation_error
    statuses = {
        (False, False): ("completed", "skipped", "cancelled"),
        (True, False): ("run_error",),
        (False, True): ("eval_error",),
        (True, True): ("run_error_or_eval_error",),
    }
    issue = ev.Issue(severity="warning", code="c", message=draw(texts))
    return ev.AttemptFinished(
        task=task,
        attempt=number,
        status=draw(st.sampled_from(statuses[error is not None, judge is not None])),
        correct=None if verdict is None else verdict.correct,
        score=None if verdict is None else verdict.score,
        retries=made,
        error=error or judge,
        issues=(issue,) if draw(st.booleans()) else (),
    )


@st.composite
def runs(draw: Any) -> list[ev.AnyEvent]:
    """A run of up to three tasks that was ended, or whose writer was killed."""
    ids = draw(st.lists(st.sampled_from(("t", "T", "a/b", "\ud83d\ude00", "")), unique=True))
    refs = (ref(name, draw(st.sampled_from((None, "", "c/d")))) for name in ids)
    events = opening("r", *refs, k=2, max_retries=3)
    whole = True
    for name in ids:
        made = [draw(attempts(name, number)) for number in (1, 2)]
        stage = draw(st.sampled_from(("done", "done", "cancelled", "running", "pending")))
        whole = whole and stage in ("done", "cancelled")
        if stage == "pending":
            continue
        events += [ev.TaskStarted(task=name), *made[0]]
        statuses = [made[0][-1].status]
        if stage == "running":
            events.append(ev.AttemptStarted(task=name, attempt=2))
        elif stage == "cancelled":
            events.append(ev.TaskCancelled(task=name, reason="stopped"))
        else:
            events += made[1]
            statuses.append(made[1][-1].status)
            failed = any("error" in status for status in statuses)
            reason = draw(st.sampled_from(("all_attempts", "stopped_early")))
            events.append(ev.TaskFinished(task=name, reason=reason, error=failed))
    if whole and draw(st.booleans()):
        events += [ev.SummaryStarted(), ev.RunFinished(status="completed", exit_code=0)]
    elif draw(st.booleans()):
        why = ev.ErrorInfo(code="gone", message=draw(texts))
        events.append(ev.RunFinished(status="failed", exit_code=1, error=why))
    return events


@given(runs())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_ledger_holds_comes_back_as_it_was(events: list[ev.AnyEvent]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        (scratch / "run").mkdir()
        with create(scratch / "run", "any") as ledger:
            ledger.append(*events)
        report, comparison = round_trip(scratch / "run", scratch)
        assert comparison.differences == ()
        assert [f for f in verify(report.path) if f.severity == "broken"] == []
        before, after = replayed(scratch / "run"), replayed(report.path)
        assert after == before
        again = export(report.path, scratch / "third")
        assert again.redactions == sum(event.redactions or 0 for event in events)


def replayed(run: Path) -> Any:
    with LedgerView.open(run) as view:
        return replay(view, reducers=("majority@2",)).metrics


def test_the_order_of_the_tasks_and_their_checksums_survive(tmp_path: Path) -> None:
    tasks = (
        ev.TaskRef(task_id="z", checksum="ab" * 32, metadata={"tags": ["x"], "n": float("nan")}),
        ev.TaskRef(task_id="a", category="c"),
    )
    (tmp_path / "run").mkdir()
    with create(tmp_path / "run", "order") as ledger:
        ledger.append(*opening("r", *tasks))
    export(tmp_path / "run", tmp_path / "tree")
    state = state_of(do_import(tmp_path / "tree", tmp_path / "results"))
    assert list(state.tasks) == ["z", "a"]
    assert state.tasks["z"].checksum == "ab" * 32
    assert state.tasks["z"].metadata["tags"] == ["x"]
    assert state.benchmark_version == "3"
