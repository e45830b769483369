"""`acl verify-proof FILE`: what a proof proves, checked without the ledger."""

import json as text_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acl.keys import Key, PolicyFile
from acl.output import Json, document, line

if TYPE_CHECKING:
    from ledger import note
    from ledger.proof.checking import Trust

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_MOST_BYTES = 512 * 1024 * 1024
_SHOWN = 160


@app.command("verify-proof")
def verify_proof(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `acl prove` wrote.")],
    key: Key = None,
    policy: PolicyFile = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A checkpoint kept elsewhere, to compare."),
    ] = None,
    entry: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The entry, where the proof is of another kind of log."),
    ] = None,
    json: Json = False,
) -> None:
    """Check a proof of one event, of one checkpoint extending another, or a report of a fork.

    Exit 4 if it does not hold, or no given key signed. Without a key it says what is proven, and
    that it is not proven who signed.
    """
    from acl.files import read
    from acl.keys import policy_of, verifiers_of
    from ledger.proof.checking import Trust

    trust = Trust(verifiers_of(key), policy_of(policy))
    outside = None if checkpoint is None else _checkpoint(checkpoint)
    told = _check(read(file, _MOST_BYTES), trust, outside, None if entry is None else read(entry))
    if outside is not None and not told["compared"]:
        told["unproven"].append(
            f"that this is the history of the given checkpoint, of {outside.size} events:"
            " `acl prove RUN --from` it proves that"
        )
    if json:
        document({"ok": True, **told})
    else:
        _print(told)


def _check(
    data: bytes, trust: "Trust", outside: "note.Checkpoint | None", entry: bytes | None
) -> dict[str, Any]:
    from acl.proof_words import told_of_entry, told_of_event, told_of_history
    from ledger import proof
    from ledger.errors import UsageError
    from ledger.proof import checking
    from ledger.proof.history import CONSISTENCY, FORK
    from ledger.proof.inclusion import SIGNED, UNSIGNED

    if data.startswith((SIGNED, UNSIGNED)):
        single = proof.parse_inclusion(data)
        claim = single.claim
        if entry is None:
            event = checking.check_event(single, trust)
            return told_of_event(event, claim.signed, _compared(outside, claim.checkpoint))
        other = checking.check_entry(entry, single, trust)
        return told_of_entry(other, claim.signed, _compared(outside, claim.checkpoint))
    if entry is not None:
        raise UsageError("--entry goes with a proof of one entry")
    if data.startswith(CONSISTENCY):
        held = checking.check_consistency(proof.parse_consistency(data), trust)
        return told_of_history(held, is_fork=False, compared=_compared(outside, held.old, held.new))
    if data.startswith(FORK):
        held = checking.check_fork(proof.parse_fork(data), trust)
        is_one = outside in {held.old, held.new}
        return told_of_history(held, is_fork=True, compared=is_one)
    raise UsageError("this is no proof", hint="`acl prove` writes them")


def _compared(outside: "note.Checkpoint | None", *own: "note.Checkpoint") -> bool:
    """Whether one of the proof's checkpoints is the given one; ProofInvalid if one contradicts."""
    from ledger.proof.checking import compare

    if outside is None:
        return False
    # Both are looked at: either may contradict it.
    return sum(compare(one, outside) for one in own) > 0


def _checkpoint(path: Path) -> "note.Checkpoint":
    from acl.files import read
    from ledger import sidefile
    from ledger.errors import ProofInvalid, UsageError

    try:
        return sidefile.parse(read(path)).checkpoint
    except ProofInvalid as error:
        raise UsageError(f"{path} is no checkpoint: {error.message}") from error


def _print(told: dict[str, Any]) -> None:
    match told["kind"]:
        case "event":
            _print_event(told)
        case "entry":
            line(f"OK: entry {told['index']} of {told['checkpoint']['origin']}")
        case "consistency":
            line(f"OK: {told['new']['origin']} extends what it was")
        case _:
            line(f"OK: the report holds: two histories of {told['old']['origin']}")
    for name, title in (("proven", "Proven"), ("unproven", "Not proven")):
        if told[name]:
            line(f"{title}:")
            for sentence in told[name]:
                line(f"  - {sentence}")


def _print_event(told: dict[str, Any]) -> None:
    shown = told["event"]
    line(f"OK: event {shown['seq']} of ledger {told['ledger_id']}: {shown['type']}")
    fields = {"task": shown["task"], "attempt": shown["attempt"], "recorded": shown["at"]}
    said = {name: value for name, value in (shown["event"] or {}).items() if name != "lease"}
    for name, value in {**fields, **said}.items():
        if value is not None:
            text = value if isinstance(value, str) else text_of.dumps(value, ensure_ascii=False)
            line(f"  {name + ':':<12} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}")
