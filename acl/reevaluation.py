"""The part of `acl replay` that `--evaluate` adds: verdicts again, and how they compare."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from acl.output import line, number, on_terminal
from ledger import LedgerView
from runtime.contracts import Benchmark
from runtime.metrics.comparison import same
from runtime.reevaluation import FAILED, TASK_CHANGED, TASK_MISSING, Reevaluation, reevaluate
from runtime.results import MetricResult

_LONGEST = 60
_NAMED = frozenset({FAILED, TASK_CHANGED, TASK_MISSING})


def judge_again(
    view: LedgerView, benchmark: Benchmark, *, at: int | None, concurrency: int
) -> Reevaluation:
    """Judge the stored answers of a run, with progress on a terminal."""
    with _bar() as show:
        judging = reevaluate(view, benchmark, at=at, concurrency=concurrency, on_judged=show)
        return asyncio.run(judging)


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    if not on_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("judged"), BarColumn(), MofNCompleteColumn(), TextColumn("attempts"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task("judged", total=None)
        yield lambda done, total: bar.update(job, completed=done, total=total)


def report(found: Reevaluation, before: MetricResult) -> None:
    """Print each verdict that differs, what could not be compared, and whose verdicts these are.

    `before` are the metrics of the recorded verdicts.
    """
    for changed in found.different:
        fields = "; ".join(
            f"{field.name} recorded {_short(field.recorded)}, now {_short(field.replayed)}"
            for field in changed.differences
        )
        judges = "" if changed.recorded_by == changed.judged_by else f" (by {changed.judged_by})"
        line(f"verdict differs: {changed.task}, attempt {changed.attempt}: {fields}{judges}")
    for one in found.not_comparable:
        if one.reason in _NAMED:
            more = f": {one.message}" if one.message else ""
            line(f"not comparable: {one.task}, attempt {one.attempt}: {one.reason}{more}")
    line(
        f"verdicts: {found.compared} of {found.attempts} compared, {found.equal} equal,"
        f" {len(found.different)} different, {len(found.not_comparable)} not comparable"
    )
    for reason, many in found.reasons.items():
        line(f"not comparable: {many} for the reason: {reason}")
    if found.rejudged:
        line(f"judged by another evaluator than the recorded one: {found.rejudged}")
    for name, value in found.metrics.metrics.items():
        known = before.metrics.get(name)
        if known is None or not same(known, value):
            line(f"with these verdicts: {name} {number(value)}, was {number(known)}")
    judges = ", ".join(f"{name} ({many})" for name, many in found.verdicts_by.items())
    if len(found.verdicts_by) > 1:
        line(f"mixed: the verdicts are of more than one evaluator: {judges}")
    elif judges:
        line(f"the verdicts are of {judges}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
