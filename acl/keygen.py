"""`acl keygen`: make a key that signs checkpoints."""

from pathlib import Path
from typing import Annotated

import typer

from acl.files import write_new
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
    from ledger.errors import UsageError
    from ledger.keys import CosigningKey, SigningKey

    if str(out) == "-":
        raise UsageError("a secret key is not printed", hint="name a file with --out FILE")
    key = CosigningKey.generate(name) if witness else SigningKey.generate(name)
    write_new(out, f"{key.encode()}\n".encode(), mode=0o600)
    verifier = key.verifier.encode()
    if json:
        document({"name": name, "verifier_key": verifier, "path": str(out)})
        return
    line(verifier)
    if not witness:
        message(f"sign with it: ACL_SIGNING_KEY={out}; keep it away from the ledgers")
