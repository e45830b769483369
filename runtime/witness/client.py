"""Asking a witness to sign a checkpoint."""

import re
from collections.abc import Callable, Sequence
from typing import Final

import httpx

from ledger import note, tlog
from ledger.errors import AclError, ProofInvalid, SignatureRefused, UsageError
from runtime.witness.judge import SIZE_TYPE, format_request

Prove = Callable[[int], Sequence[bytes]]
"""Gives the hashes that prove that the checkpoint extends the first so many events."""

_PATIENCE: Final = 30.0
_TRIES: Final = 4
_MOST_BYTES: Final = 64 * 1024
_SIZE: Final = re.compile(rb"(0|[1-9][0-9]{0,18})\n")


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
        if answer.status_code == 200:
            return _signatures(url, signed, answer.content)
        if answer.status_code != 409:
            raise _failure(url, answer)
        known = _SIZE.fullmatch(answer.content)
        if known is None or SIZE_TYPE not in answer.headers.get("content-type", ""):
            raise WitnessFailed(f"{url} answered 409 without the size that it knows")
        old = int(known[1])
        if old > size:
            raise SignatureRefused(
                f"the witness at {url} has seen {old} events of this ledger, it now has {size}"
            )
    raise WitnessFailed(f"{url} knows another size each time")


def _post(url: str, body: bytes) -> httpx.Response:
    try:
        with httpx.Client(timeout=_PATIENCE, follow_redirects=False) as client:
            return client.post(url.rstrip("/") + "/add-checkpoint", content=body)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UsageError(f"{url} is no URL of a witness ({error})") from error
    except httpx.HTTPError as error:
        raise WitnessFailed(f"{url} cannot be asked: {error or type(error).__name__}") from error


def _failure(url: str, answer: httpx.Response) -> AclError:
    why = " ".join(answer.text[:200].split()) or answer.reason_phrase
    told = f"the witness at {url} refused ({answer.status_code}): {why}"
    if answer.status_code == 422:
        return SignatureRefused(told)
    return WitnessFailed(told)


def _signatures(url: str, signed: bytes, body: bytes) -> tuple[note.Signature, ...]:
    """The lines of an answer; each must be one that fits behind the checkpoint's text."""
    text = note.parse_note(signed).text
    try:
        if len(body) > _MOST_BYTES:
            raise ProofInvalid(f"it has {len(body)} bytes")
        return note.parse_note(text + b"\n" + body).signatures
    except ProofInvalid as error:
        raise WitnessFailed(f"{url} answered no signature: {error.message}") from error


def path_of(hashes: tlog.Subtrees, size: int) -> Prove:
    """Return what proves a tree of `size` leaves, whose subtrees `hashes` gives."""
    return lambda old: tlog.prove_consistency(old, size, hashes).path
