from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from ledger.errors import UsageError
from runtime.contracts import AttemptContext, BaseHarness, Benchmark, HarnessFreeBenchmark, Task
from runtime.results import RunResult
from runtime.setup import prepare
from tests.fake_plugins import Listed, Scripted, plugins, request

HARNESS = Scripted(lambda t, c: None)


class Alone(HarnessFreeBenchmark, Listed):
    async def run_task(self, task: Task, context: AttemptContext) -> RunResult:
        return RunResult(task.task_id)


class Picky(Scripted):
    def supports(self, benchmark: Benchmark) -> bool:
        return False


class Modelled(Scripted):
    needs_model: ClassVar[bool] = True


class OneAtATime(Scripted):
    parallel_attempts_safe: ClassVar[bool] = False


class Strict(Scripted):
    def build_config(self, params: Mapping[str, Any]) -> Any:
        return {"budget": int(params["budget"])}


def test_what_a_request_names_is_found() -> None:
    setup = prepare(request(), plugins(Listed(), HARNESS), {})
    assert setup.benchmark.id == "listed"
    assert setup.harness is HARNESS
    assert setup.environment.id == "rooms"
    assert setup.api_key is None


@pytest.mark.parametrize("part", ["benchmark", "harness", "environment"])
def test_an_unknown_name_is_refused(part: str) -> None:
    with pytest.raises(UsageError, match=f"there is no {part} 'nothing'"):
        prepare(request(**{part: {"id": "nothing"}}), plugins(Listed(), HARNESS), {})


def test_a_benchmark_that_runs_itself_takes_no_harness() -> None:
    with pytest.raises(UsageError, match="runs its tasks itself"):
        prepare(request(), plugins(Alone(), HARNESS), {})
    assert prepare(request(harness={"id": "none"}), plugins(Alone()), {}).harness is None


def test_any_other_benchmark_needs_one() -> None:
    with pytest.raises(UsageError, match="needs a harness; known: scripted"):
        prepare(request(harness={"id": "none"}), plugins(Listed(), HARNESS), {})


def test_a_harness_that_does_not_support_the_benchmark_is_refused() -> None:
    with pytest.raises(UsageError, match="does not support"):
        prepare(request(), plugins(Listed(), Picky(HARNESS.act)), {})


def test_a_parameter_the_harness_does_not_know_is_refused_by_name() -> None:
    asked = request(harness={"id": "scripted", "params": {"budgte": 1}})
    with pytest.raises(UsageError, match="takes no parameter 'budgte'"):
        prepare(asked, plugins(Listed(), HARNESS), {})


def test_whatever_a_plugin_raises_about_its_parameters_is_a_usage_error() -> None:
    asked = request(harness={"id": "scripted", "params": {"budget": "many"}})
    with pytest.raises(UsageError, match="parameters of harness scripted"):
        prepare(asked, plugins(Listed(), Strict(HARNESS.act)), {})


def test_a_harness_that_needs_a_model_must_be_told_where_it_is() -> None:
    with pytest.raises(UsageError, match="needs a model"):
        prepare(request(), plugins(Listed(), Modelled(HARNESS.act)), {})


def test_an_api_key_is_read_from_the_variable_that_the_request_names() -> None:
    asked = request(model={"id": "m", "api_key": {"env": "KEY"}})
    found = plugins(Listed(), HARNESS)
    assert prepare(asked, found, {"KEY": "k"}).api_key == "k"
    with pytest.raises(UsageError, match="KEY holds no API key"):
        prepare(asked, found, {})


@pytest.mark.parametrize(
    ("harness", "strategy", "parallel"),
    [(Scripted, "all", True), (Scripted, "stop_on_correct", False), (OneAtATime, "all", False)],
)
def test_attempts_run_side_by_side_only_where_all_agree(
    harness: type[BaseHarness], strategy: str, parallel: bool
) -> None:
    setup = prepare(request(strategy=strategy), plugins(Listed(), harness(HARNESS.act)), {})
    assert setup.parallel is parallel


def test_an_unknown_analyzer_is_refused() -> None:
    with pytest.raises(UsageError, match="no analyzer 'x'"):
        prepare(request(analyzers=["x"]), plugins(Listed(), HARNESS), {})


class Leaving(Scripted):
    def supports(self, benchmark: Benchmark) -> bool:
        raise SystemExit(3)


class LeavingConfig(Scripted):
    def build_config(self, params: Mapping[str, Any]) -> Any:
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", [Leaving, LeavingConfig])
def test_a_harness_that_asks_to_exit_is_refused(kind: type[Scripted]) -> None:
    with pytest.raises(UsageError, match="harness scripted"):
        prepare(request(), plugins(Listed(), kind(HARNESS.act)), {})
