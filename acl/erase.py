"""`acl erase RUN SEQ...`: take what was recorded out of a ledger for good, and say so in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acl.keys import Signing
from acl.output import Json, Run, document, line

if TYPE_CHECKING:
    from ledger import LedgerView
    from ledger.erasure import Plan
    from ledger.keys import SigningKey
    from runtime.descendants import Holder

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_DIGITS = 16


@app.command()
def erase(
    run: Run,
    sequence: Annotated[
        list[int] | None, typer.Argument(metavar="[SEQ]...", help="Events that lose their body.")
    ] = None,
    blob: Annotated[
        list[str] | None,
        typer.Option(metavar="DIGEST", help="A piece of a large value; repeatable."),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays in the ledger.")] = "",
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Also pieces that other events need.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")
    ] = False,
    results_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where to look for runs that copied the events."),
    ] = None,
    signing_key: Signing = None,
    json: Json = False,
) -> None:
    """Erase bodies of events and pieces of large values; headers and tree stay as they are."""
    from acl.keys import signers_given
    from acl.redacting import redacted
    from ledger import LedgerView
    from ledger.errors import UsageError

    if not reason.strip() and not dry_run:
        raise UsageError("an erasure needs a reason", hint="say it with --reason TEXT")
    named: dict[str, Any] = {
        "sequence": sequence or (),
        "blobs": blob or (),
        "everywhere": everywhere,
    }
    if dry_run:
        with LedgerView.open(run) as view:
            told = _told(view.plan_erasure(**named), view, results_dir, {})
    else:
        signers = signers_given(signing_key)
        words, redactions = redacted(reason)
        named |= {"reason": words, "redactions": redactions or None}
        told = _erase(run, named, signers, results_dir)
    document(told) if json else _print(told)


def _erase(
    run: str, named: dict[str, Any], signers: "Sequence[SigningKey]", results_dir: Path | None
) -> dict[str, Any]:
    """Erase, and tell what was done."""
    from acl.unsigned import recorded
    from ledger.store import Ledger

    with Ledger.open(run, amends=True) as ledger:
        seq, plan = ledger.erase(**named)
        with recorded(f"all is erased, by event {seq}", run):
            checkpoint = ledger.checkpoint(*signers)
        done = {
            "event": seq,
            "size": checkpoint.size,
            "root": checkpoint.root.hex(),
            "origin": checkpoint.origin,
        }
        # Read before the ledger is closed, which leaves one file of it.
        with ledger.view() as view:
            return _told(plan, view, results_dir, done)


def _place_of(ledger: Path) -> Path:
    """The results directory of a run; where nothing tells, that of the runs beside it."""
    from runtime.registry.places import find_results_dir

    return find_results_dir(ledger.parent) or ledger.parent.parent


def _told(
    plan: "Plan", view: "LedgerView", results_dir: Path | None, done: dict[str, Any]
) -> dict[str, Any]:
    from runtime.descendants import find_holders

    holders = find_holders(view, plan.sequence, results_dir or _place_of(view.path))
    return {
        "dry_run": not done,
        **{name: done.get(name) for name in ("event", "size", "root", "origin")},
        "bodies": [_event(view, seq) for seq in plan.bodies],
        "values_of": [_event(view, seq) for seq in plan.sequence if seq not in plan.bodies],
        "blobs": [digest.hex() for digest in plan.blobs],
        "kept": [{"blob": one.hex(), "event": seq} for one, seq in plan.shared.items()],
        "copied_by": [_holder(one) for one in holders.copied],
        "copied_from": [_holder(one) for one in holders.sources],
        "not_looked_at": holders.unread,
        "too_many_ledgers": holders.many,
        "exports": _exports(view.path),
    }


def _event(view: "LedgerView", seq: int) -> dict[str, Any]:
    recorded = view.event(seq)
    return {
        "seq": seq,
        "type": recorded.type,
        "task": recorded.task,
        "attempt": recorded.attempt,
    }


def _holder(holder: "Holder") -> dict[str, Any]:
    return {
        "path": holder.path,
        "run_id": holder.run_id,
        "ledger_id": holder.ledger_id,
        "events": list(holder.events),
    }


def _exports(ledger: Path) -> bool:
    """Whether files that were exported stand beside the ledger."""
    return any((ledger.parent / name).exists() for name in ("MANIFEST.json", "details"))


def _print(told: dict[str, Any]) -> None:
    gone = "would lose" if told["dry_run"] else "lost"
    for event in told["bodies"]:
        line(f"event {event['seq']} ({_named(event)}) {gone} its body")
    for event in told["values_of"]:
        line(f"event {event['seq']} ({_named(event)}) {gone} a large value, or a part of one")
    for digest in told["blobs"]:
        line(f"blob {digest} {'would go' if told['dry_run'] else 'is gone'}")
    for kept in told["kept"]:
        line(
            f"blob {kept['blob'][:_DIGITS]}… stays: event {kept['event']} needs it too"
            " (--everywhere takes it from all)"
        )
    _print_holders(told)
    if told["exports"]:
        line("files exported beside the ledger still tell what they told: export again, or remove")
    if not told["dry_run"]:
        line(
            f"recorded as event {told['event']}; checkpoint at {told['size']} events,"
            f" root {told['root']}, origin {told['origin']}"
        )


def _print_holders(told: dict[str, Any]) -> None:
    for holder in told["copied_by"]:
        numbers = " ".join(map(str, holder["events"]))
        line(f"{holder['path']} copied it: acl erase {holder['path']} {numbers} --reason …")
    for holder in told["copied_from"]:
        where = holder["path"] or f"ledger {holder['ledger_id']}"
        numbers = ", ".join(map(str, holder["events"]))
        line(f"{where} (run {holder['run_id']}) is where it was copied from: events {numbers}")
    for path in told["not_looked_at"]:
        line(f"{path} could not be read: whether it copied any of it is not known")
    if told["too_many_ledgers"]:
        line("there are more ledgers than were looked at: name a directory with --results-dir")


def _named(event: dict[str, Any]) -> str:
    who = "" if event["task"] is None else f", task {event['task']}"
    return str(event["type"]) + who + ("" if event["attempt"] is None else f" #{event['attempt']}")
