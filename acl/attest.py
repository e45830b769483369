"""`acl attest RUN`: a signed statement about a sealed run, and the check of one."""

from pathlib import Path
from typing import Annotated

import typer

from acl.files import refuse_existing, write_new
from acl.keys import Key, Signing
from acl.output import Json, Run, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

STAMP_SUFFIX = ".tsr"


@app.command()
def attest(
    run: Run,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="A new file.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check this attestation instead.")
    ] = None,
    signing_key: Signing = None,
    key: Key = None,
    tree: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="An exported directory (default: the run's, if it has one)."
        ),
    ] = None,
    timestamp_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Have it stamped by this RFC 3161 authority."),
    ] = None,
    timestamp: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --check: its time stamp (default: FILE.tsr)."),
    ] = None,
    tsa_root: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --check: certificates of authorities, in PEM."),
    ] = None,
    json: Json = False,
) -> None:
    """Write an in-toto Statement in a DSSE envelope about the checkpoint, the export and the file.

    With --check, say what an attestation proves about the run: exit 4 if it does not hold, or no
    given key signed it.
    """
    from ledger.errors import UsageError

    if (out is None) == (check is None):
        raise UsageError("name the new file with -o, or one to check with --check")
    if check is not None:
        if signing_key or timestamp_url is not None:
            raise UsageError("--signing-key and --timestamp-url go with -o")
        from acl.attestation import check_attestation

        told = check_attestation(run, check, key, tree, timestamp=timestamp, roots=tsa_root)
        if json:
            document(told)
        else:
            _print(told["proven"], told["unproven"])
        return
    if key or timestamp is not None or tsa_root is not None:
        raise UsageError("--key, --timestamp and --tsa-root go with --check")
    assert out is not None
    _write(run, out, signing_key, tree, timestamp_url, json=json)


def _write(
    run: str,
    out: Path,
    signing_key: list[str] | None,
    tree: Path | None,
    timestamp_url: str | None,
    *,
    json: bool,
) -> None:
    from acl.attestation import make_attestation
    from acl.keys import signers_given
    from ledger.errors import UsageError

    signers = signers_given(signing_key)
    if not signers:
        raise UsageError(
            "an attestation is signed: name a key with --signing-key",
            hint="`acl keygen` makes one",
        )
    stamp_file = out.with_name(out.name + STAMP_SUFFIX)
    refuse_existing(out)
    data, subjects = make_attestation(run, signers, tree)
    stamp = None
    if timestamp_url is not None:
        from acl.timestamp import request_timestamp

        refuse_existing(stamp_file)
        stamp = request_timestamp(data, timestamp_url)
    write_new(out, data)
    if stamp is not None:
        write_new(stamp_file, stamp)
    if json:
        document(
            {
                "path": str(out),
                "timestamp": None if stamp is None else str(stamp_file),
                "subjects": subjects,
                "signed_by": [one.name for one in signers],
            }
        )
        return
    line(f"{out} attests, signed by {', '.join(one.name for one in signers)}:")
    for name, digest in subjects.items():
        line(f"  {digest}  {name}")
    if stamp is not None:
        line(f"{stamp_file} is its time stamp")


def _print(proven: list[str], unproven: list[str]) -> None:
    line("OK: the attestation is about this run")
    for title, sentences in (("Proven", proven), ("Not proven", unproven)):
        if sentences:
            line(f"{title}:")
            for sentence in sentences:
                line(f"  - {sentence}")
