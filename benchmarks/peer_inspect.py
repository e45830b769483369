"""Child of `benchmarks.record` in an environment of Inspect: its `.eval` recorder, same content.

    python benchmarks/peer_inspect.py PAYLOADS COUNT DIRECTORY default|each

16 workers log finished samples; the recorder is flushed, as its task logger does it, whenever its
default number of samples waits, or with `each` after every sample. Neither syncs before the end.
The messages are made into its own objects outside the measurement, its database of events for
live views and the reading back at the end are left out. Prints one JSON document.
"""

import asyncio
import gc
import json
import sys
import time
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any, Final

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalPlan,
    EvalRetryError,
    EvalSample,
    EvalSpec,
    EvalStats,
)
from inspect_ai.log._recorders.eval import EvalRecorder
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
)
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall

WORKERS: Final = 16
_HIGH_THROUGHPUT: Final = 1_000
_TIME: Final = "2026-01-01T00:00:00+00:00"
Content = dict[str, Any]


def message(told: Content) -> Any:
    """A message of Inspect's own kind."""
    text = told.get("content") or ""
    match told["role"]:
        case "system":
            return ChatMessageSystem(content=text)
        case "user":
            return ChatMessageUser(content=text)
        case "tool":
            name, call = told.get("name"), told.get("tool_call_id")
            return ChatMessageTool(content=text, function=name, tool_call_id=call)
    calls = [
        ToolCall(
            id=call["id"],
            function=call["function"]["name"],
            arguments={"given": call["function"]["arguments"]},
        )
        for call in told.get("tool_calls") or ()
    ]
    return ChatMessageAssistant(content=text, tool_calls=calls or None, model="model-1")


def sample(content: Content, messages: list[Any]) -> EvalSample:
    """What Inspect keeps of one task."""
    errors = [
        EvalRetryError(message=error, traceback=error, traceback_ansi=error)
        for error in content["errors"]
    ]
    return EvalSample(
        id=content["task"],
        epoch=1,
        input=content["plan"]["instruction"],
        target="",
        messages=messages,
        scores={"airline": Score(value=content["score"], answer=content["answer"])},
        metadata={"plan": content["plan"], "telemetry": content["telemetry"]},
        started_at=_TIME,
        completed_at=_TIME,
        error_retries=errors or None,
    )


async def run(recorder: EvalRecorder, spec: EvalSpec, buffer: int, given: list[Any]) -> None:
    """One log, from its start to its end."""
    waiting = deque(given)
    pending = 0

    async def work() -> None:
        nonlocal pending
        while waiting:
            content, messages = waiting.popleft()
            await recorder.log_sample(spec, sample(content, messages))
            pending += 1
            if pending >= buffer:
                pending = 0
                await recorder.flush(spec)

    await recorder.log_init(spec)
    await recorder.log_start(spec, EvalPlan())
    await recorder.flush(spec)
    await asyncio.gather(*(work() for _ in range(WORKERS)))
    await recorder.log_finish(spec, "success", EvalStats(), None, None, header_only=True)


def _written() -> int:
    """As `benchmarks.counting`, which is not installed here."""
    counters = Path("/proc/self/io")
    if not counters.exists():
        return 0
    told = dict(line.split(": ") for line in counters.read_text().splitlines())
    return int(told["wchar"])


def main(payloads: Path, count: int, directory: Path, mode: str) -> None:
    """Read the payloads, store them, and tell what it took."""
    with payloads.open("rb") as lines:
        contents = [json.loads(line) for line in islice(lines, count)]
    given = [(content, [*map(message, content["trajectory"])]) for content in contents]
    gc.collect()
    gc.freeze()
    before = _written()
    wall, cpu = time.perf_counter(), time.process_time()
    recorder = EvalRecorder(str(directory))
    spec = EvalSpec(
        created=_TIME,
        task="airline",
        model="model-1",
        dataset=EvalDataset(samples=count, sample_ids=[content["task"] for content in contents]),
        config=EvalConfig(),
    )
    buffer = recorder.default_log_buffer(count, count >= _HIGH_THROUGHPUT)
    asyncio.run(run(recorder, spec, 1 if mode == "each" else buffer, given))
    told = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    told["written"] = _written() - before
    size = sum(one.stat().st_size for one in directory.rglob("*.eval"))
    print(json.dumps({**told, "bytes": size, "buffer": buffer}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
