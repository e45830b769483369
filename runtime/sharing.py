"""What the requests of one orchestration share, and when each of them may go on."""

import asyncio
from collections.abc import Sequence

from runtime.dispatch import Dispatcher
from runtime.interrupt import StopSignal
from runtime.limits import Limits
from runtime.models import ExecutionSpec
from runtime.surroundings import Surroundings


class Share:
    """One request's share: `limits` and `dispatcher` are everybody's, `earlier` come before it.

    `prepared` is set when its tasks are in line, `ended` when nothing of it goes on any more.
    """

    def __init__(
        self, limits: Limits, dispatcher: Dispatcher, earlier: Sequence["Share"] = ()
    ) -> None:
        self.limits = limits
        self.dispatcher = dispatcher
        self.prepared = asyncio.Event()
        self.ended = asyncio.Event()
        self._earlier = tuple(earlier)

    async def turn(self) -> None:
        """Return when all earlier requests have ended: requests are finalized in order."""
        for share in self._earlier:
            await share.ended.wait()


def limits_of(
    executions: Sequence[ExecutionSpec], places: int, surroundings: Surroundings
) -> Limits:
    """The limits of requests that run together: `places` slots, and the strictest of the rest."""
    kinds: dict[str, int] = {}
    for execution in executions:
        for kind, most in execution.provider_limits.items():
            kinds[kind] = min(most, kinds.get(kind, most))
    rates = [execution.env_open_qps for execution in executions if execution.env_open_qps]
    return Limits(
        places,
        kinds,
        min(rates, default=0.0),
        monotonic=surroundings.monotonic,
        sleep=surroundings.sleep,
    )


def alone(execution: ExecutionSpec, surroundings: Surroundings, stop: StopSignal) -> Share:
    """The share of a request that runs by itself."""
    places = execution.task_concurrency
    return Share(limits_of([execution], places, surroundings), Dispatcher(places, stop))
