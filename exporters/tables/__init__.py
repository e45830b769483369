"""Runs as tables: `runs`, `tasks`, `attempts`, `calls`, `events`, for analysis tools.

One definition of the tables, several spellings of them: Parquet, CSV and JSON lines as files, and
a database for `acl query`. What each column means: `docs/tables.md`.
"""

from typing import Final

from exporters.tables.attempts import ATTEMPTS
from exporters.tables.calls import CALLS
from exporters.tables.columns import Column, Row, Table
from exporters.tables.events import EVENTS
from exporters.tables.runs import RUNS
from exporters.tables.tasks import TASKS

TABLES: Final = (RUNS, TASKS, ATTEMPTS, CALLS, EVENTS)

__all__ = ["ATTEMPTS", "CALLS", "EVENTS", "RUNS", "TABLES", "TASKS", "Column", "Row", "Table"]
