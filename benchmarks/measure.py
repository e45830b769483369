"""How everything here is measured: rounds that take turns, medians, ratios within one run.

The machine may be busy with other things, so seconds of one run say little by themselves. What is
compared runs in turns, round by round, and what is reported first is the ratio of the medians.
"""

import argparse
import gc
import json
import os
import platform
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import zstandard


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians over rounds, in seconds: of the clock on the wall, and of CPU of the process."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure that has an aim; `aim` is the least or the most that it should be, or None."""

    name: str
    value: float
    aim: float | None = None
    side: Literal["least", "most"] = "most"

    @property
    def reached(self) -> bool | None:
        if self.aim is None:
            return None
        return self.value >= self.aim if self.side == "least" else self.value <= self.aim


@dataclass(slots=True)
class Report:
    """What a benchmark found: plain rows of figures, and the ratios that have an aim."""

    name: str
    about: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def row(self, **figures: Any) -> None:
        """Add a row of the table; progress is shown where somebody looks."""
        self.rows.append(figures)
        print(
            "  ".join(f"{key}={_spell(value)}" for key, value in figures.items()), file=sys.stderr
        )

    def ratio(
        self,
        name: str,
        value: float,
        *,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        """Add a ratio; say its aim with `least` or `most`, if it has one."""
        side: Literal["least", "most"] = "most" if least is None else "least"
        self.ratios.append(Ratio(name, value, most if least is None else least, side))

    def note(self, text: str) -> None:
        """Say something that the figures do not: what was left out, and why."""
        self.notes.append(text)

    def document(self) -> dict[str, Any]:
        """Everything, and the machine it was measured on."""
        return {
            "name": self.name,
            "about": self.about,
            "machine": machine(),
            "rows": self.rows,
            "ratios": [
                {
                    "name": one.name,
                    "value": one.value,
                    one.side: one.aim,
                    "reached": one.reached,
                }
                for one in self.ratios
            ],
            "notes": self.notes,
        }

    def table(self) -> str:
        """The same as Markdown."""
        parts = [f"### {self.name}", "", self.about, ""]
        parts += [*_table(self.rows), ""] if self.rows else []
        parts += [*_table([_ratio_row(one) for one in self.ratios]), ""] if self.ratios else []
        parts += [f"- {text}" for text in self.notes]
        return "\n".join(parts)


def machine() -> dict[str, str | int]:
    """What a reader must know of the machine and the libraries to make sense of a figure."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "zstd": ".".join(map(str, zstandard.ZSTD_VERSION)),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
    }


def interleaved(rounds: int, subjects: Mapping[str, Callable[[], object]]) -> dict[str, Timing]:
    """Run the subjects in turns, `rounds` times each; return the medians of each."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, subject in subjects.items():
            taken[name].append(timed(subject))
    return {
        name: Timing(
            statistics.median(wall for wall, _ in one), statistics.median(cpu for _, cpu in one)
        )
        for name, one in taken.items()
    }


def timed(subject: Callable[[], object]) -> tuple[float, float]:
    """Run once; return seconds of the wall clock and of CPU."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    subject()
    return time.perf_counter() - wall, time.process_time() - cpu


def arguments(about: str, *more: Callable[[argparse.ArgumentParser], object]) -> argparse.Namespace:
    """Parse the command line that all benchmarks share, and what `more` add to it."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--json", type=Path, help="also write the report to this file")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    for add in more:
        add(parser)
    return parser.parse_args()


def tell(report: Report, chosen: argparse.Namespace) -> None:
    """Print the table, and write the JSON where it was asked for."""
    print(report.table())
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(report.document(), indent=2) + "\n", encoding="utf-8")


def _ratio_row(one: Ratio) -> dict[str, Any]:
    sign = "≥" if one.side == "least" else "≤"
    verdict = {True: "yes", False: "**no**", None: ""}[one.reached]
    aim = "" if one.aim is None else f"{sign} {_spell(one.aim)}"
    return {"figure": one.name, "value": one.value, "aim": aim, "reached": verdict}


def _table(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(_spell(row.get(name, "")) for name in names) + " |" for row in rows]
    return lines


def _spell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
