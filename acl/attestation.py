"""Making attestations of a run, and holding a run against one."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exporters.statement import Statement
    from ledger import LedgerView
    from ledger.keys import SigningKey

_CHUNK = 1024 * 1024


def make_attestation(
    run: str, signers: Sequence["SigningKey"], tree: Path | None
) -> tuple[bytes, dict[str, str]]:
    """Return the envelope, and the SHA-256 of each thing it is about.

    The ledger, its metrics and the exported tree are verified first: IntegrityError if anything
    is broken. Raises UsageError for a run that is not sealed.
    """
    from acl.verdict import Against, examine, state_at
    from exporters.statement import CHECKPOINT, PAYLOAD_TYPE, read_statement, statement
    from ledger import LedgerView, dsse
    from ledger.errors import IntegrityError

    where = _tree_of(run, tree)
    verdict = examine(run, Against(tree=where))
    if not verdict["ok"]:
        first = next(one for one in verdict["findings"] if one["severity"] == "broken")
        raise IntegrityError(f"{run} is not attested: {first['message']}", seq=first["seq"])
    with LedgerView.open(run) as view:
        size, checkpoint = _sealed(view)
        state = state_at(view, size)
        digest = _digest_of_file(view)
    files = {} if where is None else {"MANIFEST.json": _digest(where / "MANIFEST.json")}
    if digest is not None:
        files["ledger.sqlite"] = digest
    payload = statement(state, checkpoint, files)
    found = {one.name: one.digest.sha256 for one in read_statement(payload).subject}
    assert CHECKPOINT in found
    return dsse.encode(dsse.sign(PAYLOAD_TYPE, payload, signers)), found


def check_attestation(
    run: str,
    file: Path,
    key: list[str] | None,
    tree: Path | None,
    *,
    timestamp: Path | None,
    roots: Path | None,
) -> dict[str, Any]:
    """Say what an attestation proves of a run: {ok, signed_by, stamped_at, proven, unproven}.

    Raises ProofInvalid where it does not hold: not signed by a given key, or of other contents.
    """
    from acl.files import read
    from acl.keys import verifiers_of
    from exporters.statement import PAYLOAD_TYPE, read_statement
    from ledger import LedgerView, dsse
    from ledger.errors import ProofInvalid

    data = read(file)
    envelope = dsse.decode(data)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise ProofInvalid(f"the attestation is of another type, {envelope.payload_type}")
    verifiers = verifiers_of(key)
    signers = dsse.check(envelope, verifiers) if verifiers else ()
    found = read_statement(envelope.payload)
    told = _Told()
    for one in signers:
        told.proven.append(f"{one.name} (key {one.key_id.hex()}) signed it")
    if not signers:
        hints = ", ".join(line.key for line in envelope.signatures)
        told.unproven.append(f"who signed: no key was given; the file says {hints}")
    with LedgerView.open(run) as view:
        _compare_ledger(view, found, told)
    _compare_tree(_tree_of(run, tree), found, told)
    stamped = _stamped(data, file, timestamp, roots, told)
    return {
        "ok": True,
        "run_id": found.predicate.run_id,
        "signed_by": [one.name for one in signers],
        "stamped_at": stamped,
        "proven": told.proven,
        "unproven": told.unproven,
    }


class _Told:
    """What is proven, and what is not."""

    def __init__(self) -> None:
        self.proven: list[str] = []
        self.unproven: list[str] = []


def _sealed(view: "LedgerView") -> tuple[int, bytes]:
    """The size at the seal, and the checkpoint of exactly as many events, signed if one is."""
    from ledger import fold, proof
    from ledger.errors import UsageError

    size = fold(view.events()).sealed_size
    if size is None:
        raise UsageError(
            "the run is not sealed, so there is nothing final to attest",
            hint="`acl seal RUN` ends one that stopped",
        )
    checkpoint = proof.covering(view, size, most=size)
    if checkpoint is None:
        raise UsageError("no checkpoint is of the seal", hint="make one with `acl checkpoint`")
    return size, checkpoint


def _digest_of_file(view: "LedgerView") -> str | None:
    """The SHA-256 of the ledger once it is one file; None while it is not."""
    beside = view.path.with_name(view.path.name + "-wal")
    if not view.source.indexed or beside.exists() or view.writer() is not None:
        return None
    return _digest(view.path)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tree_of(run: str, tree: Path | None) -> Path | None:
    """The exported directory that is meant: the run's own where none is named."""
    from ledger.errors import UsageError
    from ledger.opening import ledger_file

    if tree is not None:
        if not (tree / "MANIFEST.json").is_file():
            raise UsageError(
                f"{tree} has no MANIFEST.json", hint="name a directory that `acl export` wrote"
            )
        return tree
    home = ledger_file(run).parent
    return home if (home / "MANIFEST.json").is_file() else None


def _compare_ledger(view: "LedgerView", found: "Statement", told: _Told) -> None:
    from exporters.statement import LEDGER, checkpoint_of
    from ledger.errors import ProofInvalid

    said, checkpoint = found.predicate, checkpoint_of(found)
    if said.ledger_id != view.ledger_id.hex():
        raise ProofInvalid(f"the attestation is about ledger {said.ledger_id}, run {said.run_id!r}")
    if checkpoint.size > view.size:
        raise ProofInvalid(
            f"the ledger has {view.size} events, {checkpoint.size} were attested",
            hint="an older copy stands in its place",
        )
    if view.root(checkpoint.size) != checkpoint.root:
        raise ProofInvalid(f"the first {checkpoint.size} events are not those that were attested")
    told.proven.append(
        f"the first {checkpoint.size} events are those that were sealed, root {said.root}"
    )
    later = view.size - checkpoint.size
    wanted, digest = found.digest(LEDGER), _digest_of_file(view)
    if wanted is None:
        told.unproven.append("that the file is the same byte for byte: it was not attested")
    elif wanted == digest:
        told.proven.append("the ledger file is byte for byte the one that was attested")
    elif later or digest is None:
        told.unproven.append(
            f"that the file is the same byte for byte: it has {later} later events"
            if later
            else "that the file is the same byte for byte: it is not folded here"
        )
    else:
        raise ProofInvalid("the ledger file is not byte for byte the one that was attested")


def _compare_tree(tree: Path | None, found: "Statement", told: _Told) -> None:
    from exporters.statement import MANIFEST
    from ledger.errors import ProofInvalid, UsageError

    wanted = found.digest(MANIFEST)
    if wanted is None or tree is None:
        what = "was attested" if wanted is None else "is at hand"
        told.unproven.append(f"what was exported: no directory {what}")
        return
    try:
        digest = _digest(tree / MANIFEST)
    except OSError as error:
        raise UsageError(f"cannot read {tree / MANIFEST}: {error.strerror}") from error
    if digest != wanted:
        raise ProofInvalid(f"{tree / MANIFEST} is not the manifest that was attested")
    told.proven.append(
        f"{tree / MANIFEST} is the manifest that was attested;"
        f" `acl verify --tree {tree}` compares the files that it lists"
    )


def _stamped(
    data: bytes, file: Path, timestamp: Path | None, roots: Path | None, told: _Told
) -> str | None:
    """When it was stamped, by the time stamp that is named or stands beside it."""
    from acl.attest import STAMP_SUFFIX
    from acl.files import read
    from acl.timestamp import check_timestamp

    beside = file.with_name(file.name + STAMP_SUFFIX)
    if timestamp is None and not beside.exists():
        told.unproven.append("when it was signed: it has no time stamp")
        return None
    given = None if roots is None else read(roots)
    at, trusted = check_timestamp(data, read(timestamp or beside), given)
    spelled = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    if trusted:
        told.proven.append(f"it existed at {spelled}: the time stamp authority says so")
    else:
        told.unproven.append(
            f"when it was signed: a time stamp says {spelled}; --tsa-root tells whose word counts"
        )
    return spelled
