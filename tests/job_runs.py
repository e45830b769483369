"""Ledgers of agents that call models, and what the jobs layout makes of them."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from exporters.jobs.job import JobOptions, job_files
from ledger import events as ev
from ledger.fold import fold
from ledger.state import RunState
from ledger.store import Ledger
from ledger.view import LedgerView

START = 1_750_000_000_000_000_000  # 2025-06-15T15:06:40Z
STARTED = "2025-06-15T15:06:40.000000Z"
JUDGE = ev.Evaluator(id="judge", version="2")
USAGE = ev.Usage(input_tokens=100, output_tokens=10, total_tokens=110, cached_tokens=40)


@contextmanager
def create(path: Path, seed: str = "job") -> Iterator[Ledger]:
    """A ledger whose clock goes on by one second an event."""
    seconds = itertools.count()
    drawn = itertools.count()

    def clock() -> tuple[int, int]:
        now = next(seconds) * 1_000_000_000
        return START + now, now

    def entropy(size: int) -> bytes:
        return hashlib.sha256(f"{seed} {next(drawn)}".encode()).digest()[:size]

    path.mkdir(parents=True, exist_ok=True)
    with Ledger.create(path, clock=clock, entropy=entropy) as ledger:
        yield ledger


def write(path: Path, *events: ev.AnyEvent, seed: str = "job") -> Path:
    """A ledger of these events."""
    with create(path, seed) as ledger:
        for event in events:
            ledger.append(event)
    return path


@contextmanager
def opened(path: Path, size: int | None = None) -> Iterator[tuple[RunState, LedgerView]]:
    with LedgerView.open(path) as view:
        yield fold(view.events(until=size)), view


def exported(
    path: Path, options: JobOptions | None = None, *, size: int | None = None
) -> dict[str, bytes]:
    """The files of the job by their paths below its directory."""
    with opened(path, size) as (state, view):
        return {
            file.path: file.data if isinstance(file.data, bytes) else b"".join(file.data)
            for file in job_files(state, view, options or JobOptions())
        }


def document(files: dict[str, bytes], path: str = "result.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files[path])
    return found


def lines(files: dict[str, bytes], trial: str) -> list[dict[str, Any]]:
    text = files[f"{trial}/agent/litellm-trajectory.jsonl"].decode("utf-8", "surrogatepass")
    return [json.loads(line) for line in text.split("\n")[:-1]]


# -- events ------------------------------------------------------------------------------------


def created(run_id: str = "run-1", **sections: Any) -> ev.RunCreated:
    request: dict[str, Any] = {
        "benchmark": {"id": "bench", "params": {}},
        "harness": {"id": "agent", "params": {}},
        "model": {
            "id": "model-1",
            "params": {},
            "base_url": "https://user:********@models.example:8443/v1",
            "api_protocol": "openai-chat",
            "api_key": "********",
        },
        "execution": {"k": 1, "strategy": "all"},
        "output": {"run_name": "", "run_id": run_id},
    }
    for section, fields in sections.items():
        request[section] = {**request[section], **fields}
    return ev.RunCreated(
        run_id=run_id,
        request=request,
        persistence_params={},
        acl_version="0.1.0",
        python="3.11.7",
        platform="linux",
        price_table_sha256="ab" * 32,
        redaction_policy="1",
    )


def opening(
    *tasks: str | ev.TaskRef, run_id: str = "run-1", version: str | None = "3", **sections: Any
) -> list[ev.AnyEvent]:
    refs = tuple(t if isinstance(t, ev.TaskRef) else ev.TaskRef(task_id=t) for t in tasks)
    chosen = ev.TasksSelected(benchmark="bench", benchmark_version=version, tasks=refs)
    return [created(run_id, **sections), ev.RunStarted(), chosen]


def ending(status: ev.RunStatus = "completed", exit_code: int = 0) -> list[ev.AnyEvent]:
    first = [ev.SummaryStarted()] if status == "completed" else []
    return [*first, ev.RunFinished(status=status, exit_code=exit_code)]


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def reply(content: Any, *, finish: str = "stop", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **fields}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "model-1-2025",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def call_start(
    task: str, number: int, index: int, messages: Any = None, params: Any = None
) -> ev.CallStarted:
    return ev.CallStarted(
        task=task,
        attempt=number,
        call_id=f"{task}/{number}/{index}",
        call_index=index,
        provider="openai",
        model="model-1",
        params=params,
        messages=messages if messages is not None else [said("user", f"question {index}")],
    )


def call_end(task: str, number: int, index: int, **fields: Any) -> ev.CallFinished:
    usual = {
        "success": True,
        "response": reply(f"answer {index}"),
        "usage": USAGE,
        "cost_usd": 0.25,
        "cost_source": "provider",
    }
    return ev.CallFinished(
        task=task, attempt=number, call_id=f"{task}/{number}/{index}", **{**usual, **fields}
    )


def call(
    task: str, number: int, index: int, messages: Any = None, params: Any = None, **fields: Any
) -> list[ev.AnyEvent]:
    """A call that was answered; `fields` are its end's."""
    return [
        call_start(task, number, index, messages, params),
        call_end(task, number, index, **fields),
    ]


def failed_call(
    task: str, number: int, index: int, code: str, message: str, **fields: Any
) -> list[ev.AnyEvent]:
    error = ev.ErrorInfo(code=code, message=message)
    bare = {"response": None, "usage": None, "cost_usd": None, "cost_source": "unknown"}
    return call(task, number, index, success=False, error=error, **bare, **fields)


def lost_call(task: str, number: int, index: int) -> list[ev.AnyEvent]:
    lost = ev.CallLost(task=task, attempt=number, call_id=f"{task}/{number}/{index}")
    return [call_start(task, number, index), lost]


def phase(task: str, number: int, name: ev.Phase) -> ev.PhaseEntered:
    return ev.PhaseEntered(task=task, attempt=number, phase=name)


def plan(task: str, number: int) -> ev.PlanResolved:
    return ev.PlanResolved(task=task, attempt=number, plan={}, plan_hash="cd" * 32)


def attempt(
    task: str,
    number: int = 1,
    *during: ev.AnyEvent,
    correct: bool | None = True,
    score: float | None = None,
    answer: Any = "42",
    verdict: dict[str, Any] | None = None,
    retries: int = 0,
    error: ev.ErrorInfo | None = None,
) -> list[ev.AnyEvent]:
    """An attempt that was judged; `during` comes before its result."""
    status = "completed" if error is None else "run_error"
    return [
        ev.AttemptStarted(task=task, attempt=number),
        *during,
        ev.ResultRecorded(
            task=task, attempt=number, status=status, final_answer=answer, error=error
        ),
        ev.EvaluationFinished(
            task=task,
            attempt=number,
            correct=correct,
            score=score,
            evaluator=JUDGE,
            **(verdict or {}),
        ),
        ev.AttemptFinished(
            task=task,
            attempt=number,
            status=status,
            correct=correct,
            score=score,
            retries=retries,
            error=error,
        ),
    ]


def broken(
    task: str,
    number: int = 1,
    *during: ev.AnyEvent,
    code: str = "run_timeout",
    message: str = "not finished after 5 s",
    phase: str | None = "run_harness",
    status: ev.AttemptStatus = "run_error",
) -> list[ev.AnyEvent]:
    """An attempt that ended in an error before there was a verdict."""
    error = ev.ErrorInfo(code=code, message=message, phase=phase, traceback="Traceback: no\n")
    return [
        ev.AttemptStarted(task=task, attempt=number),
        *during,
        ev.ResultRecorded(task=task, attempt=number, status="run_error", error=error),
        ev.AttemptFinished(task=task, attempt=number, status=status, error=error),
    ]


def cancelled(task: str, number: int = 1) -> list[ev.AnyEvent]:
    return [
        ev.AttemptStarted(task=task, attempt=number),
        ev.AttemptFinished(task=task, attempt=number, status="cancelled"),
    ]


def retried(task: str, number: int, retry: int) -> ev.AttemptRetried:
    return ev.AttemptRetried(
        task=task,
        attempt=number,
        retry=retry,
        max_retries=3,
        retry_delay_seconds=1.0,
        stage="run_harness",
        scope="attempt",
        error=ev.ErrorInfo(code="provider_rate_limited", message="HTTP 429: slower"),
    )


def whole(task: str, *attempts: Iterable[ev.AnyEvent], early: bool = False) -> list[ev.AnyEvent]:
    """A task from its start to its end."""
    made = list(itertools.chain.from_iterable(attempts))
    ends = [event for event in made if isinstance(event, ev.AttemptFinished)]
    return [
        ev.TaskStarted(task=task),
        *made,
        ev.TaskFinished(
            task=task,
            reason="stopped_early" if early else "all_attempts",
            error=any("error" in end.status for end in ends),
        ),
    ]


def agents(path: Path) -> None:
    """Agents that call tools, fail, lose calls, are tried again and are judged in parts."""
    system, user = said("system", "You repair functions."), said("user", "Repair `add`. \u00fc")
    tool = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"x": 1}'}}
    wants = said("assistant", None, tool_calls=[tool])
    saw = said("tool", "1 failed", tool_call_id="c1")
    params = {"temperature": 0.0, "stream": True, "tools": [{"type": "function"}]}
    times = {
        "started_at": "2025-06-15T15:06:50.125000Z",
        "finished_at": "2025-06-15T15:06:51.000000Z",
        "duration_ms": 875.0,
        "ttft_ms": 120.0,
    }
    first = [
        *call(
            "fix", 1, 0, [system, user], params, response=reply(None, tool_calls=[tool]), **times
        ),
        ev.ToolFinished(task="fix", attempt=1, name="run", call_id="c1", exit_code=1),
        *call("fix", 1, 1, [system, user, wants, saw], params, cost_source="price_table"),
    ]
    second = [
        *failed_call("fix", 2, 0, "provider_rate_limited", "HTTP 429: slow down"),
        retried("fix", 2, 1),
        *lost_call("fix", 2, 1),
        *call("fix", 2, 2, usage=None, cost_usd=None, cost_source="unknown"),
    ]
    verdict = {
        "metrics": {"lines": 3},
        "reason": "1 of 2 tests passes",
        "stdout": "1 passed, 1 failed\n",
        "tests_status": {"passed": ["a"], "failed": ["b"]},
    }
    events = [
        *opening(
            ev.TaskRef(task_id="fix", category="repair", metadata={"resolve_threshold": 0.5}),
            "late/one",
            execution={"k": 2, "max_retries": 1},
        ),
        *whole(
            "fix",
            attempt("fix", 1, *first, correct=None, score=0.5, verdict=verdict),
            attempt("fix", 2, *second, correct=None, score=0.0, retries=1),
        ),
        *whole("late/one", broken("late/one"), attempt("late/one", 2, correct=None, score=1.0)),
        *ending(),
    ]
    write(path, *events, seed="agents")
