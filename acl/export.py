"""`acl export -f FORMAT RUN DIR`: project a ledger into files."""

from pathlib import Path
from typing import Annotated

import typer

from acl.output import Json, Run, document, line, message

app = typer.Typer(pretty_exceptions_enable=False)
