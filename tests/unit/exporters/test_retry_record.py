"""Files of discarded tries."""

import json
from pathlib import Path

from exporters.names import detail_names
from exporters.retry_record import retry_files
from ledger import events as ev
from ledger.fold import fold
from ledger.view import LedgerView
from tests.golden.erasing import Erased
from tests.golden.runs import create, full, opening, ref, reused

FIELDS = [
    "schema",
    "task_id",
    "category",
    "attempt",
    "retry",
    "max_retries",
    "retry_delay_seconds",
    "stage",
    "scope",
    "matched_pattern",
    "error",
    "discarded_result",
    "acl",
]


def files(path: Path, task_id: str, *erased: int, pieces: bool = False) -> dict[str, dict]:
    with LedgerView.open(path) as ledger:
        view = Erased(ledger, *erased, pieces=pieces)
        state = fold(view.events())
        name = detail_names(state.tasks.values())[task_id]
        found = list(retry_files(state.tasks[task_id], name, state, view))
        return {file.path: json.loads(b"".join(file.data)) for file in found}


def retried(stage: str, retry: int = 1, **fields: object) -> ev.AttemptRetried:
    fields = {"error": ev.ErrorInfo(code="429", message="slow"), "scope": "attempt", **fields}
    return ev.AttemptRetried(
        task="t",
        attempt=1,
        retry=retry,
        max_retries=5,
        retry_delay_seconds=0.5,
        stage=stage,
        **fields,
    )


def written(path: Path, *events: ev.AttemptRetried) -> None:
    with create(path, "retries") as ledger:
        start = (ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1))
        ledger.append(*opening("r", ref("t", "c")), *start, *events)


def test_every_discarded_try_has_a_file_with_the_documented_fields(tmp_path: Path) -> None:
    full(tmp_path)
    found = files(tmp_path, "math-3")
    assert list(found) == [
        "retry_details/math-3_math.attempt1.retry1.run.json",
        "retry_details/math-3_math.attempt1.retry2.evaluate_judge_v2.json",
    ]
    first, second = found.values()
    assert list(first) == FIELDS
    assert (first["task_id"], first["category"], first["attempt"]) == ("math-3", "math", 1)
    assert (first["retry"], first["max_retries"], first["scope"]) == (1, 3, "attempt")
    assert first["error"] == "429: slow down"
    assert first["acl"]["error_info"]["phase"] == "run_harness"
    assert first["discarded_result"]["trajectory"] == [{"role": "user", "content": "hi"}]
    assert (second["retry"], second["scope"], second["discarded_result"]) == (2, "evaluate", None)
    assert second["stage"] == "evaluate/judge.v2"


def test_the_event_is_named_by_number_and_address(tmp_path: Path) -> None:
    full(tmp_path)
    with LedgerView.open(tmp_path) as view:
        events = {r.seq: r.address.hex() for r in view.events() if r.type == "attempt.retried"}
    told = [file["acl"]["event"] for file in files(tmp_path, "math-3").values()]
    assert told == [{"seq": seq, "address": address} for seq, address in events.items()]


def test_tries_of_an_unfinished_task_are_there(tmp_path: Path) -> None:
    written(tmp_path, retried("run"), retried("run", 2))
    assert [file["retry"] for file in files(tmp_path, "t").values()] == [1, 2]


def test_tries_of_a_reused_task_are_there_and_marked(tmp_path: Path) -> None:
    reused(tmp_path)
    found = files(tmp_path, "math-3")
    assert [file["acl"]["copied"] for file in found.values()] == [True, True]
    assert {file["acl"]["run_id"] for file in found.values()} == {"reused-1"}


def test_a_stage_that_no_file_system_likes_is_tamed(tmp_path: Path) -> None:
    written(tmp_path, retried("../a.b/\ud835 c"), retried("", 2), retried("s" * 300, 3))
    assert list(files(tmp_path, "t")) == [
        "retry_details/t_c.attempt1.retry1.___a_b_c.json",
        "retry_details/t_c.attempt1.retry2.stage.json",
        f"retry_details/t_c.attempt1.retry3.{'s' * 40}.json",
    ]


def test_a_discarded_result_that_was_erased_is_named(tmp_path: Path) -> None:
    with create(tmp_path, "erased") as ledger:
        start = (ev.TaskStarted(task="t"), ev.AttemptStarted(task="t", attempt=1))
        ledger.append(*opening("r", ref("t")), *start, retried("run", discarded_result="z" * 9000))
        ledger.append(ev.PayloadErased(sequence=(5,), reason="asked to"))
    (told,) = files(tmp_path, "t", pieces=True).values()
    assert told["discarded_result"] is None
    assert told["acl"]["erased"] == [
        {"event": 5, "type": "attempt.retried", "attempt": 1, "reason": "erased by event 6"}
    ]
