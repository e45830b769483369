import subprocess
import sys
from pathlib import Path

from ledger import LedgerView
from ledger.fold import fold
from tests.ledger_checks import check_ledger

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_records_a_loop_of_ones_own(tmp_path: Path) -> None:
    command = [sys.executable, "examples/record_own_loop.py", str(tmp_path)]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "'correct.accuracy': 0.75" in shown.stdout
    (ledger,) = tmp_path.glob("small-sums/int/*/ledger.sqlite")
    check_ledger(ledger)
    with LedgerView.open(ledger) as view:
        state = fold(view.events())
    assert state.status == "completed"
    assert state.counts().correct == 3
    # Division by zero: an error of that attempt, and the loop went on.
    assert state.tasks["1 / 0"].attempts[1].status == "run_error"


def test_the_example_takes_five_lines() -> None:
    source = (ROOT / "examples" / "record_own_loop.py").read_text()
    begin = source.index("    with record(")
    loop = source[begin : source.index("    print(", begin)].splitlines()
    assert len(loop) == 5
