"""The harness `openai`: solves both shipped benchmarks with what a stub endpoint answers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import UsageError
from runtime.benchmarks.arith.benchmark import ArithBenchmark
from runtime.benchmarks.repair.benchmark import RepairBenchmark
from runtime.contracts import AttemptContext, Benchmark, ExecutionPlan, Session, StageError, Task
from runtime.environments.local import LocalSession
from runtime.harnesses.openai import OpenAIHarness
from runtime.llm import CallEnd, CallStart
from runtime.models import BenchmarkSpec, EnvironmentSpec, ModelSpec, RunRequest
from runtime.results import Evaluation, RunResult
from tests.stub_endpoint import Answer, StubEndpoint

HARNESS = OpenAIHarness()
ARITH, REPAIR = ArithBenchmark(), RepairBenchmark()


class Calls:
    def __init__(self) -> None:
        self.all: list[CallStart | CallEnd] = []

    async def started(self, call: CallStart) -> None:
        self.all.append(call)

    async def finished(self, call: CallEnd) -> None:
        self.all.append(call)


async def no_tool(*_: Any, **__: Any) -> None:
    """This harness uses no tools."""


def context(
    stub: StubEndpoint, benchmark: Benchmark, session: Session | None = None, **model: Any
) -> AttemptContext:
    spec = ModelSpec(id="stub-model", base_url=stub.base_url, **model)
    return AttemptContext(
        request=RunRequest(benchmark=BenchmarkSpec(id=benchmark.id), model=spec),
        attempt=1,
        retry=0,
        plan=ExecutionPlan(EnvironmentSpec()),
        session=session,
        calls=Calls(),
        tool=no_tool,
        api_key="a-key-of-no-known-shape",
    )


def work(task: Task, at: AttemptContext, **params: Any) -> RunResult:
    async def attempt() -> RunResult:
        config = HARNESS.build_config(params)
        session = await HARNESS.start_session(task, config, at)
        try:
            return await HARNESS.run_task(task, config, session, at)
        finally:
            await HARNESS.close_session(session)

    return asyncio.run(attempt())


def judge(benchmark: Benchmark, task: Task, result: RunResult, at: AttemptContext) -> Evaluation:
    return asyncio.run(benchmark.evaluate(task, result, at))


def knowing(benchmark: Benchmark, form: str) -> Answer:
    """An endpoint that knows the truth of the task whose prompt it is given."""
    truths = {task.input["prompt"]: task.ground_truth for task in benchmark.load_tasks({})}
    return lambda body: form.format(truths[body["messages"][-1]["content"]])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("benchmark", "form"),
    [
        (ARITH, "One step after the other, so the result is {}"),
        (REPAIR, "The bound was wrong.\n\n```python\n{}```\nNow it is right."),
    ],
)
def test_a_right_answer_is_judged_right(benchmark: Benchmark, form: str, stream: bool) -> None:
    with StubEndpoint(answer=knowing(benchmark, form)) as stub:
        at = context(stub, benchmark)
        for task in benchmark.load_tasks({"tasks": 3}):
            result = work(task, at, stream=stream)
            assert judge(benchmark, task, result, at).correct
            assert (result.status, result.error) == ("completed", None)
    assert [request.body.get("stream") for request in stub.requests] == [stream] * 3


@pytest.mark.parametrize("benchmark", [ARITH, REPAIR])
@pytest.mark.parametrize("text", ["I do not know.", "", "```python\nprint(1)\n```"])
def test_a_wrong_or_empty_answer_is_judged_wrong_and_is_no_error(
    benchmark: Benchmark, text: str
) -> None:
    task = benchmark.load_tasks({})[0]
    with StubEndpoint(answer=lambda body: text) as stub:
        at = context(stub, benchmark)
        verdict = judge(benchmark, task, work(task, at), at)
    assert (verdict.correct, verdict.error) == (False, None)


def test_the_code_block_is_the_answer_and_stands_in_the_environment(tmp_path: Path) -> None:
    task = REPAIR.load_tasks({})[0]
    code = f"def {task.input['entry']}(x):\n    return x\n"
    with StubEndpoint(answer=lambda body: f"Try this:\n```python\n{code}```\n") as stub:
        result = work(task, context(stub, REPAIR, LocalSession(tmp_path, {})))
    assert result.final_answer == code
    assert (tmp_path / f"{task.input['entry']}.py").read_text() == code


def test_the_conversation_the_usage_and_the_call_are_kept() -> None:
    task = ARITH.load_tasks({})[0]
    with StubEndpoint(answer=lambda body: "it is 42") as stub:
        at = context(stub, ARITH, params={"temperature": 0})
        result = work(task, at, system_prompt="Compute.")
    system = {"role": "system", "content": "Compute."}
    user = {"role": "user", "content": task.input["prompt"]}
    assert stub.requests[0].body["messages"] == [system, user]
    assert stub.requests[0].body["temperature"] == 0
    assert result.trajectory == [system, user, {"role": "assistant", "content": "it is 42"}]
    assert result.metrics["calls"] == 1
    assert result.metrics["output_tokens"] == 3
    assert result.telemetry["finish_reason"] == "stop"
    assert isinstance(at.calls, Calls)
    assert [type(call) for call in at.calls.all] == [CallStart, CallEnd]


def test_the_model_sees_nothing_that_only_the_verifier_may_see() -> None:
    for benchmark in (ARITH, REPAIR):
        task = benchmark.load_tasks({})[0]
        with StubEndpoint() as stub:
            work(task, context(stub, benchmark))
        sent = json.dumps(stub.requests[0].body)
        assert json.dumps(task.ground_truth)[1:-1] not in sent
        assert "hidden" not in sent


def test_usage_that_the_provider_does_not_give_is_left_out() -> None:
    task = ARITH.load_tasks({})[0]
    with StubEndpoint("no_usage") as stub:
        assert work(task, context(stub, ARITH)).metrics == {"calls": 1}


def test_the_parameters_of_the_model_decide_on_streaming_unless_the_harness_does() -> None:
    task = ARITH.load_tasks({})[0]
    with StubEndpoint() as stub:
        work(task, context(stub, ARITH, params={"stream": True}))
        work(task, context(stub, ARITH, params={"stream": True}), stream=False)
    assert [request.body["stream"] for request in stub.requests] == [True, False]


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        ("500", "provider_server_error"),
        ("429", "provider_rate_limited"),
        ("context", "provider_context_window"),
        ("401", "provider_authentication"),
    ],
)
def test_a_failed_call_is_an_error_of_the_try_with_its_class(behaviour: str, code: str) -> None:
    task = ARITH.load_tasks({})[0]
    with StubEndpoint(behaviour) as stub, pytest.raises(StageError) as caught:
        work(task, context(stub, ARITH))
    assert caught.value.code == code
    assert "a-key-of-no-known-shape" not in str(caught.value)


def test_a_task_without_a_prompt_is_an_error_with_its_name() -> None:
    with StubEndpoint() as stub, pytest.raises(StageError, match="'bare'"):
        work(Task("bare"), context(stub, ARITH))
    assert stub.requests == []


@pytest.mark.parametrize(
    ("params", "name"),
    [({"temperature": 0}, "temperature"), ({"timeout_seconds": 0}, "timeout_seconds")],
)
def test_a_wrong_parameter_is_refused_by_name(params: dict[str, Any], name: str) -> None:
    with pytest.raises(UsageError, match=name):
        HARNESS.build_config(params)


def test_it_supports_both_benchmarks_and_needs_a_model() -> None:
    assert HARNESS.needs_model
    assert HARNESS.supports(ARITH)
    assert HARNESS.supports(REPAIR)
    asyncio.run(HARNESS.close_session(None))
