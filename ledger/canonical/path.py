"""Where in a value something stands, spelled for people: `$.trajectory[3].x`."""

import json
import re
from collections.abc import Sequence

_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_KEY_SHOWN = 60
_HEAD, _TAIL = 12, 4


def spell_path(steps: Sequence[str | int]) -> str:
    """Spell keys and list positions from the root; the middle of a very deep path is left out."""
    spelled = [_spell_step(step) for step in steps]
    if len(spelled) > _HEAD + _TAIL:
        left_out = len(spelled) - _HEAD - _TAIL
        spelled[_HEAD:-_TAIL] = [f"…({left_out} more)…"]
    return "$" + "".join(spelled)


def _spell_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if len(step) > _KEY_SHOWN:
        step = step[:_KEY_SHOWN] + "…"
    return f".{step}" if _BARE_KEY.fullmatch(step) else f"[{json.dumps(step)}]"
