"""`acl query RUN 'select …'`: the state of a run, or of all runs, asked with SQL."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from acl.output import Json, document, message, raw, table, unread

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

SHOWN: Final = 1000
"""Rows of a table for people; a program asks for all with --json or --csv."""


@app.command()
def query(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run directory, a ledger file, or RESULTS_DIR.")
    ],
    sql: Annotated[str | None, typer.Argument(metavar="SELECT", help="One SQLite SELECT.")] = None,
    tables: Annotated[bool, typer.Option("--tables", help="List tables and columns.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout, all rows.")] = False,
    json: Json = False,
) -> int:
    """Ask a run with SQL: its tables are runs, tasks, attempts, calls and events.

    The tables are made in memory for the question; a ledger is only read.
    """
    from ledger.errors import UsageError

    if tables:
        _list_tables(json=json)
        return 0
    if sql is None:
        raise UsageError("there is no query", hint="acl query RUN 'select * from tasks'")
    if csv and json:
        raise UsageError("--csv and --json exclude each other")
    from exporters.tables.database import Database

    with _sources(run) as (sources, status), Database(sources, sql) as database:
        names, rows = database.ask(sql)
        if json:
            _print_json(names, rows)
        elif csv:
            _print_csv(names, rows)
        else:
            _print_table(names, rows)
    return status


@contextmanager
def _sources(run: str) -> Iterator[tuple[Sequence[Any], int]]:
    """The runs to ask, and the exit status that what is left out makes."""
    from acl.stored_runs import find_runs, is_results_dir
    from exporters.tables.files import OneRun
    from ledger import LedgerView, fold
    from ledger.errors import RunNotFound

    if is_results_dir(run):
        from acl.export_tables import tell

        found = find_runs(Path(run))
        tell(found)
        if not found.runs:
            raise RunNotFound(f"no run below {run} can be read")
        yield found.runs, found.status
        return
    with LedgerView.open(run) as view:
        # What a writer adds meanwhile is not read.
        yield [OneRun(fold(view.events(until=view.size)), view)], 0


def _list_tables(*, json: bool) -> None:
    from exporters.tables import TABLES

    columns = [(one, column) for one in TABLES for column in one.columns]
    if json:
        for one, column in columns:
            document(
                {
                    "table": one.name,
                    "column": column.name,
                    "type": column.kind,
                    "unit": column.unit or None,
                    "nullable": column.nullable,
                    "meaning": column.meaning,
                }
            )
        return
    table(
        ("TABLE", "COLUMN", "TYPE", "NULL", "UNIT", "MEANING"),
        [
            (one.name, c.name, c.kind, "null" if c.nullable else "", c.unit, c.meaning)
            for one, c in columns
        ],
    )


def _print_json(names: list[str], rows: Iterator[tuple[object, ...]]) -> None:
    from exporters.jsontext import json_line
    from ledger import canonical

    for row in rows:
        if unread():
            return
        cells = (canonical.Binary(cell) if isinstance(cell, bytes) else cell for cell in row)
        # Members are told in the order of the columns, whatever their names.
        raw(b"".join(json_line(dict(zip(names, cells, strict=True)))))


def _print_csv(names: list[str], rows: Iterator[tuple[object, ...]]) -> None:
    from exporters.tables.csvtext import csv_line

    raw(csv_line(names))
    for row in rows:
        if unread():
            return
        raw(csv_line([_text(cell) for cell in row]))


def _print_table(names: list[str], rows: Iterator[tuple[object, ...]]) -> None:
    shown = list(islice(rows, SHOWN))
    table(names, [[_text(cell) for cell in row] for row in shown])
    if next(rows, None) is not None:
        message(f"acl: only the first {SHOWN} rows are shown; --json and --csv give all")


def _text(cell: object) -> Any:
    return f"x'{cell.hex()}'" if isinstance(cell, bytes) else cell
