import math
import socket
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import canonical
from ledger.errors import UsageError
from ledger.events import ErrorInfo, Usage
from runtime import call_socket_wire as wire
from runtime.call_records import CallEnd, CallStart, Coordinates, Unattributed

WHERE = Coordinates("run", "task/1", 3)
KEY = b"k" * 32
START = CallStart(
    "c", 0, "openai", "m", {"temperature": 0}, [{"role": "user", "content": "\ud835 \0"}]
)
END = CallEnd(
    call_id="c",
    success=False,
    response={"choices": [{"logprob": -math.inf}]},
    usage=Usage(input_tokens=1, estimated=True),
    cost_usd=0.5,
    cost_source="price_table",
    started_at="2026-01-01T00:00:00Z",
    finished_at=None,
    duration_ms=1.5,
    ttft_ms=None,
    provider_request_id=None,
    error=ErrorInfo(code="provider_timeout", message="late"),
    flags=("a", "b"),
)


def over_the_wire(message: Any) -> Any:
    return wire.decode_message(wire.encode_message(message)).call()


def test_records_come_out_as_they_went_in() -> None:
    assert over_the_wire(wire.start_message("t.t", START)) == START
    assert over_the_wire(wire.end_message("t.t", END)) == END
    stray = Unattributed("c", "openai", "m", "it names no attempt")
    assert over_the_wire(wire.stray_message("t.t", stray)) == stray


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 2**32 - 1))
@settings(max_examples=30)
def test_a_token_names_its_attempt(run_id: str, task: str, attempt: int) -> None:
    where = Coordinates(run_id, task, attempt)
    token = wire.seal_token(where, KEY)
    assert wire.open_token(token, KEY) == where == wire.read_token(token)


def test_every_changed_character_of_a_token_is_noticed() -> None:
    token = wire.seal_token(WHERE, KEY)
    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        # The last characters of base64 may hold bits that say nothing.
        try:
            assert wire.open_token(changed, KEY) == WHERE
        except UsageError:
            continue
        assert at in (token.index(".") - 1, len(token) - 1)


def test_a_token_of_another_recorder_or_for_another_attempt_is_refused() -> None:
    token = wire.seal_token(WHERE, KEY)
    other = wire.seal_token(Coordinates("run", "task/2", 3), KEY)
    spliced = other.partition(".")[0] + "." + token.partition(".")[2]
    for bad in (spliced, token + "x", "", ".", "a.b", "é.é"):
        with pytest.raises(UsageError, match="token"):
            wire.open_token(bad, KEY)
    with pytest.raises(UsageError, match="not of this recorder"):
        wire.open_token(token, b"x" * 32)


def a_start(**changes: Any) -> bytes:
    told = {**wire.start_message("t.t", START).model_dump(), **changes}
    return canonical.encode({name: value for name, value in told.items() if value is not ...})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "dictionary|instance"),
        (b'{"kind":"dropped"}', "kind"),
        (b'{"a":1,"a":2}', "canonical form"),
        (b'{ "kind": "started"}', "canonical form"),
        (a_start(task="other"), "task"),
        (a_start(attempt=9), "attempt"),
        (a_start(call_index=4), "call_index"),
        (a_start(call_id=""), "call_id"),
        (a_start(call_id="c" * 513), "call_id"),
        (a_start(call_id=1), "call_id"),
        (a_start(messages={"role": "user"}), "messages"),
        (a_start(model=...), "model"),
        (b"[" * 500 + b"]" * 500, "nest|deep"),
    ],
)
def test_what_is_no_message_is_refused_by_name(body: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        wire.decode_message(body)


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    with pytest.raises(UsageError) as refusal:
        wire.decode_message(a_start(params="sk-a-secret-of-the-agent"))
    assert "sk-a" not in str(refusal.value)


def test_a_message_cannot_refer_to_pieces_that_others_stored() -> None:
    digest = "ab" * 32
    body = a_start(messages=["HERE"]).replace(
        b'["HERE"]', b'{"$acl":["list",["' + digest.encode() + b'"],[]]}'
    )
    assert canonical.is_canonical(body)
    with pytest.raises(UsageError, match="refers to stored pieces"):
        wire.decode_message(body)


def test_frames_arrive_in_any_pieces() -> None:
    ours, theirs = socket.socketpair()
    body = b"x" * 100_000
    with ours, theirs:
        sender = threading.Thread(target=wire.send_frame, args=(ours, body))
        sender.start()
        assert wire.receive_frame(theirs, 5.0, 5.0) == body
        sender.join()
        wire.send_frame(ours, b"")
        assert wire.receive_frame(theirs, 5.0, 5.0) == b""
        ours.close()
        assert wire.receive_frame(theirs, 5.0, 5.0) is None


@pytest.mark.parametrize("sent", [b"\0", b"\0\0\0\x05abc"])
def test_half_a_frame_is_an_end(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(sent)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises((EOFError, UsageError)):
            wire.receive_frame(theirs, 5.0, 5.0)


def test_an_announced_length_over_the_limit_is_refused_before_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall((wire.MAX_FRAME + 1).to_bytes(4, "big"))
        with pytest.raises(UsageError, match="is over"):
            wire.receive_frame(theirs, 5.0, 5.0)
