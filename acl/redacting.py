"""What a user says on the command line, as a ledger has it."""

import os


def redacted(text: str) -> tuple[str, int]:
    """Return `text` without its secrets, and how many there were."""
    from runtime.redact import Redactor

    return Redactor(os.environ).redact_text(text)
