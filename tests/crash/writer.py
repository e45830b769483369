"""A process that writes to a ledger until somebody kills it; run by the tests beside it.

Prints one line for each receipt, only once `append` has returned it: size and root.
"""

import random
import sys
from pathlib import Path

from ledger import events as ev
from ledger.store import Ledger, Receipt
from tests import events_of as say


def write_for_ever(path: Path, seed: int) -> None:
    noise = random.Random(seed)
    with Ledger.open(path) if path.exists() else Ledger.create(path) as ledger:
        if not ledger.size:
            acknowledge(ledger.append(*say.opening("t"), ev.TaskStarted(task="t")))
        while True:
            answer = noise.randbytes(noise.choice([10, 500, 9000, 40_000])).hex()
            acknowledge(ledger.append(*say.attempt("t", ledger.size, answer=answer)))
            if noise.random() < 0.3:
                ledger.checkpoint()


def acknowledge(receipt: Receipt) -> None:
    print(receipt.size, receipt.root.hex(), flush=True)


if __name__ == "__main__":
    write_for_ever(Path(sys.argv[1]), int(sys.argv[2]))
