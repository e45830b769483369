"""Says after `make crash` how much was met: figures of docs/survival.md."""

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum up what tests counted with `record_property`, one line for each kind."""
    counted: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        counted.update(dict(report.user_properties))
    for name, number in sorted(counted.items()):
        terminalreporter.write_line(f"{number} {name}")
