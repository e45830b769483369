"""`acl keygen`: make a key that signs checkpoints."""

import os
from pathlib import Path
from typing import Annotated

import typer

from acl.output import Json, document, line, message

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def keygen(
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Who signs, e.g. lab.example/evaluations.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the secret key is written.")],
    witness: Annotated[
        bool, typer.Option("--witness", help="A key of a witness, which signs with the time.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a new Ed25519 key to FILE, which only you can read, and print its verifier key.

    Auditors need the verifier key. Whoever has FILE can sign; it is never replaced.
    """
    from ledger.keys import CosigningKey, SigningKey

    key = CosigningKey.generate(name) if witness else SigningKey.generate(name)
    _write(out, key.encode() + "\n")
    verifier = key.verifier.encode()
    if json:
        document({"name": name, "verifier_key": verifier, "path": str(out)})
        return
    line(verifier)
    if not witness:
        message(f"sign with it: ACL_SIGNING_KEY={out}; keep it away from the ledgers")


def _write(path: Path, text: str) -> None:
    """Make a file of mode 0600 at once and for good; UsageError if anything is there."""
    from ledger.errors import UsageError
    from ledger.sidefile import sync_directory

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o600)
    except FileExistsError as error:
        raise UsageError(f"{path} is there already", hint="a key is never replaced") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot write {path}: {reason}") from error
    try:
        with os.fdopen(file, "w", encoding="utf-8") as opened:
            os.fchmod(file, 0o600)
            opened.write(text)
            opened.flush()
            os.fsync(file)
        sync_directory(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
