"""`acl export -f FORMAT RUN DIR`: project a ledger into files."""

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
