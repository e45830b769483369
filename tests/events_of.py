"""Short ways to say events in tests."""

from ledger import events as ev

JUDGE = ev.Evaluator(id="judge", version="1")


def created(run_id: str = "r1", **execution: object) -> ev.RunCreated:
    return ev.RunCreated(
        run_id=run_id,
        request={
            "benchmark": {"id": "bench", "params": {}},
            "harness": {"id": "noop", "params": {}},
            "model": {"id": "model-1", "params": {}, "base_url": "", "api_protocol": ""},
            "execution": {"k": 1, "strategy": "all", **execution},
            "output": {"run_name": "", "run_id": run_id},
        },
        persistence_params={},
        acl_version="0",
        python="3",
        platform="linux",
        redaction_policy="1",
    )


def selected(*task_ids: str, category: str | None = None) -> ev.TasksSelected:
    refs = tuple(ev.TaskRef(task_id=task_id, category=category) for task_id in task_ids)
    return ev.TasksSelected(benchmark="bench", tasks=refs)


def opening(*task_ids: str, category: str | None = None, **execution: object) -> list[ev.AnyEvent]:
    return [created(**execution), ev.RunStarted(), selected(*task_ids, category=category)]


def result(task: str, attempt: int = 1, **fields: object) -> ev.ResultRecorded:
    return ev.ResultRecorded(task=task, attempt=attempt, **{"status": "completed", **fields})


def verdict(
    task: str,
    attempt: int = 1,
    *,
    correct: bool | None = True,
    score: float | None = None,
    **fields: object,
) -> ev.EvaluationFinished:
    return ev.EvaluationFinished(
        task=task, attempt=attempt, correct=correct, score=score, evaluator=JUDGE, **fields
    )


def attempt(
    task: str,
    number: int = 1,
    *,
    correct: bool | None = True,
    score: float | None = None,
    answer: object = "42",
    **fields: object,
) -> list[ev.AnyEvent]:
    """The events of one attempt that ended well."""
    return [
        ev.AttemptStarted(task=task, attempt=number),
        result(task, number, final_answer=answer, **fields),
        verdict(task, number, correct=correct, score=score),
        ev.AttemptFinished(
            task=task, attempt=number, status="completed", correct=correct, score=score
        ),
    ]


def failed_attempt(task: str, number: int = 1, code: str = "boom") -> list[ev.AnyEvent]:
    """The events of one attempt whose harness failed."""
    error = ev.ErrorInfo(code=code, message=f"{code} happened", phase="run_harness")
    return [
        ev.AttemptStarted(task=task, attempt=number),
        result(task, number, status="run_error", error=error),
        ev.AttemptFinished(task=task, attempt=number, status="run_error", error=error),
    ]


def whole_task(task: str, *attempts: list[ev.AnyEvent], error: bool = False) -> list[ev.AnyEvent]:
    """A task from start to finish around the events of its attempts."""
    return [
        ev.TaskStarted(task=task),
        *(event for events in attempts for event in events),
        ev.TaskFinished(task=task, reason="all_attempts", error=error),
    ]


def ending(status: ev.RunStatus = "completed", exit_code: int = 0) -> list[ev.AnyEvent]:
    return [ev.SummaryStarted(), ev.RunFinished(status=status, exit_code=exit_code)]
