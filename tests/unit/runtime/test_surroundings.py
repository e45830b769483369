import asyncio
import random
from pathlib import Path

from runtime.contracts import AttemptContext, Task
from runtime.runner import run
from runtime.surroundings import Surroundings, program
from tests.fake_plugins import Listed, Scripted, at_once, plugins, read, request, task

NOON = 1_764_504_000 * 10**9


def root(results: Path) -> tuple[str, bytes, int]:
    """Run under a frozen clock and with seeded entropy."""

    def act(t: Task, context: AttemptContext) -> str:
        return "right" if context.attempt == 1 else "wrong"

    around = Surroundings(
        clock=lambda: (NOON, 0),
        entropy=random.Random(1).randbytes,
        uniform=lambda low, _: low,
        sleep=at_once,
        environ={},
        plugins=plugins(Listed([task("a"), task("b")]), Scripted(act)),
    )
    asked = request(task_concurrency=1, k=2, strategy="stop_on_correct")
    ran = read(asyncio.run(run(asked, results_dir=results, surroundings=around)))
    return ran.outcome.run_id or "", ran.state.root, ran.state.size


def test_the_same_surroundings_give_the_same_ledger(tmp_path: Path) -> None:
    one = root(tmp_path / "one")
    assert one == root(tmp_path / "two")
    assert one[0] == "20251130_120000"


def test_nothing_tells_on_which_machine_the_program_runs() -> None:
    found = repr(program())
    assert str(Path.home()) not in found
    assert str(Path.cwd()) not in found
