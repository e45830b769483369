"""`acl checkpoint RUN`: size and root of a ledger, signed, and cosigned by witnesses."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acl.keys import Key, PolicyFile, Signing
from acl.output import Json, Run, document, message, raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ledger import LedgerView, note, sidefile
    from ledger.keys import SigningKey
    from ledger.policy import Policy

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def checkpoint(
    run: Run,
    signing_key: Signing = None,
    witness: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Have a witness sign it too.")
    ] = None,
    key: Key = None,
    policy: PolicyFile = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="Write it to a new FILE too.")
    ] = None,
    json: Json = False,
) -> int:
    """Print the newest checkpoint of a ledger; with a key, sign one of all that it holds.

    Publish it: whoever has it sees any later change of what it covers. Signatures of witnesses
    are kept beside the ledger, and judged by --key and --policy; exit 1 if a witness did not sign
    or the policy is not met.
    """
    from acl.files import refuse_existing, write_new
    from acl.keys import policy_of, signers_given, verifiers_of
    from ledger import LedgerView, note, proof, sidefile
    from ledger.errors import UsageError

    required = policy_of(policy)
    verifiers = [*verifiers_of(key), *(required.verifiers if required else ())]
    signers = signers_given(signing_key)
    if out is not None:
        refuse_existing(out)
    if signers:
        _sign(run, signers)
    failures: list[str] = []
    with LedgerView.open(run) as view:
        data = proof.covering(view, 1)
        if data is None:
            raise UsageError("the ledger holds no checkpoint yet", hint="try again in a moment")
        if witness:
            data, failures = _cosign(view, data, witness, verifiers)
    claim = sidefile.parse(data)
    if claim.signed is not None:
        note.good_lines(claim.signed, verifiers)
    if out is not None:
        write_new(out, data)
    fault = _fault(required, claim)
    if json:
        _document(claim, data, failures, fault)
    else:
        raw(data)
    for failure in failures:
        message(f"acl: {failure}")
    if fault:
        message(f"acl: the policy is not met: {fault}")
    return 1 if failures or fault else 0


def _fault(required: "Policy | None", claim: "sidefile.Claim") -> str | None:
    """Why a checkpoint does not meet a policy, or None if it does."""
    if required is None:
        return None
    return required.fault(claim.signed) if claim.signed else "no key signed the checkpoint"


def _sign(run: str, signers: "Sequence[SigningKey]") -> None:
    """Sign a checkpoint of everything in a ledger that nobody writes; a sealed one stays as it is.

    Raises LedgerLocked, or SignatureRefused where a key has signed another history.
    """
    from ledger import LedgerView, note, sidefile
    from ledger.lock import WriterLock
    from ledger.memory import Memory
    from ledger.store import Ledger

    with LedgerView.open(run) as view:
        if view.sealed:
            lock = WriterLock(view.path)
            try:
                origin = sidefile.signed_origin(signers[0].name, view.ledger_id)
                latest = note.Checkpoint(origin, view.size, view.root())
                signed = note.parse_note(Memory().sign(latest, signers, view.root))
                sidefile.write(view.path, _merged(view, signed), signed=True)
            finally:
                lock.release()
            return
    with Ledger.open(run) as ledger:
        ledger.checkpoint(*signers)


def _merged(view: "LedgerView", signed: "note.SignedNote") -> bytes:
    """The note with the signatures that others have put under the same text before."""
    from ledger import note, proof

    held = proof.covering(view, view.size)
    if held is not None and b"\n\n" in held:
        before = note.parse_note(held)
        if before.text == signed.text:
            signed = note.with_lines(before, signed.signatures)
    return note.format_note(signed)


def _cosign(
    view: "LedgerView", data: bytes, urls: "Sequence[str]", verifiers: "Sequence[note.Verifier]"
) -> tuple[bytes, list[str]]:
    """Ask witnesses to sign; return the note with what they gave, which is kept, and failures.

    A signature that is said to be of one of `verifiers` and is not is a failure.
    """
    from ledger import note, sidefile, tlog
    from ledger.errors import AclError, LedgerLocked, UsageError
    from runtime.witness.client import accept, ask_witness, path_of

    claim = sidefile.parse(data)
    if claim.signed is None:
        raise UsageError("a witness signs what a key has signed", hint="give a --signing-key")
    size = claim.checkpoint.size
    prove = path_of(tlog.subtrees(view.leaves(size)), size)
    signed, failures = claim.signed, []
    for url in urls:
        try:
            signed = accept(signed, ask_witness(url, data, prove), verifiers)
        except UsageError:
            raise
        except AclError as error:
            failures.append(str(error))
    whole = note.format_note(signed)
    if signed != claim.signed:
        try:
            _keep(view, whole)
        except LedgerLocked as error:
            message(f"acl: the signatures are not kept beside the ledger: {error.message}")
    return whole, failures


def _keep(view: "LedgerView", data: bytes) -> None:
    """Keep a cosigned checkpoint: in the ledger if that is open still, and beside it."""
    from ledger import sidefile
    from ledger.lock import WriterLock
    from ledger.store import Ledger

    if not view.sealed:
        with Ledger.open(view.path) as ledger:
            ledger.adopt(data)
        return
    lock = WriterLock(view.path)
    try:
        sidefile.write(view.path, data, signed=True)
    finally:
        lock.release()


def _document(claim: "sidefile.Claim", data: bytes, failures: list[str], fault: str | None) -> None:
    document(
        {
            "origin": claim.checkpoint.origin,
            "size": claim.checkpoint.size,
            "root": claim.checkpoint.root.hex(),
            "signatures": [line.name for line in claim.signed.signatures] if claim.signed else [],
            "note": data.decode(),
            "failures": failures,
            "policy_fault": fault,
        }
    )
