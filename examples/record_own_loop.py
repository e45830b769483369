"""Record an evaluation from a loop of your own: five lines around what you already have.

python examples/record_own_loop.py [RESULTS_DIR]
"""

import sys
from pathlib import Path

from runtime import record

QUESTIONS = {"2 + 3": "5", "7 * 6": "42", "9 - 12": "-3", "1 / 0": "undefined"}


def ask(question: str) -> str:
    """Stand in for your model; it fails on the last question."""
    left, sign, right = question.split()
    operations = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__}
    return str(operations[sign](int(left), int(right)))


def main(results_dir: Path) -> Path:
    """Ask every question once; return the run directory."""
    with record(results_dir, benchmark="small-sums", model="int") as run:
        for question, answer in QUESTIONS.items():
            with run.attempt(question) as attempt:
                attempt.result(ask(question))
                attempt.evaluation(correct=attempt.answer == answer)
    print(f"{run.path}: {run.metrics.metrics if run.metrics else {}}")
    return run.path


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
