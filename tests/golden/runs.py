"""Ledgers for golden export trees: the same clock and entropy, so the same bytes everywhere."""

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path

from ledger import canonical
from ledger import events as ev
from ledger.store import Copy, Ledger
from ledger.view import LedgerView

START = 1_750_000_000_000_000_000  # 2025-06-15T15:06:40Z
JUDGE = ev.Evaluator(id="judge", version="2", sha256="ab" * 32)
ODD_IDS = (
    "a/b",
    "a_b",
    "Case",
    "case",
    "caf\u00e9",
    "cafe\u0301",
    "\u00e9" * 300,
    "x" * 300,
    "CON",
    "con.txt",
    ".hidden",
    "_error_x",
    "../up",
    "...",
    "",
    "line\nbreak",
    "pi|pe",
    "lone \ud835 half",
    "joined \ud83d\ude00 halves",
)


def create(path: Path, seed: str) -> Ledger:
    """A new ledger whose clock ticks by a second and whose entropy comes from `seed`."""
    ticks = itertools.count()
    blocks = itertools.count()

    def clock() -> tuple[int, int]:
        tick = next(ticks) * 1_000_000_000
        return START + tick, tick

    def entropy(length: int) -> bytes:
        return hashlib.sha256(f"{seed}/{next(blocks)}".encode()).digest()[:length]

    path.mkdir(parents=True, exist_ok=True)
    return Ledger.create(path, clock=clock, entropy=entropy)


def opening(
    run_id: str,
    *refs: ev.TaskRef,
    frozen: ev.ReuseFrozen | None = None,
    benchmark_params: dict[str, object] | None = None,
    **execution: object,
) -> list[ev.AnyEvent]:
    """The events of a run up to its task list."""
    model = {
        "id": "model-1",
        "base_url": "https://models.example/v1",
        "api_key": "********",
        "api_protocol": "openai",
        "params": {"temperature": 0.5, "stop": ["", "END"], "_private": 1, "seed": None},
    }
    benchmark = {"id": "demo-bench", "params": benchmark_params or {}}
    output = {"run_name": "golden", "run_id": ""}
    request = {
        "benchmark": benchmark,
        "harness": {"id": "search", "params": {"budget": 5}},
        "environment": {"id": "local", "params": {}},
        "model": model,
        "execution": {"k": 1, "strategy": "all", **execution},
        "runtime": {"reuse": None, "reuse_run_id": ""},
        "output": output,
        "metadata": {"config_path": None, "recipe_dirs": [], "request_name": None},
    }
    created = ev.RunCreated(
        run_id=run_id,
        request=request,
        persistence_params={"benchmark": benchmark, "model": model, "output": output},
        acl_version="0.1.0",
        python="3.11.7",
        platform="linux",
        redaction_policy="1",
    )
    selected = ev.TasksSelected(benchmark="demo-bench", benchmark_version="3", tasks=refs)
    return [created, *([frozen] if frozen else []), ev.RunStarted(), selected]


def ref(task_id: str, category: str | None = None) -> ev.TaskRef:
    return ev.TaskRef(task_id=task_id, category=category)


def call(
    task: str, attempt: int, index: int, cost: float | None, **fields: object
) -> list[ev.AnyEvent]:
    """A model call of 100 tokens in and 10 out."""
    call_id = f"{task}/{attempt}/{index}"
    usage = ev.Usage(input_tokens=100, output_tokens=10, total_tokens=110)
    fields = {"success": True, "usage": usage, **fields}
    return [
        ev.CallStarted(
            task=task, attempt=attempt, call_id=call_id, call_index=index, model="model-1"
        ),
        ev.CallFinished(task=task, attempt=attempt, call_id=call_id, cost_usd=cost, **fields),
    ]


def plan(task: str, attempt: int = 1) -> ev.PlanResolved:
    return ev.PlanResolved(
        task=task,
        attempt=attempt,
        plan={
            "environment": {"id": "local", "resources": {}, "setup": {}},
            "harness": {"budget": 5},
        },
        plan_hash="cd" * 32,
        applied_recipes=("short-timeouts",),
    )


def finished(task: str, attempt: int = 1, **fields: object) -> ev.AttemptFinished:
    return ev.AttemptFinished(task=task, attempt=attempt, **{"status": "completed", **fields})


def attempt(
    task: str,
    number: int = 1,
    *,
    correct: bool | None = True,
    score: float | None = None,
    **fields: object,
) -> list[ev.AnyEvent]:
    """An attempt that was judged; `fields` are its result's."""
    fields = {"status": "completed", "final_answer": f"answer {number}", **fields}
    return [
        ev.AttemptStarted(task=task, attempt=number),
        plan(task, number),
        ev.ResultRecorded(task=task, attempt=number, **fields),
        ev.EvaluationFinished(
            task=task, attempt=number, correct=correct, score=score, evaluator=JUDGE
        ),
        finished(task, number, correct=correct, score=score),
    ]


def broken_attempt(task: str, number: int = 1) -> list[ev.AnyEvent]:
    """An attempt whose environment could not be opened."""
    error = ev.ErrorInfo(code="env_failed", message="no room", phase="open_environment", fatal=True)
    return [
        ev.AttemptStarted(task=task, attempt=number),
        ev.ResultRecorded(task=task, attempt=number, status="run_error", error=error),
        finished(task, number, status="run_error", error=error),
    ]


def task(
    task_id: str, *attempts: list[ev.AnyEvent], error: bool = False, early: bool = False
) -> list[ev.AnyEvent]:
    """A task with these attempts."""
    reason = "stopped_early" if early else "all_attempts"
    return [
        ev.TaskStarted(task=task_id),
        *(event for events in attempts for event in events),
        ev.TaskFinished(task=task_id, reason=reason, error=error),
    ]


def metrics(ledger: Ledger, counts: dict[str, int]) -> ev.MetricsComputed:
    """Two metrics with a denominator, one without, and one that is not defined."""
    return ev.MetricsComputed(
        metrics={"correct.accuracy": 2 / 3, "evaluated_tasks": 3, "tokens.avg@1": 110.0},
        counts=counts,
        details={
            "correct.accuracy": {
                "value": 2 / 3,
                "numerator": 2,
                "denominator": 3,
                "excluded": {"run_error": 1, "no | verdict": 1},
                "estimator": "mean",
                "policy": "count_as_zero",
                "counted_as_zero": {"eval_error": 1},
                "interval": {"name": "wilson", "low": 0.2, "high": 0.94},
            },
            "tokens.avg@1": {"value": 110.0, "denominator": 3, "excluded": {}, "interval": None},
        },
        extra={
            "unavailable": {"correct.pass@5": "needs k attempts"},
            "categories": {
                "math": {
                    "correct.accuracy": {
                        "value": 2 / 3,
                        "numerator": 2,
                        "denominator": 3,
                        "excluded": {},
                    },
                    "correct.pass@5": {
                        "value": None,
                        "denominator": 0,
                        "excluded": {"needs k attempts": 3},
                        "reason": "needs k attempts",
                    },
                }
            },
        },
        size=ledger.size,
        root=ledger.root().hex(),
        source="evaluation",
    )


def ending(ledger: Ledger, status: str = "completed", **counts: int) -> None:
    """Metrics and the end of a run."""
    ledger.append(ev.SummaryStarted())
    ledger.append(metrics(ledger, counts))
    ledger.append(ev.RunFinished(status=status, exit_code=0, counts=counts))


def _retried() -> list[ev.AnyEvent]:
    """One attempt of `math-3`: two tries discarded, then right, with calls that cost."""
    name = "math-3"
    error = ev.ErrorInfo(code="429", message="slow down", phase="run_harness")
    first = ev.AttemptRetried(
        task=name,
        attempt=1,
        retry=1,
        max_retries=3,
        retry_delay_seconds=0.25,
        stage="run",
        scope="attempt",
        matched_pattern="429",
        error=error,
        discarded_result={"status": "run_error", "trajectory": [{"role": "user", "content": "hi"}]},
    )
    second = ev.AttemptRetried(
        task=name,
        attempt=1,
        retry=2,
        max_retries=3,
        retry_delay_seconds=0.5,
        stage="evaluate/judge.v2",
        scope="evaluate",
        error=ev.ErrorInfo(code="judge_down", message="connection reset"),
    )
    return [
        ev.AttemptStarted(task=name, attempt=1),
        plan(name),
        *call(name, 1, 0, 1.0),
        first,
        plan(name),
        *call(name, 1, 1, 1.0),
        *call(name, 1, 2, None, usage=None),
        ev.ResultRecorded(
            task=name,
            attempt=1,
            status="completed",
            final_answer=42,
            trajectory=[{"role": "assistant", "content": "the answer is 42"}],
            metrics={"tokens": 220, "speed": 1e-05},
            telemetry={"turns": 2},
            meta={"agent": "v1"},
            extra={"notes": "fine", "reason": "mine"},
        ),
        ev.ArtifactsCollected(
            task=name,
            attempt=1,
            artifacts=(
                ev.Artifact(path="out.txt", bytes=5),
                ev.Artifact(path="raw.bin", bytes=2),
            ),
            contents={"out.txt": "hello", "raw.bin": canonical.Binary(b"\xff\x00")},
        ),
        second,
        ev.EvaluationFinished(
            task=name,
            attempt=1,
            correct=True,
            score=1.0,
            metrics={"tokens": 221, "lines": 3},
            reason="all tests pass",
            tests_status={"passed": ["t1"], "failed": []},
            evaluator=JUDGE,
            stdout="ok\n",
            ground_truth="42",
            extra={"notes": "from the judge", "suite": "s1"},
        ),
        _analysis(name, True, 0.25, "loop", 12),
        finished(name, correct=True, score=1.0, retries=2),
    ]


def _analysis(task_id: str, bad: bool, score: float, kind: str, turns: int) -> ev.AnalysisFinished:
    details = {"value_counts": {"kind": kind}, "numeric_stats": {"turns": turns}}
    return ev.AnalysisFinished(
        task=task_id,
        attempt=1,
        analyzer="loops",
        family="loops",
        is_badcase=bad,
        score=score,
        details=details,
    )


def full(path: Path) -> None:
    """Verdicts, a scalar, no category, errors of both kinds, retries, analysis, cost."""
    with create(path, "full") as ledger:
        refs = (
            ref("math-1", "math"),
            ref("math-2", "math"),
            ref("math-3", "math"),
            ref("code-1", "code"),
            ref("loose"),
            ref("skip-1", "code"),
        )
        ledger.append(*opening("full-1", *refs, benchmark_params={"limit": 6}, max_retries=3))
        right = attempt("math-1", correct=True, score=1.0, ground_truth="answer 1")
        right.insert(-1, _analysis("math-1", False, 0.75, "none", 3))
        ledger.append(*task("math-1", right))
        ledger.append(*task("math-2", attempt("math-2", correct=False, score=0.0)))
        ledger.append(*task("math-3", _retried()))
        ledger.append(*task("code-1", broken_attempt("code-1"), error=True))
        ledger.append(*task("loose", attempt("loose", correct=None, score=0.5, final_answer="")))
        skipped = [
            ev.AttemptStarted(task="skip-1", attempt=1),
            finished("skip-1", status="skipped"),
        ]
        ledger.append(*task("skip-1", skipped))
        ending(ledger, total=6, evaluated=4, error=1, skipped=1, missing=0)
        ledger.seal()


def odd(path: Path) -> None:
    """Ids that no file system likes, and values that no plain JSON holds."""
    with create(path, "odd") as ledger:
        ledger.append(
            *opening(
                "odd-1", *(ref(name, "w/e:ird" if name == "CON" else None) for name in ODD_IDS)
            )
        )
        values = {
            "nan": float("nan"),
            "infinities": [float("inf"), float("-inf")],
            "negative zero": -0.0,
            "big": 2**64,
            "least": -(2**63),
            "lone": "a\udc00b",
            "pair of halves": "\ud83d\ude00",
            "nul": "\x00",
            "separator": "\u2028",
            "$acl": ["float", "nan"],
            "k\ud835": 1,
            "bytes": canonical.Binary(b"\x00\xff"),
            "long": "0123456789" * 1000,
        }
        for name in ODD_IDS:
            # One task errs, so that `_error_` in front of a name is seen beside `_error_x`.
            if name == "a_b":
                ledger.append(*task(name, broken_attempt(name), error=True))
            else:
                ledger.append(
                    *task(name, attempt(name, trajectory=values if name == "a/b" else None))
                )
        ending(ledger, total=len(ODD_IDS))


def interrupted(path: Path) -> None:
    """The writer was killed: one task is done, one attempt is open, one task never began."""
    with create(path, "interrupted") as ledger:
        ledger.append(*opening("killed-1", ref("t1"), ref("t2"), ref("t3"), k=2))
        ledger.append(*task("t1", attempt("t1"), attempt("t1", 2, correct=False)))
        ledger.append(ev.TaskStarted(task="t2"), *attempt("t2", correct=False))
        ledger.append(ev.AttemptStarted(task="t2", attempt=2), *call("t2", 2, 0, None)[:1])


def stopped_early(path: Path) -> None:
    """Strategy stop_on_correct: wrong, then right; the third attempt is never made."""
    with create(path, "stop") as ledger:
        ledger.append(*opening("stop-1", ref("t1"), k=3, strategy="stop_on_correct"))
        ledger.append(*task("t1", attempt("t1", correct=False), attempt("t1", 2), early=True))
        ending(ledger, total=1, evaluated=1)


def empty(path: Path) -> None:
    """No task was selected, and the run failed."""
    with create(path, "empty") as ledger:
        ledger.append(*opening("empty-1"))
        error = ev.ErrorInfo(code="no_tasks", message="the selection is empty")
        ledger.append(ev.RunFinished(status="failed", exit_code=1, error=error))


def reused(path: Path) -> None:
    """Takes over what run `killed-1` had finished, retries and calls with it, and runs the rest."""
    source = path / "source"
    with create(source, "source") as ledger:
        ledger.append(*opening("source-1", ref("math-3", "math"), ref("t2")))
        ledger.append(*task("math-3", _retried()))
        ledger.append(ev.TaskStarted(task="t2"))
    with LedgerView.open(source) as view, create(path, "reused") as ledger:
        size, root = view.size, view.root().hex()
        origin = {"ledger_id": view.ledger_id.hex(), "size": size, "root": root}
        frozen = ev.ReuseFrozen(
            mode="explicit", run_id="source-1", path="golden/source-1", **origin
        )
        ledger.append(*opening("reused-1", ref("math-3", "math"), ref("t2"), frozen=frozen))
        taken = [recorded for recorded in view.events() if recorded.task == "math-3"]
        reuse = ev.TaskReused(
            task="math-3",
            source_run_id="source-1",
            source_path="golden/source-1",
            source_ledger_id=origin["ledger_id"],
            size=size,
            root=root,
            leaves=canonical.Binary(view.leaves()),
            sequence=tuple(recorded.seq for recorded in taken),
        )
        copies = [Copy(r.header, view.raw(r.seq)[1], view.blob) for r in taken]
        ledger.append(reuse, *copies)
        ledger.append(*task("t2", [*attempt("t2")[:2], *call("t2", 1, 0, 0.5), *attempt("t2")[2:]]))
        ending(ledger, total=2, evaluated=2)


RUNS: dict[str, Callable[[Path], None]] = {
    "empty": empty,
    "full": full,
    "interrupted": interrupted,
    "odd": odd,
    "reused": reused,
    "stopped_early": stopped_early,
}
