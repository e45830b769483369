"""The rewards of a trial: any number of names, each with a number."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from runtime.importers.atif.counting import number
from runtime.importers.jsontext import NotARecord, read_record

REWARD: Final = "reward"

Rewards = dict[str, float | int]


def rewards_of(verifier_result: Any) -> tuple[Rewards | None, dict[str, Any]]:
    """The finite numbers among the rewards, and all that is none; None without any verdict."""
    told = verifier_result.get("rewards") if isinstance(verifier_result, dict) else None
    if not isinstance(told, dict):
        return None, {} if told is None else {"rewards": told}
    numbers = {name: value for name, value in told.items() if number(value) is not None}
    return numbers, {name: value for name, value in told.items() if name not in numbers}


def main_reward(rewards: Mapping[str, float | int]) -> float | int | None:
    """The reward that is the score: `reward`, or the only one; None among others."""
    if REWARD in rewards:
        return rewards[REWARD]
    return next(iter(rewards.values())) if len(rewards) == 1 else None


def are_binary(rewards: Iterable[Mapping[str, float | int] | None]) -> bool:
    """Whether each score is 0 or 1, so that it is a verdict of right or wrong."""
    mains = [main_reward(one) for one in rewards if one]
    return bool(mains) and all(main in (0, 1) for main in mains)


def measures(rewards: Mapping[str, float | int]) -> Rewards:
    """All rewards but `reward`, which is the score."""
    return {name: value for name, value in rewards.items() if name != REWARD}


def in_file(name: str, data: bytes) -> Any:
    """What `reward.txt` or `reward.json` holds; NotARecord if it is no reward."""
    if name.endswith(".json"):
        text = data.decode("utf-8", "replace").strip()
        if text and not text.startswith("{"):
            return {REWARD: _number(text)}
        return read_record(data).value
    return {REWARD: _number(data.decode("utf-8", "replace"))}


def _number(text: str) -> float:
    if not text.strip():
        raise NotARecord("empty", cut=True)
    try:
        return float(json.loads(text))
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    try:
        return float(text)
    except ValueError:
        raise NotARecord(f"no number: {text.strip()[:40]!r}") from None
