"""`acl export -f tiles`: publish a ledger as a directory that log tools can audit."""

from pathlib import Path

from acl.output import document, line, message


def export_tiles(run: str, directory: Path, *, alone: bool, json: bool) -> None:
    """Write or extend the directory and tell what it holds; UsageError unless `alone`.

    A log can neither follow what no checkpoint covers nor be salvaged: its checkpoint says how
    many events there are.
    """
    from exporters.tiles import publish
    from ledger import LedgerView
    from ledger.errors import UsageError

    if not alone:
        raise UsageError("tiles are written of an intact ledger, up to its newest checkpoint")
    with LedgerView.open(run) as view:
        told = publish(view, directory)
        beyond = view.size - told.claim.checkpoint.size
    checkpoint, signed = told.claim.checkpoint, told.claim.signed
    if json:
        document(
            {
                "path": str(directory),
                "format": "tiles",
                "origin": checkpoint.origin,
                "size": checkpoint.size,
                "root": checkpoint.root.hex(),
                "signed": signed is not None,
                "written": told.written,
                "unchanged": told.kept,
                "erased": told.erased,
            }
        )
    else:
        line(f"{told.written} files written in {directory}, {told.kept} were there")
        line(f"a log of {checkpoint.size} events, root {checkpoint.root.hex()}")
    if told.erased:
        message(f"acl: the bodies of events {', '.join(map(str, told.erased))} were erased")
    if signed is None:
        message("acl: nobody signed the checkpoint; log tools refuse it. Sign: `acl checkpoint`")
    if beyond:
        message(f"acl: {beyond} later events are in no checkpoint and not in the log")
