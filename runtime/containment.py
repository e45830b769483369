"""What a plug-in raises is an error of what it was asked for, and never the end of the program.

SystemExit, KeyboardInterrupt, GeneratorExit and whatever else is no Exception pass every
`except Exception`, and asyncio ends its loop with some of them. Here they become a StageError. A
real Ctrl-C does not come this way: it is a signal, for which `runtime.interrupt` listens.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from runtime.contracts import StageError

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def contained() -> Iterator[None]:
    """Let plug-ins that are called within raise nothing but subclasses of Exception.

    For calls that are not awaited: a CancelledError is one of theirs here, too.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        raise escaped(error) from error


async def awaited(method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `method` and await what it gives; raises nothing but Exceptions and our cancellation.

    Called in here, a method that is no coroutine function fails where an awaited one would.
    """
    loop = asyncio.get_running_loop()
    own = asyncio.current_task(loop)
    try:
        return await method(*args, **kwargs)
    except (Exception, asyncio.CancelledError):
        raise
    except GeneratorExit as error:
        if asyncio.current_task(loop) is not own:
            raise  # nobody raised it: this coroutine is being closed
        raise escaped(error) from error
    except BaseException as error:
        raise escaped(error) from error


def escaped(error: BaseException) -> StageError:
    """The error to raise in the place of `error`, which is no Exception."""
    return StageError(type(error).__name__, f"a plug-in raised {named(error)}")


def words(error: BaseException) -> str:
    """What `error` says of itself."""
    try:
        return str.__str__(str(error))
    except BaseException:  # noqa: BLE001 - an exception of a plug-in may not even be printable
        return f"{type(error).__name__} (it cannot be printed)"


def named(error: BaseException) -> str:
    """`error` in one line: its class, and what it says."""
    said = words(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
