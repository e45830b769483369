"""Realistic payloads, the same for every store: real conversations, cut to size, told apart.

There are 200 real trajectories. What a benchmark stores more of is made of them: names, numbers and
ids are changed from attempt to attempt, so that no store wins by finding the same bytes again that
no real run would hold twice. What real runs do repeat, the system prompt, is repeated.
"""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import zstandard

TRAJECTORY_BYTES: Final = 20_000
RETRIED: Final = 0.2
_DATA: Final = Path(__file__).parent / "data" / "airline.json.zst"
# Ids of reservations, numbers of two digits and more, and longer words with a capital.
_VARIED: Final = re.compile(r"\b[A-Z0-9]{6}\b|\d{2,}|\b[A-Z][a-z]{4,}\b")
_MOST: Final = 64 * 1024 * 1024

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt of a task leaves behind, in no store's own terms."""

    task: str
    plan: dict[str, Any]
    errors: tuple[str, ...]
    """What went wrong before it worked: one retry each."""
    trajectory: list[Message]
    answer: str
    telemetry: dict[str, float]
    correct: bool
    score: float


@cache
def conversations() -> list[list[Message]]:
    """The 200 real trajectories; nothing may be changed in them."""
    data = zstandard.ZstdDecompressor().decompress(_DATA.read_bytes(), max_output_size=_MOST)
    found: list[list[Message]] = json.loads(data)
    return found


def trajectory(number: int, size: int = TRAJECTORY_BYTES) -> list[Message]:
    """Make trajectory `number`: whole messages of about `size` bytes of JSON, always the same."""
    chance = random.Random(number)
    real = conversations()
    prompt, *_ = real[0]
    messages, length = [prompt], len(json.dumps(prompt))
    source = number
    while length < size:
        for message in real[source % len(real)][1:]:
            if length >= size:
                break
            varied = vary(message, chance)
            messages.append(varied)
            length += len(json.dumps(varied))
        source += 97
    return messages


def vary(value: Any, chance: random.Random) -> Any:
    """The same value with other ids, numbers and names in its texts."""
    if isinstance(value, str):
        return _VARIED.sub(lambda found: _another(found[0], chance), value)
    if isinstance(value, dict):
        return {key: vary(item, chance) for key, item in value.items()}
    if isinstance(value, list):
        return [vary(item, chance) for item in value]
    return value


def _another(word: str, chance: random.Random) -> str:
    if word.isdigit():
        # No number begins with 0: the text may be JSON.
        return str(chance.randrange(10 ** (len(word) - 1), 10 ** len(word)))
    if word.isupper():
        return "".join(chance.choices("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=len(word)))
    return (
        word if chance.random() < 0.7 else word[0] + "".join(chance.sample(word[1:], len(word) - 1))
    )


def attempts(count: int, size: int = TRAJECTORY_BYTES) -> Iterator[Attempt]:
    """Make the attempts of `count` tasks, one each; one in five had to be retried once."""
    for number in range(count):
        chance = random.Random(-number - 1)
        correct = chance.random() < 0.42
        yield Attempt(
            task=f"airline-{number:06d}",
            plan={"name": "act", "instruction": f"Serve customer {number}.", "max_steps": 30},
            errors=("upstream closed the connection",) if chance.random() < RETRIED else (),
            trajectory=trajectory(number, size),
            answer=f"reservation {chance.randrange(10**6):06d} is changed",
            telemetry={"input_tokens": chance.randrange(9_000), "cost_usd": chance.random() / 20},
            correct=correct,
            score=float(correct),
        )
