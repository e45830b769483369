"""Asking a witness to sign a checkpoint."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Final

import httpx

from ledger import note, tlog
from ledger.errors import AclError, ProofInvalid, SignatureRefused, UsageError
from runtime.proxies import may_be_proxied
from runtime.witness.judge import SIZE_TYPE, Answer, format_request

Prove = Callable[[int], Sequence[bytes]]
"""Gives the hashes that prove that the checkpoint extends the first so many events."""

_PATIENCE: Final = 30.0
_TRIES: Final = 4
_MOST_BYTES: Final = 64 * 1024
_SIZE: Final = re.compile(rb"(0|[1-9][0-9]{0,18})\n")
# A time and a signature: of Ed25519, of ML-DSA-44.
_COSIGNATURE_BYTES: Final = frozenset({8 + 64, 8 + 2420})


class WitnessFailed(AclError):
    """A witness could not be asked, or what it answered cannot be understood."""

    hint = "try again, or ask another witness"


def ask_witness(url: str, signed: bytes, prove: Prove) -> tuple[note.Signature, ...]:
    """Return the signatures of the witness at `url` on a signed checkpoint.

    Asks again from the size that the witness says it knows. Raises SignatureRefused if the witness
    has seen what this checkpoint does not extend, WitnessFailed, UsageError for what is no URL.
    """
    size = note.parse_checkpoint(note.parse_note(signed).text).size
    old = 0
    for _ in range(_TRIES):
        answer = _post(url, format_request(old, prove(old) if old else (), signed))
        if answer.status == 200:
            return _signatures(url, signed, answer.body)
        if answer.status != 409:
            raise _failure(url, answer)
        known = _SIZE.fullmatch(answer.body)
        if known is None or SIZE_TYPE not in answer.type:
            raise WitnessFailed(f"{url} answered 409 without the size that it knows")
        old = int(known[1])
        if old > size:
            raise SignatureRefused(
                f"the witness at {url} has seen {old} events of this ledger, it now has {size}"
            )
    raise WitnessFailed(f"{url} knows another size each time")


def accept(
    signed: note.SignedNote,
    lines: Sequence[note.Signature],
    verifiers: Sequence[note.Verifier] = (),
) -> note.SignedNote:
    """Return a note with what a witness answered to it.

    A witness could answer a line of another one, and spoil what that one signed: a line that is
    there already is replaced only by one that a key of `verifiers` proves. Raises ProofInvalid
    where a line that names one of them is not of it, and for more lines than a note can hold.
    """
    known = {(one.name, one.key_id) for one in verifiers}
    held = {(line.name, line.key_id) for line in signed.signatures} - known
    new = {(line.name, line.key_id): line for line in lines}
    more = note.with_lines(signed, [line for who, line in new.items() if who not in held])
    note.good_lines(more, verifiers)
    note.format_note(more)
    return more


def _post(url: str, body: bytes) -> Answer:
    # What is not asked for compressed is not expanded either: an answer is as long as it is.
    headers = {"Accept-Encoding": "identity"}
    try:
        with (
            httpx.Client(
                timeout=_PATIENCE,
                follow_redirects=False,
                trust_env=may_be_proxied(httpx.URL(url).host),
            ) as client,
            client.stream(
                "POST", url.rstrip("/") + "/add-checkpoint", content=body, headers=headers
            ) as answer,
        ):
            kind = answer.headers.get("content-type", "")
            return Answer(answer.status_code, _content(url, answer), kind)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UsageError(f"{url} is no URL of a witness ({error})") from error
    except httpx.HTTPError as error:
        raise WitnessFailed(f"{url} cannot be asked: {error or type(error).__name__}") from error


def _content(url: str, answer: httpx.Response) -> bytes:
    """The bytes of an answer, unless there are more of them, or they come slower, than of any."""
    content, until = bytearray(), time.monotonic() + _PATIENCE
    for chunk in answer.iter_raw():
        content += chunk
        if len(content) > _MOST_BYTES or time.monotonic() > until:
            raise WitnessFailed(f"{url} answers without an end")
    return bytes(content)


def _failure(url: str, answer: Answer) -> AclError:
    why = " ".join(answer.body[:200].decode("utf-8", "replace").split()) or "it says no more"
    told = f"the witness at {url} refused ({answer.status}): {why}"
    if answer.status == 422:
        return SignatureRefused(told)
    return WitnessFailed(told)


def _signatures(url: str, signed: bytes, body: bytes) -> tuple[note.Signature, ...]:
    """The lines of an answer; each must be a cosignature that fits behind the checkpoint's text.

    None may take the place of what a log signed.
    """
    before = note.parse_note(signed)
    try:
        lines = note.parse_note(before.text + b"\n" + body).signatures
    except ProofInvalid as error:
        raise WitnessFailed(f"{url} answered no signature: {error.message}") from error
    logs = {(one.name, one.key_id) for one in before.signatures if not _is_timed(one)}
    for line in lines:
        if not _is_timed(line) or (line.name, line.key_id) in logs:
            raise WitnessFailed(f"{url} answered what is no signature of a witness: {line.name}")
    return lines


def _is_timed(line: note.Signature) -> bool:
    return len(line.signature) in _COSIGNATURE_BYTES


def path_of(hashes: tlog.Subtrees, size: int) -> Prove:
    """Return what proves a tree of `size` leaves, whose subtrees `hashes` gives."""
    return lambda old: tlog.prove_consistency(old, size, hashes).path
