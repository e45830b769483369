"""run_info.json and params.json."""

import json
from pathlib import Path

from exporters.run_files import params, run_info
from ledger import events as ev
from ledger.fold import fold
from ledger.store import Ledger
from ledger.view import LedgerView
from tests.golden.runs import attempt, create, empty, full, interrupted, opening, ref, reused, task


def info(path: Path, *, live: bool = False) -> dict:
    with LedgerView.open(path) as view:
        return json.loads(b"".join(run_info(fold(view.events()), view, live=live).data))


def compact(path: Path) -> dict:
    with LedgerView.open(path) as view:
        return json.loads(params(fold(view.events())).data)


def test_run_info_has_the_documented_fields_in_their_order(tmp_path: Path) -> None:
    full(tmp_path)
    assert list(info(tmp_path)) == [
        "schema_version",
        "run_id",
        "status",
        "started_at",
        "finished_at",
        "request",
        "resolved_execution_plans",
        "metric_artifacts",
        "acl",
    ]


def test_the_request_is_complete_and_sorted(tmp_path: Path) -> None:
    full(tmp_path)
    with LedgerView.open(tmp_path) as view:
        asked = view.event(0).event.request
    told = info(tmp_path)["request"]
    assert told == asked
    assert list(told) == sorted(told)


def test_times_are_those_of_the_events(tmp_path: Path) -> None:
    full(tmp_path)
    told = info(tmp_path)
    assert told["started_at"] == "2025-06-15T15:06:40.000000Z"
    with LedgerView.open(tmp_path) as view:
        ends = {recorded.type: recorded.at for recorded in view.events()}
    assert told["finished_at"] == ends["run.finished"]
    assert told["metric_artifacts"] == {
        "generated_at": ends["metrics.computed"],
        "source": "evaluation",
    }


def test_plans_stand_by_task_and_attempt(tmp_path: Path) -> None:
    interrupted(tmp_path)
    plans = info(tmp_path)["resolved_execution_plans"]
    assert {task_id: list(found["attempts"]) for task_id, found in plans.items()} == {
        "t1": ["1", "2"],
        "t2": ["1"],
    }
    assert plans["t1"]["attempts"]["1"]["applied_recipes"] == ["short-timeouts"]


def test_a_run_without_an_end_is_interrupted_and_running_only_live(tmp_path: Path) -> None:
    interrupted(tmp_path)
    told = info(tmp_path)
    assert (told["status"], told["finished_at"]) == ("interrupted", None)
    assert info(tmp_path, live=True)["status"] == "running"
    assert told["metric_artifacts"] == {
        "generated_at": None,
        "source": None,
        "reason": "no metrics were computed",
    }


def test_a_run_that_ended_is_not_running_even_live(tmp_path: Path) -> None:
    empty(tmp_path)
    assert info(tmp_path, live=True)["status"] == "failed"


def test_the_error_of_a_failed_run_is_told(tmp_path: Path) -> None:
    empty(tmp_path)
    told = info(tmp_path)
    assert told["error"] == "no_tasks: the selection is empty"
    assert told["acl"]["error_info"]["code"] == "no_tasks"


def test_the_source_of_reuse_is_named_relative_to_the_results(tmp_path: Path) -> None:
    reused(tmp_path)
    with LedgerView.open(tmp_path / "source") as view:
        ledger_id, root = view.ledger_id.hex(), view.root().hex()
    assert info(tmp_path)["reused_from"] == {
        "run_id": "source-1",
        "path": "golden/source-1",
        "ledger_id": ledger_id,
        "root": root,
    }


def test_an_implicit_search_that_found_nothing_is_no_source(tmp_path: Path) -> None:
    with create(tmp_path, "none") as ledger:
        ledger.append(*opening("r", ref("t"), frozen=ev.ReuseFrozen(mode="none")))
    assert "reused_from" not in info(tmp_path)


def test_an_imported_run_has_the_times_of_its_source(tmp_path: Path) -> None:
    imported = ev.RunImported(
        format="agentcompass",
        identity="ab" * 32,
        started_at="2020-01-01T00:00:00Z",
        records_in=1,
        records_out=1,
    )
    with create(tmp_path, "imported") as ledger:
        first, *rest = opening("r", ref("t"))
        ledger.append(first, imported, *rest, *task("t", attempt("t")))
    told = info(tmp_path)
    assert (told["started_at"], told["finished_at"]) == ("2020-01-01T00:00:00Z", None)


def write(ledger: Ledger, **sections: object) -> None:
    first, *rest = opening("r-1", ref("t"))
    ledger.append(first.model_copy(update={"persistence_params": sections}), *rest)


def test_params_leave_out_what_is_empty_or_private_at_every_depth(tmp_path: Path) -> None:
    model = {
        "id": "m",
        "base_url": "",
        "api_key": "********",
        "params": {
            "stop": ["", None, [], {}, "END", {"_x": 1}],
            "nested": {"empty": {"still": [""]}},
            "zero": 0,
            "off": False,
            "_hidden": 1,
        },
        "unknown": 1,
    }
    with create(tmp_path, "params") as ledger:
        write(ledger, model=model, benchmark={"id": "b", "params": {}}, output={"run_name": ""})
    told = compact(tmp_path)
    assert told.pop("acl")["run_id"] == "r-1"
    assert told == {
        "benchmark": {"id": "b"},
        "model": {
            "api_key": "********",
            "id": "m",
            "params": {"off": False, "stop": ["END"], "zero": 0},
        },
        "output": {"run_id": "r-1"},
    }


def test_params_are_sorted_with_the_trailer_last(tmp_path: Path) -> None:
    full(tmp_path)
    told = compact(tmp_path)
    assert list(told) == ["benchmark", "model", "output", "acl"]
    assert list(told["model"]) == ["api_key", "api_protocol", "base_url", "id", "params"]
    assert told["model"]["params"] == {"stop": ["END"], "temperature": 0.5}


def test_params_of_a_run_that_recorded_none_still_say_which_run(tmp_path: Path) -> None:
    with create(tmp_path, "bare") as ledger:
        write(ledger)
    told = compact(tmp_path)
    assert (told["benchmark"], told["output"]) == ({}, {"run_id": "r-1"})


def test_the_task_list_stands_in_acl_in_its_order(tmp_path: Path) -> None:
    tasks = (
        ev.TaskRef(task_id="z", category="c", checksum="ab" * 32, metadata={"tags": ["x"]}),
        ev.TaskRef(task_id="a"),
    )
    with create(tmp_path, "selected") as ledger:
        ledger.append(*opening("r", *tasks))
    assert info(tmp_path)["acl"]["selected"] == {
        "benchmark": "demo-bench",
        "version": "3",
        "tasks": [
            {
                "task_id": "z",
                "category": "c",
                "checksum": "ab" * 32,
                "metadata": {"tags": ["x"]},
            },
            {"task_id": "a"},
        ],
    }


def test_attempts_of_no_record_are_told_in_short(tmp_path: Path) -> None:
    interrupted(tmp_path)
    untold = info(tmp_path)["acl"]["untold"]
    assert list(untold) == ["t2"]
    assert untold["t2"]["stage"] == "running"
    first, second = untold["t2"]["attempts"].values()
    assert (first["status"], first["correct"], first["final_answer"]) == (
        "completed",
        False,
        "answer 1",
    )
    assert (second["status"], second["acl"]["calls"][0]["call_id"]) == (None, "t2/2/0")
    assert "untold" not in info(tmp_path, live=True)["acl"]


def test_a_cancelled_attempt_of_a_finished_task_is_told_without_its_texts(tmp_path: Path) -> None:
    stopped = [
        ev.AttemptStarted(task="t", attempt=2),
        ev.ResultRecorded(task="t", attempt=2, status="completed", trajectory=["long"]),
        ev.AttemptFinished(task="t", attempt=2, status="cancelled"),
    ]
    with create(tmp_path, "cancelled") as ledger:
        ledger.append(*opening("r", ref("t"), k=2), *task("t", attempt("t"), stopped))
    untold = info(tmp_path)["acl"]["untold"]
    assert untold["t"]["stage"] == "done"
    assert list(untold["t"]["attempts"]) == ["2"]
    assert "trajectory" not in untold["t"]["attempts"]["2"]


def test_a_run_without_such_attempts_says_nothing_of_them(tmp_path: Path) -> None:
    full(tmp_path)
    assert "untold" not in info(tmp_path)["acl"]
