"""The package that AgentCompass loads by `--recipe-dir`: one recipe, which changes no plan.

Loading it is what counts: then the writing methods of AgentCompass's store are followed. Whatever
goes wrong with that is told in the log, once, and the run goes on without a ledger.
"""

import logging
from pathlib import Path
from typing import Any

from agentcompass.runtime.base import BaseRecipe

_log = logging.getLogger("agentcompass.acl")


class LedgerRecipe(BaseRecipe):  # type: ignore[misc]  # checked where AgentCompass is not installed
    """Matches nothing, so that it is named in no plan."""

    id = "acl-ledger"

    def matches(self, req: Any, task: Any, plan: Any) -> bool:
        """False: plans are only read, where they are written down."""
        del req, task, plan
        return False

    def apply(self, plan: Any, req: Any, task: Any) -> Any:
        """The plan as it is."""
        del req, task
        return plan


def _attach() -> None:
    try:
        from runtime.agentcompass_hook.seams import attach  # noqa: PLC0415 - may fail, and is told

        attach(Path(__file__).resolve().parent)
    except Exception as error:  # noqa: BLE001 - whatever it is, the evaluation goes on
        _log.error("acl: no ledger is written: %s: %s", type(error).__name__, error)


_attach()

RECIPE_CLASSES = (LedgerRecipe,)
