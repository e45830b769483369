"""Odd values and ids through a whole run: stored and read back the same, or refused by name."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporters.details import export_details
from ledger import LedgerView
from ledger import events as ev
from ledger.fold import fold
from runtime.contracts import Task
from runtime.results import RunResult
from tests.fake_plugins import Ran, evaluate, task
from tests.ledger_checks import check_ledger


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = {"deeper": value}
    return value


def whole(ran: Ran) -> Ran:
    assert ran.outcome.status == "completed"
    assert ran.outcome.path is not None
    check_ledger(ran.outcome.path)
    with LedgerView.open(ran.outcome.path) as view:
        for file in export_details(fold(view.events()), view):
            _ = file.data if isinstance(file.data, bytes) else b"".join(file.data)
    return ran


HELD = {
    "nan": math.nan,
    "infinity": math.inf,
    "minus zero": -0.0,
    "beyond 64 bits": 2**64,
    "far beyond": -(10**60),
    "lone surrogate": "half \ud835 pair",
    "low surrogate": "a\udc00b",
    "nul": "a\u0000b",
    "line separator": "a\u2028b",
    "surrogate key": {"\ud800": 1},
    "envelope": {"$acl": ["text", ["00"], "x"]},
    "deep": nested(197),
    "float and int": [1, 1.0, 1e21, 5e-324],
}


def test_what_a_ledger_holds_comes_back_the_same(tmp_path: Path) -> None:
    tasks = [task(name) for name in HELD]

    def act(t: Task, context: Any) -> RunResult:
        value = HELD[t.task_id]
        trajectory = [{"role": "agent", "content": value}] * 2
        return RunResult(t.task_id, final_answer=value, trajectory=trajectory, telemetry=[value])

    ran = whole(evaluate(tmp_path, act, tasks))
    for name, value in HELD.items():
        (event,) = ran.of(ev.ResultRecorded, name)
        assert event.status == "completed"
        assert repr(event.final_answer) == repr(value)
        assert repr(event.trajectory[1]["content"]) == repr(value)


REFUSED = {
    "set": {1, 2},
    "bytes": b"raw",
    "numpy float": np.float64(0.5),
    "numpy int": np.int64(1),
    "numpy array": np.zeros(2),
    "number as key": {1: "x"},
    "too deep": nested(201),
    "far too deep": nested(2000),
    "object": object(),
}


def test_what_no_ledger_holds_is_an_error_of_its_attempt_and_the_rest_is_kept(
    tmp_path: Path,
) -> None:
    tasks = [task(name) for name in REFUSED]

    def act(t: Task, context: Any) -> RunResult:
        trajectory = [{"step": 1}, {"step": 2, "seen": REFUSED[t.task_id]}]
        return RunResult(t.task_id, final_answer="right", trajectory=trajectory)

    ran = whole(evaluate(tmp_path, act, tasks))
    for name in REFUSED:
        (event,) = ran.of(ev.ResultRecorded, name)
        assert (event.status, event.final_answer) == ("run_error", "right")
        assert event.trajectory[0] == {"step": 1}
        assert event.trajectory[1]["step"] == 2
        assert event.error.code == "value_refused"
        assert "$.trajectory[1].seen" in event.error.message
        assert ran.state.tasks[name].attempts[1].correct is True


@pytest.mark.parametrize("number", [math.nan, math.inf, np.float32(0.1), "1"])
def test_a_metric_that_is_no_finite_number_is_an_error_by_name(tmp_path: Path, number: Any) -> None:
    def act(t: Task, context: Any) -> RunResult:
        return RunResult(t.task_id, final_answer="right", metrics={"loss": number, "steps": 3})

    ran = whole(evaluate(tmp_path, act, [task("t")]))
    (event,) = ran.of(ev.ResultRecorded)
    assert event.metrics == {"steps": 3}
    assert "$.metrics.loss" in event.error.message


IDS = [
    "a/b",
    "a_b",
    "../x",
    "a:b",
    "CON",
    "x.",
    " x",
    ".hidden",
    "_error_x",
    "A",
    "a",
    "\u00e9",
    "e\u0301",
    "x" * 300,
    "\u00e9" * 300,
    "\ud835",
    "\u0000",
    "\u2028",
    "",
]


def test_any_text_is_a_task_id_and_every_task_gets_its_own_file(tmp_path: Path) -> None:
    ran = whole(evaluate(tmp_path, lambda t, c: "right", [task(name) for name in IDS]))
    assert list(ran.state.tasks) == IDS
    assert ran.state.counts().correct == len(IDS)
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        paths = [file.path for file in export_details(ran.state, view)]
    details = [path for path in paths if path.startswith("details/")]
    assert len({path.lower() for path in details}) == len(IDS)


def test_an_answer_of_a_hundred_megabytes_is_stored_and_comes_back(tmp_path: Path) -> None:
    answer = "0123456789" * 10_000_000

    def act(t: Task, context: Any) -> str:
        return answer if t.task_id == "large" else "right"

    ran = evaluate(tmp_path, act, [task("large", truth=answer), task("small")])
    assert ran.outcome.status == "completed"
    assert ran.of(ev.ResultRecorded, "large")[0].final_answer == answer
    assert [end.correct for end in ran.of(ev.AttemptFinished)] == [True, True]


def test_a_result_beyond_every_limit_fails_its_attempt_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.tail.MAX_RECORD", 50_000)

    def act(t: Task, context: Any) -> Any:
        return list(range(20_000)) if t.task_id == "large" else "right"

    ran = evaluate(tmp_path, act, [task("large"), task("small")])
    assert ran.of(ev.AttemptFinished, "small")[0].correct is True
    (large,) = ran.of(ev.AttemptFinished, "large")
    assert large.status == "run_error"
    assert "after its texts were cut out" in large.error.message
    assert ran.of(ev.ResultRecorded, "large")[0].final_answer is None
