import asyncio
from typing import Any

import pytest

from ledger.errors import NotStored, SandboxFailed
from runtime.contracts import StageError
from runtime.stages import StageTimeout, explain, stage


async def value(found: Any = 1) -> Any:
    return found


async def raising(error: BaseException) -> None:
    raise error


def test_a_stage_returns_what_its_work_returns() -> None:
    assert asyncio.run(stage(lambda: value(5), timeout=None, grace=1)) == 5


def test_a_stage_raises_what_its_work_raises() -> None:
    with pytest.raises(KeyError):
        asyncio.run(stage(lambda: raising(KeyError("x")), timeout=60, grace=1))


def test_a_time_out_cancels_the_work_and_waits_for_its_cleaning_up() -> None:
    cleaned = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    with pytest.raises(StageTimeout, match=r"not finished after 0\.01 s"):
        asyncio.run(stage(slow, timeout=0.01, grace=60))
    assert cleaned == [True]


def test_work_that_ignores_its_cancellation_is_left_behind() -> None:
    async def stubborn(free: asyncio.Event) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async def run() -> None:
        free = asyncio.Event()
        with pytest.raises(StageTimeout):
            await stage(lambda: stubborn(free), timeout=0.01, grace=0.01)
        free.set()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_cancelled_caller_cancels_the_work_first() -> None:
    seen = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("work")
            raise

    async def run() -> None:
        task = asyncio.create_task(stage(slow, timeout=None, grace=60))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        seen.append("caller")

    asyncio.run(run())
    assert seen == ["work", "caller"]


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (SystemExit(3), "SystemExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (GeneratorExit(), "GeneratorExit"),
        (BaseException("own"), "BaseException"),
        (BaseExceptionGroup("g", [KeyboardInterrupt()]), "BaseExceptionGroup"),
    ],
)
def test_what_would_end_the_program_becomes_an_error(raised: BaseException, code: str) -> None:
    with pytest.raises(StageError) as caught:
        asyncio.run(stage(lambda: raising(raised), timeout=None, grace=1))
    assert caught.value.code == code


def test_work_that_is_no_coroutine_fails_in_its_stage() -> None:
    def no_coroutine() -> Any:
        raise KeyError("at the call")

    with pytest.raises(KeyError):
        asyncio.run(stage(no_coroutine, timeout=None, grace=1))
    with pytest.raises(TypeError):
        asyncio.run(stage(lambda: 5, timeout=None, grace=1))  # type: ignore[arg-type,return-value]


def test_a_stage_error_may_hold_what_is_no_text() -> None:
    error = StageError(5, ["not", "text"], fatal="no")  # type: ignore[arg-type]
    info = explain(error, "run_harness")
    assert (info.code, info.message, info.fatal) == ("5", "['not', 'text']", False)


def test_a_stage_error_brings_its_code_and_class() -> None:
    info = explain(StageError("provider_auth", "wrong key", fatal=True), "run_harness")
    assert (info.code, info.message, info.phase) == ("provider_auth", "wrong key", "run_harness")
    assert info.fatal


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("bad"), "ValueError"),
        (SandboxFailed("no python"), "sandbox_failed"),
        (NotStored("full"), "not_stored"),
    ],
)
def test_other_errors_are_named_for_their_class(error: Exception, code: str) -> None:
    assert explain(error, None).code == code


def test_an_error_tells_where_it_was_raised_and_not_on_which_machine() -> None:
    try:
        raise ValueError("bad")
    except ValueError as error:
        trace = explain(error, None).traceback
    assert trace is not None
    assert 'File "runtime/test_stages.py"' in trace
    assert "ValueError: bad" in trace


def test_an_error_without_words_and_one_that_cannot_be_printed_are_told() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert explain(KeyError(), None).message == "KeyError"
    assert "cannot be printed" in explain(Unprintable(), None).message


def test_an_endless_traceback_is_cut_in_the_middle() -> None:
    trace = explain(ValueError("x" * 100_000), None).traceback
    assert trace is not None
    assert len(trace) < 25_000
    assert trace.startswith("ValueError")
