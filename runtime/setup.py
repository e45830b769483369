"""Preflight: everything that a request names is there and fits together, before any output."""

import logging
import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.errors import AclError, UsageError
from runtime.containment import contained, named, words
from runtime.contracts import (
    BaseAnalyzer,
    BaseEnvironment,
    BaseHarness,
    BaseRecipe,
    Benchmark,
    HarnessFreeBenchmark,
)
from runtime.models import EnvName, ModelSpec, RunRequest
from runtime.plugins import Plugins
from runtime.recipes import find_recipes
from runtime.retry import RetryPolicy, Uniform

NO_HARNESS = "none"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a request comes to: its plug-ins, ready to be used."""

    request: RunRequest
    benchmark: Benchmark
    harness: BaseHarness | None
    config: Any
    environment: BaseEnvironment
    recipes: tuple[BaseRecipe, ...]
    analyzers: tuple[BaseAnalyzer, ...]
    retry: RetryPolicy
    api_key: str | None

    @property
    def parallel(self) -> bool:
        """True if several attempts of one task may run at the same time."""
        safe = self.benchmark.parallel_attempts_safe and (
            self.harness is None or self.harness.parallel_attempts_safe
        )
        return safe and self.request.execution.strategy == "all"


def prepare(
    request: RunRequest,
    plugins: Plugins,
    environ: Mapping[str, str] = os.environ,
    uniform: Uniform = random.uniform,
) -> Setup:
    """Resolve what `request` names; raise UsageError, with the way out, for what does not fit."""
    benchmark = plugins.benchmark(request.benchmark.id)
    harness = _harness(request, benchmark, plugins)
    config = None if harness is None else _config(harness, request.harness.params)
    api_key = _api_key(request.model, environ)
    if harness is not None and harness.needs_model and not request.model.base_url:
        raise UsageError(f"harness {harness.id} needs a model", hint="give --model and --base-url")
    return Setup(
        request=request,
        benchmark=benchmark,
        harness=harness,
        config=config,
        environment=plugins.environment(request.environment.id),
        recipes=find_recipes(
            request.execution.enabled_recipes, request.metadata.recipe_dirs, plugins
        ),
        analyzers=_analyzers(request, benchmark, plugins),
        retry=RetryPolicy(request.execution, uniform),
        api_key=api_key,
    )


def _harness(request: RunRequest, benchmark: Benchmark, plugins: Plugins) -> BaseHarness | None:
    wanted = request.harness.id
    if isinstance(benchmark, HarnessFreeBenchmark):
        if wanted != NO_HARNESS:
            raise UsageError(
                f"benchmark {benchmark.id} runs its tasks itself",
                hint=f"leave the harness out, or name it {NO_HARNESS!r}",
            )
        return None
    if wanted == NO_HARNESS:
        known = ", ".join(plugins.ids("acl.harnesses"))
        raise UsageError(f"benchmark {benchmark.id} needs a harness", hint=f"known: {known}")
    harness = plugins.harness(wanted)
    try:
        with contained():
            supported = harness.supports(benchmark)
    except Exception as error:  # a plug-in may raise anything
        why = f"harness {harness.id} failed when it was asked what it supports: {named(error)}"
        raise UsageError(why) from error
    if not supported:
        raise UsageError(f"harness {harness.id} does not support benchmark {benchmark.id}")
    return harness


def _config(harness: BaseHarness, params: Mapping[str, Any]) -> Any:
    try:
        with contained():
            return harness.build_config(params)
    except AclError:
        raise
    except Exception as error:  # the parameters meet a plug-in here
        raise UsageError(f"the parameters of harness {harness.id}: {words(error)}") from error


def _api_key(model: ModelSpec, environ: Mapping[str, str]) -> str | None:
    if not isinstance(model.api_key, EnvName):
        return model.api_key
    key = environ.get(model.api_key.env)
    if not key:
        raise UsageError(f"the environment variable {model.api_key.env} holds no API key")
    return key


def _analyzers(
    request: RunRequest, benchmark: Benchmark, plugins: Plugins
) -> tuple[BaseAnalyzer, ...]:
    """Of each family the eligible analyzer of the highest priority, by family."""
    execution = request.execution
    if not execution.enable_analysis:
        return ()
    found = plugins.analyzers()
    known = {analyzer.id for analyzer in found}
    unknown = sorted(set(execution.analyzers or ()) - known)
    if unknown:
        hint = f"known: {', '.join(sorted(known)) or 'none is installed'}"
        raise UsageError(f"there is no analyzer {unknown[0]!r}", hint=hint)
    chosen: dict[str, BaseAnalyzer] = {}
    for analyzer in _eligible(found, request, benchmark):
        best = chosen.get(analyzer.base_analyzer)
        if best is None or analyzer.priority > best.priority:
            chosen[analyzer.base_analyzer] = analyzer
    return tuple(chosen[family] for family in sorted(chosen))


def _eligible(
    found: Iterable[BaseAnalyzer], request: RunRequest, benchmark: Benchmark
) -> Iterable[BaseAnalyzer]:
    wanted, excluded = request.execution.analyzers, request.execution.exclude_analyzers
    for analyzer in found:
        if (wanted is not None and analyzer.id not in wanted) or analyzer.id in excluded:
            continue
        try:
            with contained():
                eligible = analyzer.matches_dataset(benchmark) and analyzer.check_requirements()
        except Exception as error:  # noqa: BLE001 - an analyzer must not fail the run
            _log.warning("analyzer %s is left out: %s", analyzer.id, named(error))
            continue
        if eligible:
            yield analyzer
