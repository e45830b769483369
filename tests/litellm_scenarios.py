"""Agents that use LiteLLM against a stub endpoint, all in one process: importing it takes seconds.

    python tests/litellm_scenarios.py RESULTS_DIR

Each scenario is an attempt of one run; what the ledger cannot tell is printed as JSON. The tests
in `test_litellm_bridge.py` look at both.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from examples import litellm_agent
from ledger import LedgerView
from ledger import events as ev
from runtime.call_socket_server import CallServer
from runtime.litellm_bridge import BOOK, LiteLLMCalls
from runtime.own_attempt import RecordedAttempt
from runtime.recording import Recording, record
from runtime.runner import run as run_request
from runtime.surroundings import Surroundings
from tests import fake_plugins as fake
from tests.litellm_names import HEADER, HISTORY, KEY, METADATA, SIXTEEN, THREADS
from tests.stub_endpoint import StubEndpoint, refusing_port

import litellm  # isort: skip - after the bridge, which keeps it from the network

Scenario = Callable[["Stage"], None]
SCENARIOS: dict[str, Scenario] = {}
FACTS: dict[str, Any] = {}
LOGGED: list[str] = []

litellm.suppress_debug_info = True


class Stage:
    """One attempt, with a stub that behaves as `script` says."""

    def __init__(self, run: Recording, attempt: RecordedAttempt, results: Path) -> None:
        self.run, self.attempt, self.results = run, attempt, results

    @contextmanager
    def bridge(self, settle: float = 60.0) -> Iterator[dict[str, Any]]:
        with LiteLLMCalls(self.attempt.calls, settle_seconds=settle) as acl:
            yield acl

    def ask(self, stub: StubEndpoint, acl: dict[str, Any], **more: Any) -> Any:
        return litellm.completion(**request(stub, acl, **more))

    def fail(self, stub: StubEndpoint, acl: dict[str, Any], **more: Any) -> None:
        """Ask, and consume a stream; there must be an error."""
        with suppress(Exception):
            answer = self.ask(stub, acl, **more)
            if more.get("stream"):
                list(answer)
            FACTS["no_error"] = self.attempt.task.task_id


def request(stub: StubEndpoint, acl: dict[str, Any], **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "hello there you"}]
    base = {"model": "openai/stub-model", "api_base": stub.base_url, "api_key": KEY}
    return {**base, "messages": messages, **acl, **more}


def scenario(act: Scenario) -> Scenario:
    SCENARIOS[act.__name__] = act
    return act


async def ask_async(stub: StubEndpoint, acl: dict[str, Any], **more: Any) -> None:
    answer = await litellm.acompletion(**request(stub, acl, **more))
    if more.get("stream"):
        async for _ in answer:
            pass


# -- answers ------------------------------------------------------------------------------------


@scenario
def sync(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl:
        at.ask(stub, acl, temperature=0, seed=7)
        FACTS["sync_body"] = stub.requests[0].body


@scenario
def durable_before_it_is_sent(at: Stage) -> None:
    def answer(_: dict[str, Any]) -> str:
        with LedgerView.open(at.run.path) as view:
            found = [r.type for r in view.events() if r.task == "durable_before_it_is_sent"]
        FACTS["held_when_sent"] = [kind for kind in found if kind.startswith("call")]
        return "ok"

    with StubEndpoint(answer=answer) as stub, at.bridge() as acl:
        at.ask(stub, acl)


@scenario
def stream_usage(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl:
        list(at.ask(stub, acl, stream=True, stream_options={"include_usage": True}))


@scenario
def stream_usage_asked_in_vain(at: Stage) -> None:
    with StubEndpoint("no_usage", "no_usage") as stub, at.bridge() as acl:
        asked = {"stream": True, "stream_options": {"include_usage": True}}
        list(at.ask(stub, acl, **asked))
        asyncio.run(ask_async(stub, acl, **asked))


@scenario
def stream_without_usage(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl:
        list(at.ask(stub, acl, stream=True))


@scenario
def stream_abandoned(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge(settle=0.3) as acl:
        next(iter(at.ask(stub, acl, stream=True)))


@scenario
def stream_abandoned_by_a_coroutine(at: Stage) -> None:
    async def abandon(stub: StubEndpoint, acl: dict[str, Any]) -> None:
        answer = await litellm.acompletion(**request(stub, acl, stream=True))
        await anext(answer.__aiter__())

    with StubEndpoint() as stub, at.bridge(settle=0.3) as acl:
        asyncio.run(abandon(stub, acl))


@scenario
def stream_dies(at: Stage) -> None:
    with StubEndpoint("die_midway") as stub, at.bridge() as acl:
        at.fail(stub, acl, stream=True)


@scenario
def stream_dies_in_a_coroutine(at: Stage) -> None:
    with StubEndpoint("die_midway") as stub, at.bridge() as acl, suppress(Exception):
        asyncio.run(ask_async(stub, acl, stream=True))


@scenario
def tools(at: Stage) -> None:
    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": "add", "arguments": '{"a": 40, "b": 2}'},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    function = {"name": "add", "parameters": {"type": "object"}}
    with StubEndpoint(answer=lambda _: message) as stub, at.bridge() as acl:
        at.ask(stub, acl, tools=[{"type": "function", "function": function}])


@scenario
def mocks(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl:
        at.ask(stub, acl, mock_response="mocked")
        asyncio.run(ask_async(stub, acl, mock_response="mocked"))
        list(at.ask(stub, acl, mock_response="mocked", stream=True))
        at.fail(stub, acl, mock_response="litellm.RateLimitError")
        at.fail(stub, acl, mock_response="litellm.ContextWindowExceededError")


@scenario
def mock_timeout(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl:
        at.fail(stub, acl, mock_timeout=True, timeout=0.01)


# -- failures -----------------------------------------------------------------------------------


@scenario
def failures(at: Stage) -> None:
    script = ("500", "401", "403", "404", "429", "quota", "context", "400", "not_json")
    with StubEndpoint(*script) as stub, at.bridge() as acl:
        for _ in script:
            at.fail(stub, acl)


@scenario
def failures_in_a_coroutine(at: Stage) -> None:
    async def fail(stub: StubEndpoint, acl: dict[str, Any]) -> None:
        with suppress(Exception):
            await ask_async(stub, acl)

    script = ("500", "401", "not_json")
    with StubEndpoint(*script) as stub, at.bridge() as acl:
        for _ in script:
            asyncio.run(fail(stub, acl))


@scenario
def timeout(at: Stage) -> None:
    with StubEndpoint("hang") as stub, at.bridge() as acl:
        at.fail(stub, acl, timeout=0.3)


@scenario
def refused_port(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl, refusing_port() as port:
        at.fail(stub, acl, api_base=f"http://127.0.0.1:{port}/v1")


@scenario
def cancelled(at: Stage) -> None:
    async def cancel(stub: StubEndpoint, acl: dict[str, Any]) -> None:
        asking = asyncio.ensure_future(ask_async(stub, acl))
        while not stub.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking

    with StubEndpoint("hang") as stub, at.bridge(settle=0.3) as acl:
        asyncio.run(cancel(stub, acl))


@scenario
def retries_of_the_client(at: Stage) -> None:
    with StubEndpoint("429") as stub, at.bridge() as acl:
        at.ask(stub, {"metadata": acl["metadata"]})
        FACTS["requests_of_one_call"] = len(stub.requests)


@scenario
def retries_of_litellm(at: Stage) -> None:
    with StubEndpoint("429") as stub, at.bridge() as acl:
        at.ask(stub, acl, num_retries=1)


@scenario
def router(at: Stage) -> None:
    """Deployment `one` fails and is tried again, then fails twice, and `two` answers for it."""

    def deployment(name: str, stub: StubEndpoint) -> dict[str, Any]:
        sent = {"model": f"openai/{name}", "api_base": stub.base_url, "api_key": KEY}
        return {"model_name": name, "litellm_params": sent}

    messages = [{"role": "user", "content": "hello there you"}]
    with StubEndpoint("500", "answer", "500") as one, StubEndpoint() as two, at.bridge() as acl:
        deployments = [deployment("one", one), deployment("two", two)]
        routing = litellm.Router(deployments, fallbacks=[{"one": ["two"]}], num_retries=1)
        routing.completion("one", messages, metadata=acl["metadata"])
        asyncio.run(routing.acompletion("one", messages, **acl))


# -- costs --------------------------------------------------------------------------------------


@scenario
def priced(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl:
        own = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
        at.ask(stub, acl, **own)
        prices = {"input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6}
        registered = {"openai/registered": {**prices, "litellm_provider": "openai"}}
        litellm.register_model(registered)
        at.ask(stub, acl, model="openai/registered")
        at.ask(stub, acl, model="openai/gpt-4o-2024-08-06")
        asyncio.run(ask_async(stub, acl, **own))
        asked = {"stream": True, "stream_options": {"include_usage": True}}
        asyncio.run(ask_async(stub, acl, **own, **asked))
        free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        at.ask(stub, acl, **free)


# -- loops and threads --------------------------------------------------------------------------


@scenario
def one_loop_after_another(at: Stage) -> None:
    async def four(stub: StubEndpoint, acl: dict[str, Any], number: int) -> None:
        params = {"seed": number}
        asked = [ask_async(stub, acl, **params, stream=bool(at % 2)) for at in range(4)]
        await asyncio.gather(*asked)

    with StubEndpoint() as stub, at.bridge() as acl:
        for number in range(5):
            asyncio.run(four(stub, acl, number))


def sixteen_attempts_in_one_loop(run: Recording) -> None:
    async def one(stub: StubEndpoint, task: str) -> None:
        with run.attempt(task) as attempt:
            async with LiteLLMCalls(attempt.calls) as acl:
                for stream in (False, True, False):
                    content = [{"role": "user", "content": task}]
                    await ask_async(stub, acl, messages=content, stream=stream)
            done(attempt)

    async def every() -> None:
        with StubEndpoint() as stub:
            await asyncio.gather(*(one(stub, task) for task in SIXTEEN))

    asyncio.run(every())


def threads_with_loops(run: Recording) -> None:
    def one(stub: StubEndpoint, task: str) -> None:
        content = [{"role": "user", "content": task}]
        with run.attempt(task) as attempt, LiteLLMCalls(attempt.calls) as acl:
            for stream in (False, True):
                asyncio.run(ask_async(stub, acl, messages=content, stream=stream))
            litellm.completion(**request(stub, acl, messages=content))
            done(attempt)

    with StubEndpoint() as stub:
        threads = [threading.Thread(target=one, args=(stub, task)) for task in THREADS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@scenario
def a_plain_with_in_a_coroutine(at: Stage) -> None:
    async def inside(stub: StubEndpoint) -> None:
        with at.bridge() as acl:
            await ask_async(stub, acl)

    with StubEndpoint() as stub:
        asyncio.run(inside(stub))


# -- attribution --------------------------------------------------------------------------------


@scenario
def stray(at: Stage) -> None:
    with StubEndpoint() as stub, at.bridge() as acl:
        at.ask(stub, {})
        asyncio.run(ask_async(stub, {"metadata": {"acl": "mine"}}))
        at.ask(stub, acl)


def late(run: Recording) -> None:
    """A stream that is read to its end after its attempt; then a call with old coordinates."""
    with StubEndpoint() as stub:
        with run.attempt("late") as attempt:
            with LiteLLMCalls(attempt.calls, settle_seconds=0.1) as acl:
                stream = litellm.completion(**request(stub, acl, stream=True))
                next(iter(stream))
            done(attempt)
        with run.attempt("after_late") as attempt:
            with LiteLLMCalls(attempt.calls) as other:
                list(stream)
                litellm.completion(**request(stub, acl))
                litellm.completion(**request(stub, other))
            done(attempt)


# -- what is recorded ---------------------------------------------------------------------------


@scenario
def secrets(at: Stage) -> None:
    more = {
        "extra_headers": {"X-Custom-Auth": f"Token {HEADER}"},
        "user": "somebody",
    }
    echo = {"role": "assistant", "content": f"you sent {KEY} and {HEADER}"}
    with StubEndpoint("401", answer=lambda _: echo) as stub, at.bridge() as acl:
        metadata = {**acl["metadata"], "api_token": METADATA}
        marked = {**acl, "metadata": metadata}
        at.fail(stub, marked, **more)
        at.ask(stub, marked, **more)
        list(at.ask(stub, marked, stream=True, **more))
        asyncio.run(ask_async(stub, marked, **more))
        said = stub.requests[1]
        FACTS["sent_secrets"] = [KEY in str(said.headers), HEADER in str(said.headers)]
        FACTS["metadata_was_sent"] = any("metadata" in one.body for one in stub.requests)


@scenario
def history(at: Stage) -> None:
    """A conversation that grows by two messages of 6 kB a call, answers given back as objects."""
    messages: list[Any] = [{"role": "system", "content": "s" * 20_000}]
    words = [f"{number} " + "lorem ipsum dolor " * 340 for number in range(HISTORY)]

    def reply(body: dict[str, Any]) -> str:
        return words[len(body["messages"]) // 2 - 1]

    with StubEndpoint(answer=reply) as stub, at.bridge() as acl:
        for word in words:
            messages.append({"role": "user", "content": f"question {word}"})
            answer = at.ask(stub, acl, messages=messages)
            messages.append(answer.choices[0].message)


@scenario
def odd_values(at: Stage) -> None:
    content = [{"role": "user", "content": "half a pair: \ud835", "blob": b"bytes"}]
    with StubEndpoint() as stub, at.bridge() as acl:
        at.ask(stub, acl, messages=content, mock_response="answer \ud835")


# -- other ways in ------------------------------------------------------------------------------

CHILD = """
import asyncio
from runtime.call_socket import CallClient
from runtime.litellm_bridge import LiteLLMCalls
import litellm
import os, sys

def request(**more):
    return dict(model="openai/stub-model", api_base=sys.argv[1], api_key="{key}",
                messages=[dict(role="user", content="from a child")], **more)

async def ask(**more):
    answer = await litellm.acompletion(**request(**more))
    if more.get("stream"):
        async for _ in answer:
            pass

with CallClient.from_environ() as calls:
    with LiteLLMCalls(calls) as acl:
        litellm.completion(**request(), **acl)
        asyncio.run(ask(**acl))
        asyncio.run(ask(stream=True, **acl))
        litellm.completion(**request())
    with LiteLLMCalls(calls, whole_process=True):
        litellm.completion(**request(max_retries=0))
    LiteLLMCalls(calls).__enter__()
    next(iter(litellm.completion(**request(stream=True), **acl)))
    os.abort()
"""


@contextmanager
def child(run: Recording) -> Iterator[None]:
    """An agent in a process of its own, while the other scenarios go on."""
    with StubEndpoint() as stub, CallServer() as server, run.attempt("child") as attempt:
        command = [sys.executable, "-c", CHILD.format(key=KEY), stub.base_url]
        with (
            server.attempt(attempt.calls) as variables,
            subprocess.Popen(
                command,
                env={**os.environ, **variables},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            yield
            _, FACTS["child_stderr"] = process.communicate(timeout=60)
            FACTS["child_status"] = process.returncode
        done(attempt)


def harness(results: Path) -> None:
    """A harness plug-in whose agent uses LiteLLM, two attempts of two tasks at once."""

    async def act(task: Any, context: Any) -> str:
        async with LiteLLMCalls(context.calls) as acl:
            content = [{"role": "user", "content": task.task_id}]
            await ask_async(stub, acl, messages=content)
            if context.attempt == 1:
                raise RuntimeError("the agent broke after its call")
        return "right"

    with StubEndpoint() as stub:
        found = fake.plugins(fake.Listed([fake.task("a"), fake.task("b")]), fake.Scripted(act))
        around = Surroundings(plugins=found, environ={}, patience=0.0)
        asked = run_request(fake.request(k=2), results_dir=results, surroundings=around)
        FACTS["harness"] = str(asyncio.run(asked).path)


def done(attempt: RecordedAttempt) -> None:
    attempt.result("answer")
    attempt.evaluation(correct=True)


class Listener(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("runtime."):
            LOGGED.append(record.getMessage())


def main(results: Path) -> None:
    logging.getLogger().addHandler(Listener())
    around = Surroundings(environ={}, patience=0.0)
    with record(results, benchmark="mine", model="m", surroundings=around) as run, child(run):
        for name, act in SCENARIOS.items():
            with run.attempt(name) as attempt:
                act(Stage(run, attempt, results))
                done(attempt)
        sixteen_attempts_in_one_loop(run)
        threads_with_loops(run)
        late(run)
    harness(results)
    FACTS["example"] = str(asyncio.run(litellm_agent.work(results, "")))
    errors = {}
    with LedgerView.open(run.path) as view:
        for recorded in view.events():
            match recorded.event:
                case ev.AttemptFinished(error=error) if error is not None:
                    errors[recorded.task] = error.message
    facts = {"path": str(run.path), "errors": errors, "logged": LOGGED}
    counts = {"failures": BOOK.failures, "unattributed": BOOK.unattributed}
    print(json.dumps({**FACTS, **facts, **counts}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
