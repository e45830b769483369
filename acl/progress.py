"""Progress of a run, or of several: drawn on a terminal, absent in a pipe."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from acl.output import DASH, on_terminal, printable

Show = Callable[[Any], None]


@contextmanager
def progress_line() -> Iterator[Show | None]:
    """Give a function that draws a `Progress`, or None where stderr is no terminal."""
    if not on_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} tasks"),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task("run", total=1, text="")

        def show(progress: Any) -> None:
            over = progress.done + progress.error + progress.cancelled
            bar.update(
                job,
                description=progress.run_id,
                total=max(progress.total, 1),
                completed=over,
                text=describe(progress),
            )

        yield show


@contextmanager
def counting(unit: str) -> Iterator[Callable[[int, int], object] | None]:
    """Give a function that draws how many of how many were done, or None if nobody would see."""
    if not on_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task(unit, total=None)
        yield lambda done, total: bar.update(job, completed=done, total=total)


def describe(progress: Any) -> str:
    """Attempts, errors, retries, rate and time left in a few words."""
    words = [f"{progress.attempts} attempts"]
    for name in ("error", "retries", "reused"):
        value = getattr(progress, name)
        if value:
            words.append(f"{value} {name if name != 'error' else 'with errors'}")
    if progress.tasks_per_minute is not None:
        words.append(f"{progress.tasks_per_minute:.0f} tasks/min")
    if progress.remaining_seconds is not None:
        words.append(f"{_duration(progress.remaining_seconds)} left")
    return ", ".join(words)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Rows:
    """A row for each request of a suite; `progress` and `end` may be called in any thread."""

    def __init__(self, names: Sequence[str]) -> None:
        self._status = dict.fromkeys(names, "waiting")
        self._progress: dict[str, Any] = {}

    def progress(self, name: str, progress: Any) -> None:
        """Say how far a request is."""
        self._progress[name] = progress
        self._status[name] = progress.status

    def end(self, outcome: Any) -> None:
        """Say how a request ended."""
        self._status[outcome.name] = outcome.status

    def table(self) -> Any:
        """The table as it is now."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        table.add_column("REQUEST", overflow="ellipsis", no_wrap=True)
        table.add_column("STATUS", no_wrap=True)
        for header in ("TASKS", "ERRORS", "RETRIES", "TASKS/MIN", "LEFT"):
            table.add_column(header, justify="right", no_wrap=True)
        for name, status in self._status.items():
            table.add_row(Text(printable(name)), status, *self._numbers(name))
        return table

    def _numbers(self, name: str) -> tuple[str, ...]:
        progress = self._progress.get(name)
        if progress is None:
            return (DASH,) * 5
        over = progress.done + progress.error + progress.cancelled
        rate = progress.tasks_per_minute
        left = progress.remaining_seconds if progress.status == "running" else None
        return (
            f"{over}/{progress.total}",
            str(progress.error),
            str(progress.retries),
            DASH if rate is None else f"{rate:.0f}",
            DASH if left is None else _duration(left),
        )


@contextmanager
def progress_table(names: Sequence[str]) -> Iterator[Rows | None]:
    """Draw a row for each request while they run; None where stderr is no terminal."""
    if not on_terminal():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    rows = Rows(names)
    with Live(get_renderable=rows.table, console=Console(stderr=True), transient=True):
        yield rows
