"""The client and the server of the recorder's socket, with a real ledger behind them."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ledger import LedgerView
from ledger import events as ev
from ledger.errors import LedgerStateError, NotStored, UsageError
from runtime import call_socket_server
from runtime.call_records import CallEnd, CallStart, Coordinates, Unattributed
from runtime.call_socket import CallClient
from runtime.call_socket_server import CallServer
from runtime.call_socket_wire import MAX_FRAME, SOCKET_VARIABLE, TOKEN_VARIABLE, seal_token
from runtime.recording import Recording, record
from runtime.surroundings import Surroundings
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[3]
AGENT = """
import os, signal, sys
from runtime.call_records import CallEnd, CallStart
from runtime.call_socket import CallClient
with CallClient.from_environ() as calls:
    for number in range(3):
        calls.started_sync(CallStart(f"c{number}", 0, "p", "m", {}, [{"n": number}]))
        print(number, flush=True)
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        calls.finished_sync(CallEnd(f"c{number}", True, {"n": number}, None, None, "unknown",
                                    None, None, None, None, None, None))
"""


def start(call_id: str, **more: Any) -> CallStart:
    return CallStart(call_id, 0, "p", "m", {}, [{"role": "user", "content": "hi"}], **more)


def end(call_id: str) -> CallEnd:
    nothing = (None,) * 6
    return CallEnd(call_id, True, {"id": call_id}, None, None, "unknown", *nothing)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Recording]:
    around = Surroundings(environ={}, patience=0.0)
    with record(tmp_path, benchmark="mine", model="m", k=2, surroundings=around) as recording:
        yield recording
    check_ledger(recording.path)
    # A loop's error ends its attempt and goes no further: so none may have been one of a test.
    errors = [event.error for event in stored(recording, ev.AttemptFinished)]
    assert [one.message for one in errors if one is not None and one.code != "no_result"] == []


@pytest.fixture
def server() -> Iterator[CallServer]:
    with CallServer(frame_seconds=0.5) as opened:
        yield opened


def stored(run: Recording, *kinds: type) -> list[Any]:
    with LedgerView.open(run.path) as view:
        events = [r.event for r in view.events()]
        return [event for event in events if isinstance(event, kinds)]


@contextmanager
def client_of(run: Recording, server: CallServer) -> Iterator[CallClient]:
    """An agent that works on the next attempt."""
    with (
        run.attempt("t") as attempt,
        server.attempt(attempt.calls) as variables,
        CallClient.from_environ(variables) as client,
    ):
        yield client


def calls(run: Recording) -> list[tuple[str, Any, str]]:
    found = stored(run, ev.CallStarted, ev.CallFinished, ev.CallLost)
    return [(event.type, event.task, event.call_id) for event in found]


def test_a_start_is_on_disk_when_the_client_is_told(run: Recording, server: CallServer) -> None:
    with client_of(run, server) as client:
        client.started_sync(start("c"))
        assert calls(run) == [("call.started", "t", "c")]
        client.finished_sync(end("c"))
        assert calls(run)[1:] == [("call.finished", "t", "c")]


def test_calls_are_counted_by_the_recorder_over_all_clients(
    run: Recording, server: CallServer
) -> None:
    with run.attempt("t") as attempt, server.attempt(attempt.calls) as variables:
        clients = [CallClient.from_environ(variables) for _ in range(4)]
        threads = [
            threading.Thread(target=client.started_sync, args=(start(f"c{number}"),))
            for number, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()
    assert sorted(event.call_index for event in stored(run, ev.CallStarted)) == [0, 1, 2, 3]


def test_a_client_serves_an_agent_with_an_event_loop(run: Recording, server: CallServer) -> None:
    async def both(client: CallClient) -> None:
        await client.started(start("c"))
        await client.finished(end("c"))

    with client_of(run, server) as client:
        asyncio.run(both(client))
    assert [kind for kind, _, _ in calls(run)] == ["call.started", "call.finished"]


def test_calls_of_an_agent_that_is_killed_are_lost_at_the_end_of_its_attempt(
    run: Recording, server: CallServer
) -> None:
    with run.attempt("t") as attempt, server.attempt(attempt.calls) as variables:
        done = subprocess.run(
            [sys.executable, "-c", AGENT],
            env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert done.stdout.split() == ["0", "1", "2"]
    assert [event for event in calls(run) if event[2] == "c2"] == [
        ("call.started", "t", "c2"),
        ("call.lost", "t", "c2"),
    ]
    assert len([event for event in calls(run) if event[0] == "call.finished"]) == 2


def test_an_agent_cannot_tell_calls_of_another_attempt(run: Recording, server: CallServer) -> None:
    with (
        run.attempt("mine") as mine,
        run.attempt("yours") as yours,
        server.attempt(mine.calls) as my,
        server.attempt(yours.calls) as your,
    ):
        code = my[TOKEN_VARIABLE].split(".")[1]
        forged = your[TOKEN_VARIABLE].split(".")[0] + "." + code
        elsewhere = seal_token(Coordinates(run.run_id, "nowhere", 1), server._key)
        for token, said in ((forged, "not of this recorder"), (elsewhere, "not known")):
            client = CallClient(my[SOCKET_VARIABLE], token)
            with client, pytest.raises(UsageError, match=said):
                client.started_sync(start("c"))
    assert calls(run) == []


def test_no_call_begins_after_its_attempt_but_a_late_end_is_kept(
    run: Recording, server: CallServer
) -> None:
    with run.attempt("t") as attempt, server.attempt(attempt.calls) as variables:
        client = CallClient.from_environ(variables)
        client.started_sync(start("c"))
    with client:
        with pytest.raises(UsageError, match="over"):
            client.started_sync(start("d"))
        client.finished_sync(end("c"))
        with pytest.raises(LedgerStateError):
            client.finished_sync(end("c"))
    assert [kind for kind, _, _ in calls(run)] == ["call.started", "call.lost", "call.finished"]


def test_what_the_ledger_refuses_the_client_raises(run: Recording, server: CallServer) -> None:
    with client_of(run, server) as client:
        client.started_sync(start("c"))
        with pytest.raises(LedgerStateError, match="already started"):
            client.started_sync(start("c"))
        with pytest.raises(UsageError, match="refused"):
            client.started_sync(CallStart("d", 0, "p", "m", {"x": b"bytes"}, []))
        client.finished_sync(end("c"))


def test_a_stray_call_is_told_to_the_run_and_given_to_no_attempt(
    run: Recording, server: CallServer
) -> None:
    with client_of(run, server) as client:
        client.unattributed_sync(Unattributed("c", "p", "m", "it names no attempt"))
    notes = stored(run, ev.ExtensionRecorded)
    (event,) = [note for note in notes if note.name == "acl.unattributed-call"]
    assert event.task is None
    assert event.payload["call_id"] == "c"


GARBAGE = [
    b"",
    b"\0",
    b"GET / HTTP/1.1\r\n\r\n",
    (MAX_FRAME + 1).to_bytes(4, "big"),
    b"\0\0\0\x10half",
    b"\0\0\0\x02[]" + b"\0\0\0\x04null",
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_harms_nobody_else(run: Recording, server: CallServer, garbage: bytes) -> None:
    with client_of(run, server) as client, socket.socket(socket.AF_UNIX) as rude:
        rude.connect(str(server.path))
        client.started_sync(start("c"))
        with suppress(ConnectionError):
            rude.sendall(garbage)
            rude.shutdown(socket.SHUT_WR)
            while rude.recv(4096):
                pass
        client.finished_sync(end("c"))
    assert len(calls(run)) == 2


def test_a_client_that_stalls_within_a_message_is_cut_off(server: CallServer) -> None:
    with socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(server.path))
        slow.sendall(b"\0\0\0\x10half")
        assert slow.recv(1) == b""


def test_agents_over_the_limit_are_refused_and_the_others_go_on(
    run: Recording, server: CallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_socket_server, "MAX_CONNECTIONS", 1)
    with client_of(run, server) as first:
        first.started_sync(start("c"))
        second = CallClient(str(server.path), first._token)
        with second, pytest.raises(NotStored, match="recorder"):
            second.started_sync(start("d"))
        first.finished_sync(end("c"))


def test_without_a_recorder_nothing_is_stored_and_the_client_says_so(run: Recording) -> None:
    with CallServer() as server, client_of(run, server) as client:
        client.started_sync(start("c"))
        server.close()
        for _ in range(2):
            with pytest.raises(NotStored, match="recorder"):
                client.finished_sync(end("c"))


def test_a_client_that_comes_in_while_the_server_closes_is_let_go() -> None:
    came = threading.Event()

    class Busy(CallServer):
        def _begin(self, connection: socket.socket) -> None:
            came.set()
            while not self._closing:
                time.sleep(0.001)
            super()._begin(connection)

    with Busy() as server, socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(str(server.path))
        assert came.wait(60)
        server.close()
        assert client.recv(1) == b""


def test_the_socket_is_for_this_user_and_goes_with_the_server() -> None:
    with CallServer() as server:
        directory = server.path.parent
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert not directory.exists()


def test_a_temporary_directory_too_deep_for_a_socket_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(UsageError, match="TMPDIR"):
        CallServer().__enter__()
    assert list(deep.iterdir()) == []


def test_an_agent_without_its_variables_is_told_which() -> None:
    with pytest.raises(UsageError, match=f"{SOCKET_VARIABLE} and {TOKEN_VARIABLE}"):
        CallClient.from_environ({})
