"""Freeze ledgers of this release: `python -m tests.compat.freeze`. What is frozen never changes.

Run once per release that changes the format or the catalogue; it refuses to replace a file.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from ledger import LedgerView, fold
from ledger.copying import copy_ledger
from ledger.version import __version__
from tests.golden import runs

LEDGERS = Path(__file__).parent / "ledgers"
FROZEN = (runs.full, runs.odd, runs.interrupted, runs.stopped_early, runs.reused)


def facts(path: Path) -> dict[str, Any]:
    """What every later release must still read out of a ledger."""
    with LedgerView.open(path) as view:
        state = fold(view.events())
        answers = {}
        for task, attempt in state.attempts():
            event = view.event(attempt.result).event if attempt.result is not None else None
            if event is not None:
                answer = view.resolve(event.final_answer)
                answers[f"{task.id!a} {attempt.number}"] = ascii(answer)
        return {
            "size": view.size,
            "root": view.root().hex(),
            "types": [recorded.type for recorded in view.events()],
            "status": state.status,
            "verdicts": {
                ascii(task.id): [task.correct, task.score, task.solved_at, task.bin]
                for task in state.tasks.values()
            },
            "answers": answers,
            "metrics": state.metrics[-1][2].metrics if state.metrics else None,
        }


def main() -> None:
    for build in FROZEN:
        target = LEDGERS / f"{__version__}-{build.__name__}.sqlite"
        if target.exists():
            sys.exit(f"{target.name} is frozen already")
        with tempfile.TemporaryDirectory() as scratch:
            build(Path(scratch))
            copy_ledger(scratch, target)
        target.chmod(0o644)
        text = json.dumps(facts(target), indent=1, sort_keys=True)
        target.with_suffix(".json").write_text(text + "\n")


if __name__ == "__main__":
    main()
