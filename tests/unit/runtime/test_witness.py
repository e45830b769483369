"""A witness against foreign requests, and against clients that lie, race and hang."""

import hashlib
import http.client
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from ledger import note, tlog
from ledger.errors import LedgerDamaged, SignatureRefused, UsageError
from ledger.keys import CosigningKey, LogKey, SigningKey, open_note
from runtime.witness.client import WitnessFailed, ask_witness, path_of
from runtime.witness.judge import format_request
from runtime.witness.server import Witness, WitnessServer
from runtime.witness.store import WitnessStore
from tests.stub_endpoint import refusing_port

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "witness.json").read_bytes())
VECTOR_LOG = LogKey.parse(VECTORS["log_key"]["vkey"])
VECTOR_KEY = CosigningKey(
    VECTORS["witness_key"]["name"], bytes.fromhex(VECTORS["witness_key"]["ed25519_seed_hex"])
)
# When the vectors were signed.
VECTOR_TIME = 1_700_000_000

LOG = SigningKey("lab", bytes(32))
KEY = CosigningKey("w.example", b"\1" * 32)
LEAVES = b"".join(tlog.leaf_hash(bytes([n])) for n in range(40))
ORIGIN = "acl/lab/" + "ab" * 16
# Seconds after which a test gives up: only a witness that hangs needs them.
PATIENCE = 60


def signed(size, leaves=LEAVES, origin=ORIGIN, log=LOG):
    checkpoint = note.Checkpoint(origin, size, tlog.root_of(leaves, size))
    return note.sign(checkpoint.text, [log])


def request(old, size, leaves=LEAVES, **more):
    path = tlog.prove_consistency(old, size, tlog.subtrees(leaves)).path
    return format_request(old, path, signed(size, leaves, **more))


def witness(directory, logs=(LOG.verifier,), key=KEY, time=VECTOR_TIME):
    return Witness(key, logs, WitnessStore(directory), lambda: time)


def add(url, body):
    """What the witness at `url` answers to a request."""
    return httpx.post(url + "/add-checkpoint", content=body, timeout=PATIENCE)


def why(case):
    return case["why"]


@pytest.mark.parametrize("case", VECTORS["requests"], ids=why)
def test_requests_of_other_clients_are_answered_as_the_protocol_says(tmp_path, case):
    judge = witness(tmp_path, [VECTOR_LOG], VECTOR_KEY)
    origin = VECTORS["log_key"]["name"]
    if case["witness_latest_size"]:
        remember(tmp_path, origin, case["witness_latest_size"])
    before = judge.latest(hashlib.sha256(origin.encode()).hexdigest()).body
    answer = judge.add_checkpoint(case["request_body"].encode())
    assert answer.status == case["status"]
    if case["status"] in (200, 409):
        assert answer.body.decode() == case["reply_body"]
        assert (answer.type == "text/x.tlog.size") is (case["status"] == 409)
    if case["status"] != 200:
        assert judge.latest(hashlib.sha256(origin.encode()).hexdigest()).body == before


def remember(directory, origin, size):
    """Let the witness have seen the tree of the vectors at a size."""
    entries = json.loads(
        (Path(__file__).parents[2] / "data" / "vectors" / "tree.json").read_bytes()
    )["tree"]["entries_hex"]
    leaves = b"".join(tlog.leaf_hash(bytes.fromhex(entry)) for entry in entries)
    text = note.Checkpoint(origin, size, tlog.root_of(leaves, size)).text
    line = note.Signature("any", b"\0" * 4, b"\0" * 64)
    with WitnessStore(directory).locked(origin) as slot:
        slot.replace(note.format_note(note.SignedNote(text, (line,))))


def test_a_log_is_followed_through_restarts_and_each_answer_is_what_was_asked_last(tmp_path):
    for old, size in ((0, 3), (3, 3), (3, 17), (17, 40)):
        answer = witness(tmp_path).add_checkpoint(request(old, size))
        assert answer.status == 200
        whole = note.parse_note(signed(size)).text + b"\n" + answer.body
        assert open_note(whole, [KEY.verifier])[1] == (KEY.verifier,)
    kept = witness(tmp_path).latest(hashlib.sha256(ORIGIN.encode()).hexdigest()).body
    assert set(open_note(kept, [KEY.verifier, LOG.verifier])[1]) == {KEY.verifier, LOG.verifier}


def test_each_ledger_of_a_key_is_a_log_of_its_own(tmp_path):
    judge = witness(tmp_path)
    for letter in "cdef":
        assert judge.add_checkpoint(request(0, 3, origin=f"acl/lab/{letter * 32}")).status == 200


@pytest.mark.parametrize(
    "origin", ["acl/lab/x", "acl/lab/" + "AB" * 16, "acl/lab2/" + "ab" * 16, "lab/" + "ab" * 16]
)
def test_origins_that_are_no_ledger_of_a_known_key_are_unknown(tmp_path, origin):
    body = format_request(0, (), signed_text(origin))
    assert witness(tmp_path).add_checkpoint(body).status in (400, 404)


def signed_text(origin):
    text = f"{origin}\n3\n".encode() + b64encode(tlog.root_of(LEAVES, 3)) + b"\n"
    return note.sign(text, [LOG])


def test_nothing_is_signed_after_what_was_seen_was_damaged(tmp_path):
    assert witness(tmp_path).add_checkpoint(request(0, 3)).status == 200
    (kept,) = [path for path in tmp_path.iterdir() if path.suffix != ".lock"]
    kept.write_bytes(b"x")
    with pytest.raises(LedgerDamaged):
        witness(tmp_path).add_checkpoint(request(0, 3))


def test_a_store_that_cannot_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        WitnessStore(tmp_path / "file" / "store")


@contextmanager
def serving(judge, **limits):
    with WitnessServer(("127.0.0.1", 0), judge, **limits) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_client_learns_the_size_and_is_given_the_signature(tmp_path):
    with serving(witness(tmp_path)) as url:
        for size in (3, 3, 17, 40):
            lines = ask_witness(url, signed(size), path_of(tlog.subtrees(LEAVES), size))
            assert [line.key_id for line in lines] == [KEY.key_id]


def test_no_proxy_stands_before_a_witness_on_this_machine(tmp_path, monkeypatch):
    with refusing_port() as port, serving(witness(tmp_path)) as url:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        assert ask_witness(url, signed(3), path_of(tlog.subtrees(LEAVES), 3))


def test_a_client_is_told_of_a_rollback_and_of_a_fork(tmp_path):
    other = tlog.leaf_hash(b"another") + LEAVES[32:]
    with serving(witness(tmp_path)) as url:
        ask_witness(url, signed(17), path_of(tlog.subtrees(LEAVES), 17))
        with pytest.raises(SignatureRefused, match="has seen 17 events of this ledger"):
            ask_witness(url, signed(3), path_of(tlog.subtrees(LEAVES), 3))
        for size in (17, 40):
            with pytest.raises(SignatureRefused, match="422"):
                ask_witness(url, signed(size, other), path_of(tlog.subtrees(other), size))


def test_a_witness_that_does_not_know_the_log_or_is_not_there_is_a_failure(tmp_path):
    stranger = SigningKey("stranger", b"\7" * 32)
    origin = "acl/stranger/" + "ab" * 16
    with serving(witness(tmp_path)) as url, pytest.raises(WitnessFailed, match="404"):
        ask_witness(url, signed(3, origin=origin, log=stranger), lambda old: ())
    with pytest.raises(WitnessFailed, match="cannot be asked"):
        ask_witness(url, signed(3), lambda old: ())
    for wrong in ("ftp://x", "x", "http://"):
        with pytest.raises((UsageError, WitnessFailed)):
            ask_witness(wrong, signed(3), lambda old: ())


@contextmanager
def answering(*chunks, status=200):
    """A witness that sends these bytes, whatever it is asked, and then goes away."""

    class Liar(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            with suppress(OSError):
                for chunk in chunks:
                    self.wfile.write(chunk)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_an_answer_without_an_end_is_a_failure():
    endless = [b"x" * 65_536] * 1000
    with answering(*endless) as url, pytest.raises(WitnessFailed, match="without an end"):
        ask_witness(url, signed(3), lambda old: ())


@pytest.mark.parametrize("length", [64, 72])
def test_a_witness_cannot_put_a_line_in_the_place_of_what_the_log_signed(length):
    line = note.Signature("lab", LOG.key_id, b"\0" * length)
    with answering(note.format_line(line)) as url, pytest.raises(WitnessFailed, match="lab"):
        ask_witness(url, signed(3), lambda old: ())


def test_a_line_without_a_time_is_no_signature_of_a_witness():
    line = note.Signature("another", b"1234", b"\0" * 64)
    with answering(note.format_line(line)) as url, pytest.raises(WitnessFailed, match="another"):
        ask_witness(url, signed(3), lambda old: ())


def test_of_clients_that_extend_one_size_at_once_only_one_history_is_signed(tmp_path):
    forks = [tlog.leaf_hash(bytes([n])) + LEAVES[32:] for n in range(8)]
    answers = []
    with serving(witness(tmp_path)) as url:

        def send(leaves):
            body = request(0, 5, leaves)
            answers.append(add(url, body).status_code)

        threads = [threading.Thread(target=send, args=(one,)) for one in forks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(answers) == [200] + [409] * 7


def test_odd_requests_over_http_are_refused_and_the_witness_goes_on(tmp_path):
    with serving(witness(tmp_path)) as url:
        host = url.removeprefix("http://")
        assert httpx.get(url + "/", timeout=PATIENCE).status_code == 404
        assert httpx.get(url + "/" + "0" * 64 + "/checkpoint", timeout=PATIENCE).status_code == 404
        assert httpx.get(url + "/../../etc/passwd/checkpoint", timeout=PATIENCE).status_code == 404
        assert httpx.post(url + "/other", content=b"x", timeout=PATIENCE).status_code == 404
        assert add(url, b"").status_code == 400
        assert add(url, b"x" * 70_000).status_code == 413
        for length in ("-1", "1e3", "99999999999999999999"):
            connection = http.client.HTTPConnection(host, timeout=PATIENCE)
            connection.putrequest("POST", "/add-checkpoint")
            connection.putheader("Content-Length", length)
            connection.endheaders()
            assert connection.getresponse().status in (411, 413)
            connection.close()
        for extra in (b"Content-Length: 6", b"Transfer-Encoding: chunked"):
            assert b" 411 " in spoken(host, b"Content-Length: 6\r\n" + extra, b"old 0\n")
        # One that says nothing keeps nobody waiting.
        name, port = host.split(":")
        with socket.create_connection((name, int(port))):
            assert add(url, request(0, 3)).status_code == 200


def slow_to(url):
    """A client that has begun a request and does not end it."""
    name, port = url.removeprefix("http://").split(":")
    peer = socket.create_connection((name, int(port)), timeout=PATIENCE)
    peer.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 1000\r\n\r\nold")
    return peer


def is_dropped(peer):
    with suppress(ConnectionError):
        return peer.recv(100) == b""
    return True


def test_slow_clients_that_take_all_the_room_make_way_for_others(tmp_path):
    with ExitStack() as stack:
        url = stack.enter_context(serving(witness(tmp_path), most=4))
        peers = [stack.enter_context(slow_to(url)) for _ in range(12)]
        for old, size in ((0, 3), (3, 17)):
            answer = add(url, request(old, size))
            assert answer.status_code == 200
        assert all(is_dropped(peer) for peer in peers[:8])


def test_a_client_that_sends_a_byte_now_and_then_is_dropped(tmp_path):
    with serving(witness(tmp_path), patience=0.2) as url, slow_to(url) as peer:
        peer.settimeout(0.05)
        for _ in range(400):
            try:
                peer.sendall(b"x")
                assert peer.recv(100) == b""
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("it was not dropped")
        # Others are served; a busy machine may need longer than this witness waits for anybody.
        for _ in range(100):
            with suppress(httpx.TransportError):
                assert httpx.get(url + "/", timeout=PATIENCE).status_code == 404
                break
        else:
            pytest.fail("nobody is served")


def test_a_part_of_a_request_is_none(tmp_path):
    body = request(0, 3) + note.format_line(note.Signature("x", b"1234", b"\0" * 64))
    with serving(witness(tmp_path)) as url:
        name, port = url.removeprefix("http://").split(":")
        with socket.create_connection((name, int(port)), timeout=PATIENCE) as peer:
            head = b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
            peer.sendall(head + request(0, 3))
            peer.shutdown(socket.SHUT_WR)
            assert peer.recv(1000) == b""
        assert add(url, request(0, 17)).status_code == 200


def test_a_client_that_keeps_its_connection_has_its_time_for_each_request(tmp_path):
    with serving(witness(tmp_path)) as url, httpx.Client(timeout=PATIENCE) as client:
        for old, size in ((0, 3), (3, 17), (17, 40)):
            answer = client.post(url + "/add-checkpoint", content=request(old, size))
            assert answer.status_code == 200


def spoken(host, headers, body):
    """What is answered to bytes on the wire."""
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=PATIENCE) as peer:
        peer.sendall(b"POST /add-checkpoint HTTP/1.1\r\n" + headers + b"\r\n\r\n" + body)
        return peer.recv(1000)


def test_no_request_writes_commands_for_a_terminal_to_the_log(tmp_path, caplog):
    with caplog.at_level("INFO"), serving(witness(tmp_path)) as url:
        name, port = url.removeprefix("http://").split(":")
        with socket.create_connection((name, int(port)), timeout=PATIENCE) as peer:
            peer.sendall(b"GET /\x1b[31mred HTTP/1.0\r\n\r\n")
            while peer.recv(1000):
                pass
    assert "\\x1b[31mred" in caplog.text
    assert "\x1b" not in caplog.text


def test_what_was_answered_is_kept_when_the_witness_is_killed(tmp_path):
    (tmp_path / "key").write_text(KEY.encode())
    (tmp_path / "key").chmod(0o600)
    command = [sys.executable, "-m", "acl", "witness", "serve", "--port", "0"]
    command += ["--log", LOG.verifier.encode(), "--store", str(tmp_path / "store")]
    environ = {**os.environ, "ACL_WITNESS_KEY": str(tmp_path / "key")}
    size = 0
    for grown in (3, 17):
        with started(command, environ) as (server, url):
            assert add(url, request(size, grown)).is_success
            server.send_signal(signal.SIGKILL)
        size = grown
    with started(command, environ) as (server, url):
        answer = add(url, request(3, 40))
        assert (answer.status_code, answer.text) == (409, "17\n")
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 128 + signal.SIGTERM


def test_with_json_a_witness_tells_its_key_and_its_place_in_one_document(tmp_path):
    (tmp_path / "key").write_text(KEY.encode())
    (tmp_path / "key").chmod(0o600)
    command = [sys.executable, "-m", "acl", "witness", "serve", "--port", "0", "--json"]
    command += ["--log", LOG.verifier.encode(), "--store", str(tmp_path / "store")]
    command += ["--witness-key", str(tmp_path / "key")]
    with running(command, os.environ) as server:
        told = json.loads(server.stdout.readline())
        assert told["verifier_key"] == KEY.verifier.encode()
        assert add(told["url"], request(0, 3)).is_success


@contextmanager
def started(command, environ):
    with running(command, environ) as server:
        assert server.stdout.readline().strip() == KEY.verifier.encode()
        yield server, server.stdout.readline().split()[1]


@contextmanager
def running(command, environ):
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        command, env=environ, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            yield server
        finally:
            server.kill()
