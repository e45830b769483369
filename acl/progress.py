"""The progress line of a run: drawn on a terminal, absent in a pipe."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from acl.output import on_terminal

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
