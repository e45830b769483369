"""Record the model calls of an agent that uses LiteLLM.

    python examples/litellm_agent.py [RESULTS_DIR [MODEL]]

Without a model nothing is asked: LiteLLM makes up the answers. Needs the extra `litellm`. With an
agent in a process of its own, see `docs/litellm.md`.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from runtime import record
from runtime.litellm_bridge import LiteLLMCalls

import litellm  # isort: skip - after the bridge, which keeps it from fetching a price list

QUESTIONS = {"What is 2 + 3?": "5", "What is 7 * 6?": "42"}


async def ask(question: str, model: str, acl: dict[str, Any]) -> str:
    """Ask in two turns, as agents do; `acl` goes into every call."""
    made_up = {} if model else {"mock_response": QUESTIONS[question]}
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(2):
        answer = await litellm.acompletion(
            model=model or "openai/none", messages=messages, **made_up, **acl
        )
        messages.append(answer.choices[0].message)
        messages.append({"role": "user", "content": "Give the number alone."})
    return str(answer.choices[0].message.content).strip()


async def work(results_dir: Path, model: str) -> Path:
    """Ask every question; return the run directory."""
    with record(results_dir, benchmark="small-sums", model=model or "made-up") as run:
        for question, truth in QUESTIONS.items():
            with run.attempt(question) as attempt:
                async with LiteLLMCalls(attempt.calls) as acl:
                    attempt.result(await ask(question, model, acl))
                attempt.evaluation(correct=attempt.answer == truth)
    print(f"{run.path}: {run.metrics.metrics if run.metrics else {}}", file=sys.stderr)
    return run.path


if __name__ == "__main__":
    results, model = [*sys.argv[1:], *("results", "")[len(sys.argv) - 1 :]][:2]
    asyncio.run(work(Path(results), model))
