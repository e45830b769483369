import asyncio
import logging
import random
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.errors import (
    AclError,
    LedgerDead,
    LedgerStateError,
    NotStored,
    UsageError,
    ValueRefused,
)
from ledger.store import Copy, Ledger, Receipt
from ledger.view import LedgerView
from runtime.contracts import StageError
from runtime.recorder import CHECKPOINT_EVENTS, CHECKPOINT_SECONDS, Recorder
from runtime.redact import Redactor
from tests import events_of as say
from tests.ledger_checks import check_ledger

SECRET = "correct-horse-battery"


class Clock:
    """A monotonic clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(tmp_path: Path, clock: Clock) -> Iterator[Recorder]:
    redactor = Redactor({"SERVICE_TOKEN": SECRET})
    made = Recorder(Ledger.create(tmp_path), redactor, monotonic=clock, patience=0.0)
    yield made
    made.close()


def stored(recorder: Recorder) -> list[Any]:
    with LedgerView.open(recorder.ledger.path) as view:
        return [recorded.event for recorded in view.events()]


def begin(recorder: Recorder, *tasks: str) -> None:
    recorder.record_sync(*say.opening(*tasks))
    for task in tasks:
        recorder.record_sync(ev.TaskStarted(task=task), ev.AttemptStarted(task=task, attempt=1))


def test_what_is_told_to_be_stored_is_on_disk(recorder: Recorder) -> None:
    receipt = recorder.record_sync(say.created(), ev.RunStarted())
    assert (receipt.first, receipt.size) == (0, 2)
    with LedgerView.open(recorder.ledger.path) as view:
        assert (view.size, view.root()) == (2, receipt.root)


def test_callers_of_one_loop_share_commits(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [f"t{number}" for number in range(40)]
    recorder.record_sync(*say.opening(*tasks))
    groups: list[int] = []
    append = recorder.ledger.append_group

    def counting(batches: Sequence[Iterable[ev.AnyEvent | Copy]]) -> list[Receipt | AclError]:
        groups.append(len(batches))
        return append(batches)

    monkeypatch.setattr(recorder.ledger, "append_group", counting)

    async def all_at_once() -> None:
        await asyncio.gather(*(recorder.record(ev.TaskStarted(task=task)) for task in tasks))

    asyncio.run(all_at_once())
    assert sum(groups) == 40
    assert len(groups) < 40


def test_a_batch_that_is_not_legal_fails_alone(recorder: Recorder) -> None:
    recorder.record_sync(*say.opening("a", "b"))

    async def both() -> list[Any]:
        return await asyncio.gather(
            recorder.record(ev.TaskFinished(task="a", reason="all_attempts", error=False)),
            recorder.record(ev.TaskStarted(task="b")),
            return_exceptions=True,
        )

    refused, kept = asyncio.run(both())
    assert isinstance(refused, LedgerStateError)
    assert isinstance(kept, Receipt)


def test_secrets_are_replaced_before_they_are_stored_and_counted(recorder: Recorder) -> None:
    begin(recorder, "t")
    recorder.record_sync(say.result("t", final_answer=f"I found {SECRET}", extra={"api_key": "x1"}))
    event = stored(recorder)[-1]
    assert event.final_answer == "I found ********"
    assert event.extra == {"api_key": "********"}
    assert event.redactions == 2
    assert recorder.state().redactions == 2


def test_a_value_that_no_ledger_holds_is_left_out_and_named(recorder: Recorder) -> None:
    begin(recorder, "t")
    trajectory = [{"x": 1}, {"x": {1, 2}, "y": 2}]
    recorder.record_sync(say.result("t", final_answer="kept", trajectory=trajectory))
    event = stored(recorder)[-1]
    assert event.final_answer == "kept"
    assert event.trajectory == [{"x": 1}, {"y": 2}]
    (refusal,) = recorder.refusals("t", 1)
    assert refusal.path == "$.trajectory[1].x"
    assert "set" in refusal.why
    assert recorder.refusals("t", 1) == []


def test_what_cannot_be_left_out_is_refused(recorder: Recorder) -> None:
    long = "t" * 60_001
    recorder.record_sync(*say.opening(long))
    with pytest.raises(ValueRefused, match=r"\$\.task"):
        recorder.record_sync(ev.TaskStarted(task=long))


def test_calls_without_an_end_are_lost_when_the_attempt_ends(recorder: Recorder) -> None:
    begin(recorder, "t")
    start = {"task": "t", "attempt": 1}
    recorder.record_sync(ev.CallStarted(**start, call_id="a", call_index=0))
    recorder.record_sync(ev.CallStarted(**start, call_id="b", call_index=1))
    recorder.record_sync(ev.CallFinished(**start, call_id="a", success=True))
    recorder.record_sync(say.result("t"))
    recorder.record_sync(ev.AttemptFinished(**start, status="completed"))
    assert [event.type for event in stored(recorder)[-2:]] == ["call.lost", "attempt.finished"]
    assert stored(recorder)[-2].call_id == "b"


def test_calls_are_lost_with_a_discarded_try_and_may_still_end(recorder: Recorder) -> None:
    begin(recorder, "t")
    start = {"task": "t", "attempt": 1}
    recorder.record_sync(ev.CallStarted(**start, call_id="a", call_index=0))
    retried = ev.AttemptRetried(
        **start,
        retry=1,
        max_retries=1,
        retry_delay_seconds=0.0,
        stage="run_harness",
        scope="attempt",
        error=ev.ErrorInfo(code="boom", message="boom"),
    )
    recorder.record_sync(retried)
    recorder.record_sync(ev.CallFinished(**start, call_id="a", success=True))
    assert recorder.state().late_calls == 1


def test_a_call_of_a_refused_batch_is_not_open(recorder: Recorder) -> None:
    begin(recorder, "t")
    start = {"task": "t", "attempt": 1}
    with pytest.raises(LedgerStateError):
        recorder.record_sync(
            ev.CallStarted(**start, call_id="a", call_index=0),
            ev.CallFinished(**start, call_id="never", success=True),
        )
    recorder.record_sync(say.result("t"), ev.AttemptFinished(**start, status="completed"))
    assert stored(recorder)[-1].type == "attempt.finished"


def test_a_cancelled_caller_learns_of_it_when_its_events_are_on_disk(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    append = recorder.ledger.append_group

    def slow(batches: Sequence[Iterable[ev.AnyEvent | Copy]]) -> list[Receipt | AclError]:
        begun.set()
        assert go_on.wait(10)
        return append(batches)

    monkeypatch.setattr(recorder.ledger, "append_group", slow)

    async def cancelled_meanwhile() -> None:
        task = asyncio.create_task(recorder.record(say.created()))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled_meanwhile())
    assert [event.type for event in stored(recorder)] == ["run.created"]


def test_the_loop_of_a_caller_may_end_before_its_events_are_stored(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    append = recorder.ledger.append_group

    def slow(batches: Sequence[Iterable[ev.AnyEvent | Copy]]) -> list[Receipt | AclError]:
        begun.set()
        assert go_on.wait(20)
        return append(batches)

    monkeypatch.setattr(recorder.ledger, "append_group", slow)

    async def cancel_everything() -> None:
        asyncio.get_running_loop().create_task(recorder.record(say.created()))
        await asyncio.to_thread(begun.wait)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        # Cancelled once, whoever records goes on; the inner one is cancelled with the loop.
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, go_on.set)

    asyncio.run(cancel_everything())
    go_on.set()
    recorder.record_sync(ev.RunStarted())
    assert [event.type for event in stored(recorder)] == ["run.created", "run.started"]


def test_an_event_that_cannot_even_be_looked_at_fails_alone(recorder: Recorder) -> None:
    class Hostile(dict[str, Any]):
        def items(self) -> Any:
            raise KeyboardInterrupt

        def __iter__(self) -> Any:
            raise KeyboardInterrupt

    begin(recorder, "t")
    secret = Hostile(api_key=SECRET)
    with pytest.raises(StageError, match="KeyboardInterrupt"):
        recorder.record_sync(ev.ToolFinished(task="t", attempt=1, name="x", arguments=secret))
    recorder.record_sync(ev.ToolFinished(task="t", attempt=1, name="y"))
    assert stored(recorder)[-1].name == "y"


def test_an_order_that_fails_is_told_to_whoever_gave_it(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.record_sync(say.created())

    def fail(*signers: Any) -> Any:
        raise MemoryError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(recorder.ledger, "checkpoint", fail)
        with pytest.raises(MemoryError):
            recorder.checkpoint()
    recorder.record_sync(ev.RunStarted())
    assert stored(recorder)[-1].type == "run.started"


def test_a_checkpoint_that_fails_stops_no_event(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*signers: Any) -> Any:
        raise MemoryError("a bug")

    monkeypatch.setattr(recorder.ledger, "checkpoint", fail)
    recorder.record_sync(say.created())
    recorder.record_sync(ev.RunStarted())
    assert stored(recorder)[-1].type == "run.started"


# -- a full disk ------------------------------------------------------------------------------


class FullDisk:
    """Refuses to store the first `times` groups."""

    def __init__(self, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self._append = recorder.ledger.append_group
        self.left = times
        monkeypatch.setattr(recorder.ledger, "append_group", self)

    def __call__(self, batches: Sequence[Iterable[ev.AnyEvent | Copy]]) -> list[Receipt | AclError]:
        if self.left:
            self.left -= 1
            what = "task.started was not stored as event 3: database or disk is full"
            return [NotStored(what)] * len(batches)
        return self._append(batches)


def patient(tmp_path: Path) -> Recorder:
    return Recorder(Ledger.create(tmp_path), Redactor({}), patience=60.0)


def test_a_full_disk_is_told_once_and_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = patient(tmp_path)
    recorder.record_sync(*say.opening("t"))
    FullDisk(recorder, monkeypatch, times=2)
    with caplog.at_level(logging.WARNING):
        recorder.record_sync(ev.TaskStarted(task="t"))
    recorder.close()
    told = [record for record in caplog.records if "disk is full" in record.getMessage()]
    assert [record.levelname for record in told] == ["ERROR"]
    assert f"{recorder.ledger.path}: task.started was not stored" in told[0].getMessage()
    assert "there is room again" in caplog.text


def test_without_patience_the_caller_is_told_and_the_recorder_goes_on(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.record_sync(*say.opening("t"))
    FullDisk(recorder, monkeypatch, times=1)
    with pytest.raises(NotStored, match="disk is full"):
        recorder.record_sync(ev.TaskStarted(task="t"))
    assert len(stored(recorder)) == 3
    recorder.record_sync(ev.TaskStarted(task="t"))
    assert len(stored(recorder)) == 4
    check_ledger(recorder.ledger.path)


def test_a_disk_that_is_really_full_keeps_what_was_stored(recorder: Recorder) -> None:
    begin(recorder, "t")
    connection = recorder.ledger._writer.database._connection
    assert connection is not None
    ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
    connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    large = say.result("t", final_answer=random.Random(1).randbytes(200_000).hex())
    with pytest.raises(NotStored, match=r"result\.recorded was not stored as event 5: .*full"):
        recorder.record_sync(large)
    check_ledger(recorder.ledger.path)
    connection.execute("PRAGMA max_page_count = 1000000")
    recorder.record_sync(large)
    assert stored(recorder)[-1].type == "result.recorded"
    check_ledger(recorder.ledger.path)


def test_who_gave_up_waiting_does_not_wait_again_until_something_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    recorder = Recorder(Ledger.create(tmp_path), Redactor({}), patience=0.0, monotonic=clock)
    recorder.record_sync(*say.opening("a", "b", "c"))
    disk = FullDisk(recorder, monkeypatch, times=1)
    with pytest.raises(NotStored):
        recorder.record_sync(ev.TaskStarted(task="a"))
    recorder._patience = 60.0
    disk.left = 1
    with pytest.raises(NotStored):
        recorder.record_sync(ev.TaskStarted(task="a"))
    recorder.record_sync(ev.TaskStarted(task="a"))
    disk.left = 1
    recorder.record_sync(ev.TaskStarted(task="b"))
    assert disk.left == 0
    recorder.close()


def test_copies_wait_for_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = patient(tmp_path)
    recorder.record_sync(*say.opening("t"))
    FullDisk(recorder, monkeypatch, times=1)
    (outcome,) = asyncio.run(recorder.record_streams([lambda: [ev.TaskStarted(task="t")]]))
    recorder.close()
    assert isinstance(outcome, Receipt)


def test_streams_are_stored_in_one_transaction_and_fail_alone(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder.record_sync(*say.opening("a", "b"))
    finished = ev.TaskFinished(task="a", reason="all_attempts", error=False)
    outcomes = asyncio.run(
        recorder.record_streams([lambda: [finished], lambda: [ev.TaskStarted(task="b")]])
    )
    assert isinstance(outcomes[0], LedgerStateError)
    assert isinstance(outcomes[1], Receipt)
    assert stored(recorder)[-1].task == "b"


# -- checkpoints ------------------------------------------------------------------------------


def covered(recorder: Recorder) -> list[int]:
    with LedgerView.open(recorder.ledger.path) as view:
        return [size for size, _ in view.checkpoints()]


def settle(recorder: Recorder) -> None:
    """Return once the writing thread has looked after its last batch."""
    recorder._do(lambda: None)


def test_the_first_event_is_covered_at_once(recorder: Recorder) -> None:
    recorder.record_sync(say.created())
    settle(recorder)
    assert covered(recorder) == [1]


def test_checkpoints_follow_every_so_many_events(recorder: Recorder) -> None:
    begin(recorder, "t")
    settle(recorder)
    before = covered(recorder)
    for _ in range(CHECKPOINT_EVENTS):
        recorder.record_sync(ev.ToolFinished(task="t", attempt=1, name="look"))
    settle(recorder)
    assert len(covered(recorder)) == len(before) + 1


def test_checkpoints_follow_every_so_many_seconds(recorder: Recorder, clock: Clock) -> None:
    begin(recorder, "t")
    settle(recorder)
    before = covered(recorder)
    clock.now += CHECKPOINT_SECONDS
    recorder.record_sync(ev.ToolFinished(task="t", attempt=1, name="look"))
    settle(recorder)
    # The thread may still have been looking at the clock after its last batch.
    assert covered(recorder) in ([*before, 5], [*before, 6])


def test_a_checkpoint_can_be_asked_for(recorder: Recorder) -> None:
    begin(recorder, "t")
    recorder.checkpoint()
    assert covered(recorder)[-1] == 5


def test_a_seal_comes_after_all_that_was_recorded(recorder: Recorder) -> None:
    recorder.record_sync(say.created())
    recorder.state()
    recorder.seal()
    assert [event.type for event in stored(recorder)] == ["run.created", "ledger.sealed"]
    assert recorder.state().sealed_size == 2
    assert not recorder.ledger.path.with_name("ledger.sqlite-wal").exists()


def test_a_seal_waits_for_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = patient(tmp_path)
    recorder.record_sync(say.created())
    seal = recorder.ledger.seal
    full = [True]

    def sealing(*signers: Any) -> Any:
        if full:
            full.pop()
            raise NotStored("ledger.sealed was not stored as event 1: disk is full")
        return seal(*signers)

    monkeypatch.setattr(recorder.ledger, "seal", sealing)
    recorder.seal()
    assert stored(recorder)[-1].type == "ledger.sealed"
    recorder.close()


# -- state and end ----------------------------------------------------------------------------


def test_the_state_is_caught_up_by_each_call(recorder: Recorder) -> None:
    recorder.record_sync(*say.opening("t"))
    state = recorder.state()
    assert state.size == 3
    recorder.record_sync(ev.TaskStarted(task="t"))
    assert recorder.state() is state
    assert (state.size, state.root) == (4, recorder.ledger.root())


def test_after_the_end_nothing_is_taken(recorder: Recorder) -> None:
    recorder.close()
    recorder.close()
    with pytest.raises(UsageError, match="closed"):
        recorder.record_sync(say.created())


def test_the_queue_is_bounded_and_a_full_one_is_waited_for(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [f"t{number}" for number in range(1500)]
    recorder.record_sync(*say.opening(*tasks))
    begun, go_on = threading.Event(), threading.Event()
    append = recorder.ledger.append_group

    def slow(batches: Sequence[Iterable[ev.AnyEvent | Copy]]) -> list[Receipt | AclError]:
        begun.set()
        assert go_on.wait(20)
        return append(batches)

    monkeypatch.setattr(recorder.ledger, "append_group", slow)

    async def more_than_fits() -> None:
        work = [asyncio.create_task(recorder.record(ev.TaskStarted(task=t))) for t in tasks]
        await asyncio.to_thread(begun.wait)
        go_on.set()
        await asyncio.gather(*work)

    asyncio.run(more_than_fits())
    assert len(stored(recorder)) == 3 + len(tasks)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_the_writing_thread_reaches_whoever_waits(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> list[Receipt | AclError]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(recorder.ledger, "append_group", broken)
    with pytest.raises(LedgerDead, match="a bug"):
        recorder.record_sync(say.created())
    with pytest.raises(LedgerDead, match="a bug"):
        recorder.record_sync(say.created())
