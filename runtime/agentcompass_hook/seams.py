"""Where AgentCompass is followed: the methods by which it writes down what a run does.

Recipes see plans only, so the methods are wrapped: the original does its work first, and what it
wrote is then told to the desk of the run. Its arguments, its result and its errors are passed on as
they are. Only runs that name our recipe directory are recorded.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Final

from runtime.agentcompass_hook.runs import LiveRuns, Waiting

MADE_FOR: Final = "1.0.1"
_STORE: Final = "agentcompass.runtime.results.store:RunStore"
_ATTEMPTS: Final = "agentcompass.runtime.attempts.repository:RunAttemptCheckpointRepository"
_RUNTIME: Final = "agentcompass.runtime.runner:UnifiedEvaluationRuntime"
# Which class has which method, with which parameters, and whether it is a coroutine function.
SEAMS: Final[Mapping[tuple[str, str], tuple[tuple[str, ...], bool]]] = {
    (_STORE, "write_run_info"): (("output_dir", "request_payload", "params"), False),
    (_RUNTIME, "prepare"): ((), True),
    (_STORE, "record_resolved_execution_plan"): (
        ("output_dir", "task_id", "attempt", "plan_payload"),
        True,
    ),
    (_STORE, "save_evaluation_checkpoint"): (("checkpoint", "params"), True),
    (_STORE, "save_retry_detail"): (("payload", "params"), True),
    (_ATTEMPTS, "save"): (("checkpoint",), True),
    (_STORE, "save_partial_result"): (("result", "params"), True),
    (_STORE, "save_results"): (("results", "params"), True),
    (_STORE, "save_analysis_summary"): (("params", "output_dir"), True),
    (_STORE, "write_terminal_status"): (("output_dir", "status", "error"), False),
}
_MARK: Final = "_acl_follows"

_log = logging.getLogger("agentcompass.acl")


def attach(recipe_dir: Path) -> bool:
    """Follow AgentCompass in this process from now on; False, and a line in the log, if it cannot.

    May be called again. Raises ImportError where there is no AgentCompass.
    """
    owners = {name: _class(name) for name, _ in SEAMS}
    lacking = _lacking(owners)
    version = metadata.version("agentcompass")
    if lacking:
        _log.error(
            "acl: no ledger is written: AgentCompass %s has no %s as %s has",
            version,
            ", ".join(lacking),
            MADE_FOR,
        )
        return False
    if version != MADE_FOR:
        _log.warning("acl: made for AgentCompass %s, this is %s", MADE_FOR, version)
    runs = LiveRuns(recipe_dir, version, _log)
    for owner, name in SEAMS:
        _follow(owners[owner], name, runs)
    return True


def _class(name: str) -> type:
    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute, None)
    return found if isinstance(found, type) else type(None)


def _lacking(owners: Mapping[str, type]) -> list[str]:
    """The methods that are not as they must be."""
    found = []
    for (owner, name), (parameters, is_coroutine) in SEAMS.items():
        method = getattr(owners[owner], name, None)
        known = inspect.signature(method).parameters if callable(method) else {}
        fits = known and set(parameters) <= set(known)
        if not fits or inspect.iscoroutinefunction(method) is not is_coroutine:
            found.append(f"{owner.partition(':')[2]}.{name}")
    return found


def _follow(owner: type, name: str, runs: LiveRuns) -> None:
    original: Callable[..., Any] = getattr(owner, name)
    if not hasattr(original, _MARK):
        seam = _Seam(original, name, runs)
        following = (
            seam.wrapped_async() if inspect.iscoroutinefunction(original) else seam.wrapped()
        )
        setattr(following, _MARK, True)
        setattr(owner, name, following)


@dataclass(frozen=True, slots=True)
class _Seam:
    """One method that is followed."""

    original: Callable[..., Any]
    name: str
    runs: LiveRuns

    def wrapped(self) -> Callable[..., Any]:
        @functools.wraps(self.original)
        def following(this: Any, *args: Any, **named: Any) -> Any:
            given = self.original(this, *args, **named)
            waiting = self._told(this, args, named, given)
            if waiting is not None:
                waiting.desk.wait(waiting.done, waiting.patience)
            return given

        return following

    def wrapped_async(self) -> Callable[..., Any]:
        @functools.wraps(self.original)
        async def following(this: Any, *args: Any, **named: Any) -> Any:
            given = await self.original(this, *args, **named)
            waiting = self._told(this, args, named, given)
            if waiting is not None:
                await waiting.desk.wait_async(waiting.done)
            return given

        return following

    def _told(
        self, this: Any, args: tuple[Any, ...], named: dict[str, Any], given: Any
    ) -> Waiting | None:
        try:
            bound = inspect.signature(self.original).bind(this, *args, **named)
            bound.apply_defaults()
            tell = getattr(self.runs, f"after_{self.name}")
            waiting: Waiting | None = tell(this, bound.arguments, given)
        except Exception as error:  # noqa: BLE001 - the run must not feel it
            self.runs.fail(f"{self.name}: {type(error).__name__}: {error}")
            return None
        return waiting
