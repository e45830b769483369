"""The inside of the sandbox: run candidate functions on given arguments, report what they gave.

Started by `runtime.sandbox` as a script in a bare interpreter, so it imports the standard library
only.  It is told inputs and never expected outputs: nothing that a candidate does to this process
can make a wrong answer right, as the comparing is done outside, on data.

Job: one JSON object on stdin, `{entry, sources, calls, cpu_seconds, limits}`.
Report: JSON lines on the descriptor named by the first argument, `{"unapplied": [names]}` once and
`{"source": i, "outcomes": [outcome, ...]}` for each candidate that was not cut off.  An outcome is
`{"value": v}`, `{"raised": name}` or `{"stopped": "cpu"}`; values as `encode` writes them.
"""

import json
import os
import resource
import signal
import sys
from types import FrameType

Outcome = dict[str, object]

_MAX_DEPTH = 50
_WRITING = os.O_WRONLY | os.O_RDWR
_MAX_BITS = 10_000
_DENIED = ("os.", "socket.", "subprocess.", "ctypes.", "shutil.", "pty.", "signal.", "gc.")
_LISTED = ("os.listdir", "os.scandir")


class CpuSpent(BaseException):
    """The candidate used up its processor time; not an Exception, so that `except` lets it pass."""


class NotData(ValueError):
    """A candidate gave something other than plain data."""


def encode(value: object, depth: int = 0) -> object:
    """Write plain data as JSON data, keeping the Python type; NotData for anything else.

    None, booleans, whole numbers and text stand for themselves; the rest is an object with one key:
    float (as `repr`), list, tuple, set (members sorted by their JSON), dict (list of pairs).
    """
    if depth > _MAX_DEPTH:
        raise NotData("nested too deep")
    # Exact types: a subclass could bring its own idea of equality.
    kind = type(value)
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise NotData("number too large")
    if value is None or kind in (bool, int, str):
        return value
    if isinstance(value, float) and kind is float:
        return {"float": repr(value)}
    if isinstance(value, list | tuple) and kind in (list, tuple):
        return {kind.__name__: [encode(item, depth + 1) for item in value]}
    if isinstance(value, set) and kind is set:
        return {"set": sorted((encode(item, depth + 1) for item in value), key=json.dumps)}
    if isinstance(value, dict) and kind is dict:
        pairs = [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in value.items()]
        return {"dict": pairs}
    raise NotData(f"{kind.__name__} is not plain data")


def decode(data: object) -> object:
    """Read what `encode` wrote; ValueError when it did not write this."""
    if data is None or isinstance(data, bool | int | str):
        return data
    if isinstance(data, dict) and len(data) == 1:
        ((kind, content),) = data.items()
        try:
            return _decode_kind(kind, content)
        except (TypeError, ValueError):
            pass
    raise ValueError("not an encoded value")


def _decode_kind(kind: str, content: object) -> object:
    if kind == "float" and isinstance(content, str):
        return float(content)
    if not isinstance(content, list):
        raise TypeError(kind)
    match kind:
        case "list":
            return [decode(item) for item in content]
        case "tuple":
            return tuple(decode(item) for item in content)
        case "set":
            return {decode(item) for item in content}
        case "dict":
            pairs = [decode({"tuple": pair}) for pair in content]
            return dict(pairs)  # type: ignore[arg-type]  # TypeError when not pairs
        case _:
            raise ValueError(kind)


def _apply_limits(limits: dict[str, int]) -> list[str]:
    """Set each resource limit; return the names of those that this platform refuses."""
    unapplied = []
    for name, amount in limits.items():
        try:
            number = getattr(resource, name)
            # One more second before the kernel kills: SIGXCPU comes first, and says why.
            hard = amount + 1 if name == "RLIMIT_CPU" else amount
            resource.setrlimit(number, (amount, hard))
        except (AttributeError, ValueError, OSError):
            unapplied.append(name)
    return unapplied


def _deny_system_access() -> None:
    """Refuse files, processes and sockets by audit hook; imports of the standard library go on.

    A second fence inside the kernel's: it turns an accident into a clear PermissionError.
    """
    library = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 (pathlib costs a third of the start)

    def in_library(path: object) -> bool:
        return (
            isinstance(path, str)
            and path.startswith(library)
            and ".." not in path
            and "-packages" not in path
        )

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event == "open":
            writes = isinstance(args[2], int) and args[2] & _WRITING
            if writes or not in_library(args[0]):
                raise PermissionError(f"no access to {args[0]!r} in the sandbox")
        elif event in _LISTED and in_library(args[0]):
            return
        elif event.startswith(_DENIED):
            raise PermissionError(f"{event} is not allowed in the sandbox")

    sys.addaudithook(hook)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise CpuSpent


def _call(function: object, args: list[object]) -> Outcome:
    try:
        value = function(*[decode(arg) for arg in args])  # type: ignore[operator]
        return {"value": encode(value)}
    except CpuSpent:
        raise
    except NotData:
        return {"raised": "NotData"}
    except BaseException as error:  # noqa: BLE001 (border: a candidate may raise anything)
        return {"raised": type(error).__name__}


def _run(source: str, entry: str, calls: list[list[object]], cpu: float) -> list[Outcome]:
    """Load one candidate, make each call with fresh arguments, all within one limit."""
    outcomes: list[Outcome] = []
    namespace: dict[str, object] = {"__name__": "candidate"}
    try:
        # Repeats, in case a candidate swallows the first.
        signal.setitimer(signal.ITIMER_PROF, cpu, cpu)
        try:
            exec(compile(source, "candidate", "exec"), namespace)  # noqa: S102 (this is its purpose)
            function = namespace[entry]
        except CpuSpent:
            raise
        except BaseException as error:  # noqa: BLE001 (border: a candidate may raise anything)
            return [{"raised": type(error).__name__} for _ in calls]
        for args in calls:
            outcomes.append(_call(function, args))  # noqa: PERF401 (kept when the time is up)
    except CpuSpent:
        outcomes += [{"stopped": "cpu"} for _ in calls[len(outcomes) :]]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return outcomes


def main() -> None:
    """Read the job, fence this process in, run the candidates in order."""
    report = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    job = json.load(sys.stdin)
    unapplied = _apply_limits(job["limits"])
    signal.signal(signal.SIGPROF, _stop)
    _deny_system_access()
    report.write(json.dumps({"unapplied": unapplied}) + "\n")
    report.flush()
    for index, source in enumerate(job["sources"]):
        outcomes = _run(source, job["entry"], job["calls"], job["cpu_seconds"])
        report.write(json.dumps({"source": index, "outcomes": outcomes}) + "\n")
        report.flush()


if __name__ == "__main__":
    main()
