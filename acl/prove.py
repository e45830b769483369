"""`acl prove RUN`: one file that proves one event, or that one checkpoint extends another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acl.files import Out, refuse_existing, write_new
from acl.output import Json, Run, document, line

if TYPE_CHECKING:
    from ledger import LedgerView

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

BROKEN_STATUS = 4
CHECKPOINT_HINT = "make one with `acl checkpoint`"


@app.command()
def prove(
    run: Run,
    out: Out,
    seq: Annotated[
        int | None, typer.Argument(metavar="[SEQ]", min=0, help="The number of an event.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="ID", help="The verdict on this task.")
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Which attempt, if there are several.")
    ] = None,
    event: Annotated[
        str | None, typer.Option(metavar="TYPE", help="With --task: its last event of this type.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For this checkpoint (default: the newest signed one)."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="That the ledger extends this checkpoint."),
    ] = None,
    until: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="With --from: up to this one.")
    ] = None,
    json: Json = False,
) -> int:
    """Write one self-contained file, which `acl verify-proof` checks without the ledger.

    Nothing of the run but the one event is in it. If the ledger contradicts a checkpoint, FILE is
    a report of the two histories that anybody can check, and the exit status is 4.
    """
    from ledger import LedgerView
    from ledger.errors import UsageError

    if sum(one is not None for one in (seq, task, since)) != 1:
        raise UsageError("name one of SEQ, --task and --from")
    if task is None and (attempt is not None or event is not None):
        raise UsageError("--attempt and --event go with --task")
    if since is None and until is not None:
        raise UsageError("--to goes with --from")
    refuse_existing(out)
    with LedgerView.open(run) as view:
        if since is not None:
            if checkpoint is not None:
                raise UsageError("the later checkpoint is named by --to")
            told, data = _history(view, since, until)
        else:
            from acl.proof_event import event_of

            wanted = seq if task is None else event_of(view, task, attempt, event)
            assert wanted is not None
            told, data = _event(view, wanted, checkpoint)
    write_new(out, data)
    _report({"path": str(out), **told}, json=json)
    return BROKEN_STATUS if told["kind"] == "fork" else 0


def _event(view: "LedgerView", seq: int, given: Path | None) -> tuple[dict[str, Any], bytes]:
    from acl.files import read
    from ledger import proof, sidefile
    from ledger.errors import UsageError

    recorded = view.event(seq)
    chosen = proof.covering(view, seq + 1) if given is None else read(given)
    if chosen is None:
        raise UsageError(f"no checkpoint covers event {seq}", hint=CHECKPOINT_HINT)
    data = proof.inclusion(view, seq, chosen)
    told = {
        "kind": "event",
        "seq": seq,
        "type": recorded.type,
        "task": recorded.task,
        "attempt": recorded.attempt,
        **_told(sidefile.parse(chosen)),
    }
    return told, data


def _history(view: "LedgerView", since: Path, until: Path | None) -> tuple[dict[str, Any], bytes]:
    """Prove or refute that the ledger extends the named checkpoints; {kind, ...} and the file."""
    from acl.files import read
    from ledger import proof, sidefile
    from ledger.errors import UsageError

    old = read(since)
    claim = _reached(view, old, since)
    if not proof.extends(view, claim):
        return _fork(view, old, since)
    if until is None:
        new = proof.covering(view, claim.checkpoint.size)
        if new is None:
            raise UsageError(f"no checkpoint is as late as {since}", hint=CHECKPOINT_HINT)
    else:
        new = read(until)
        if not proof.extends(view, _reached(view, new, until)):
            return _fork(view, new, until)
    data = proof.consistency(view, old, new)
    return {
        "kind": "consistency",
        "from": _told(claim),
        **_told(sidefile.parse(new)),
    }, data


def _reached(view: "LedgerView", data: bytes, path: Path) -> Any:
    """Read a checkpoint of this ledger which it is large enough for."""
    from ledger.errors import LedgerRolledBack, ProofInvalid, UsageError
    from ledger.proof.history import ledger_of
    from ledger.proof.lines import parse_claim

    try:
        claim = parse_claim(data)
    except ProofInvalid as error:
        raise UsageError(f"{path} is no checkpoint: {error.message}") from error
    origin, size = claim.checkpoint.origin, claim.checkpoint.size
    if ledger_of(origin) != view.ledger_id.hex():
        raise UsageError(f"{path} is a checkpoint of another log, {origin}")
    if size > view.size:
        raise LedgerRolledBack(
            f"the ledger has {view.size} events, {path} knows of {size}",
            hint="an older copy stands in its place; keep that checkpoint as evidence",
        )
    return claim


def _fork(view: "LedgerView", other: bytes, path: Path) -> tuple[dict[str, Any], bytes]:
    from ledger import proof, sidefile
    from ledger.errors import ProofInvalid

    claim = sidefile.parse(other)
    size = claim.checkpoint.size
    ours = proof.covering(view, size, like=claim.signed)
    if ours is None:
        raise ProofInvalid(
            f"the ledger does not extend {path}: at {size} events it has another root",
            hint="it holds no checkpoint of as many events, so that nobody can be held to it",
        )
    told = _told(sidefile.parse(ours))
    return {"kind": "fork", "other": _told(claim), **told}, proof.fork(view, other, ours)


def _told(claim: Any) -> dict[str, Any]:
    checkpoint = claim.checkpoint
    names = [] if claim.signed is None else [line.name for line in claim.signed.signatures]
    return {
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "root": checkpoint.root.hex(),
        "signatures": names,
    }


def _report(told: dict[str, Any], *, json: bool) -> None:
    if json:
        document(told)
        return
    signed = ", ".join(told["signatures"]) or "nobody"
    match told["kind"]:
        case "event":
            task = "" if told["task"] is None else f" of task {told['task']}"
            number = "" if told["attempt"] is None else f", attempt {told['attempt']}"
            line(f"{told['path']} proves event {told['seq']}, {told['type']}{task}{number}")
        case "consistency":
            line(f"{told['path']} proves that the ledger extends {told['from']['size']} events")
        case _:
            size = told["other"]["size"]
            line("BROKEN: the ledger does not extend the checkpoint that was given")
            line(f"{told['path']} reports it: at {size} events there are two roots")
            line(f"  {told['other']['root']} in the checkpoint that was given")
    line(f"under the checkpoint of {told['size']} events, signed by {signed}")
    line(f"  {told['origin']} {told['size']} {told['root']}")
