"""The options that bring keys and policies, the same in every command that takes them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acl.files import read
from ledger.errors import KeyRefused, UsageError

if TYPE_CHECKING:
    from ledger.keys import SigningKey, Verifier
    from ledger.policy import Policy

Key = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="VKEY", help="A verifier key that you trust, or its file."),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Whose signatures are required."),
]
Signing = Annotated[
    list[str] | None,
    typer.Option(
        "--signing-key", metavar="FILE", help="Sign with this key (default: ACL_SIGNING_KEY)."
    ),
]


def verifiers_of(given: list[str] | None) -> "list[Verifier]":
    """Read verifier keys, each a text or the name of a file with one key a line.

    Raises KeyRefused for a key that is malformed or weak, UsageError for a file that cannot be
    read.
    """
    from ledger.keys import parse_verifier

    found: dict[str, Verifier] = {}
    for value in given or ():
        texts = [value] if "+" in value and not Path(value).is_file() else _lines(Path(value))
        for text in texts:
            verifier = parse_verifier(text)
            found[verifier.encode()] = verifier
    return list(found.values())


def policy_of(path: Path | None) -> "Policy | None":
    """Read a policy file, if one is named; UsageError names the line that is refused."""
    if path is None:
        return None
    from ledger.policy import parse_policy

    try:
        return parse_policy(read(path))
    except UsageError as error:
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from error


def signers_given(given: list[str] | None) -> "tuple[SigningKey, ...]":
    """Read the signing keys that are named, or else the one that ACL_SIGNING_KEY names."""
    from runtime.signing import signers_of

    return signers_of(given or (), os.environ)


def _lines(path: Path) -> list[str]:
    lines = [line.strip() for line in read(path).decode("utf-8", "replace").split("\n")]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise KeyRefused(f"{path} holds no key")
    return keys
