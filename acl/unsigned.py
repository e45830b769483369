"""What is recorded and could not be signed: it stands, and can be signed later."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recorded(what: str, run: str) -> Iterator[None]:
    """Sign, within, what a command has recorded in `run`; `what` says what that is.

    A failure is raised on with words that it stands unsigned and how it is signed later. It is no
    UsageError, which would say that nothing was done.
    """
    from ledger.errors import AclError, UsageError

    how = f"sign it with: acl checkpoint {shlex.quote(run)} --signing-key FILE"
    try:
        yield
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise AclError(f"{what}, but is not signed: {place}{error.strerror}", hint=how) from error
    except AclError as error:
        told = f"{what}, but is not signed: {error.message}"
        hint = f"{error.hint}; then {how}" if error.hint else how
        if isinstance(error, UsageError):
            raise AclError(told, hint=hint) from error
        error.message, error.hint = told, hint
        raise
