"""The one list of attacks: tests run it, and the documentation is made from it."""

from typing import Final

from tests.attacks import on_content, on_files, on_history, on_recording, on_rows
from tests.attacks.attack import Attack

ATTACKS: Final[tuple[Attack, ...]] = (
    *on_files.ATTACKS,
    *on_rows.ATTACKS,
    *on_content.ATTACKS,
    *on_recording.ATTACKS,
    *on_history.ATTACKS,
)
