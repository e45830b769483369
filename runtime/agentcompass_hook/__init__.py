"""The live hook: a run of AgentCompass writes a ledger beside its files.

`recipe/` is the package that AgentCompass loads; nothing else imports it. What it does to a run,
and what it never does, says `docs/agentcompass.md`.
"""

from pathlib import Path
from typing import Final

RECIPE_DIR: Final = Path(__file__).resolve().parent / "recipe"
"""What `--recipe-dir` of AgentCompass is given."""
