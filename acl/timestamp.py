"""RFC 3161 time stamps, through the optional package rfc3161-client."""

from datetime import datetime
from typing import Any

_TIMEOUT = 30.0
_MOST_BYTES = 1_000_000
_MIME = "application/timestamp-query"


def request_timestamp(data: bytes, url: str) -> bytes:
    """Ask the authority at `url` for a time stamp over `data`; return its reply, DER.

    Raises UsageError where it cannot be had, ProofInvalid where the reply is of something else.
    """
    import httpx

    from ledger.errors import ProofInvalid, UsageError
    from runtime.proxies import may_be_proxied

    client = _client()
    asked = client.TimestampRequestBuilder(
        data=data, hash_algorithm=client.HashAlgorithm.SHA256
    ).build()
    try:
        answer = httpx.post(
            url,
            content=asked.as_bytes(),
            headers={"Content-Type": _MIME},
            timeout=_TIMEOUT,
            trust_env=may_be_proxied(httpx.URL(url).host),
        )
        answer.raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UsageError(
            f"no time stamp from {url}: {error}",
            hint="nothing was written; attest without it, or ask another authority",
        ) from error
    reply = _decode(answer.content)
    given, wanted = reply.tst_info.message_imprint, asked.message_imprint
    if (given.message, reply.tst_info.nonce) != (wanted.message, asked.nonce):
        raise ProofInvalid(f"{url} stamped something else than it was asked for")
    return answer.content


def check_timestamp(data: bytes, reply: bytes, roots: bytes | None) -> tuple[datetime, bool]:
    """Return when `data` was stamped, and whether an authority under `roots` (PEM) says so.

    Without `roots` the time is only what the reply claims, of these very bytes. Raises
    ProofInvalid for a reply over other bytes, or one that no authority under `roots` signed.
    """
    import hashlib

    from ledger.errors import ProofInvalid

    client, decoded = _client(), _decode(reply)
    if roots is None:
        imprint = decoded.tst_info.message_imprint
        name = {
            client.verify.SHA256_OID: "sha256",
            client.verify.SHA384_OID: "sha384",
            client.verify.SHA512_OID: "sha512",
        }.get(imprint.hash_algorithm.dotted_string)
        if name is None or hashlib.new(name, data).digest() != imprint.message:
            raise ProofInvalid("the time stamp is of something else")
        return decoded.tst_info.gen_time, False
    verifier = _verifier(client, roots)
    try:
        verifier.verify_message(decoded, data)
    except (client.VerificationError, ValueError) as error:
        raise ProofInvalid(f"the time stamp does not hold: {error}") from error
    return decoded.tst_info.gen_time, True


def _verifier(client: Any, roots: bytes) -> Any:
    from cryptography import x509

    from ledger.errors import UsageError

    try:
        certificates = x509.load_pem_x509_certificates(roots)
    except ValueError as error:
        raise UsageError(f"these are no certificates in PEM: {error}") from error
    builder = client.VerifierBuilder()
    for certificate in certificates:
        builder = builder.add_root_certificate(certificate)
    return builder.build()


def _decode(reply: bytes) -> Any:
    from ledger.errors import ProofInvalid

    client = _client()
    try:
        if len(reply) > _MOST_BYTES:
            raise ValueError("it is too long")
        decoded = client.decode_timestamp_response(reply)
        if decoded.status != client.PKIStatus.GRANTED:
            raise ValueError(f"its status is {decoded.status}")
    except ValueError as error:
        raise ProofInvalid(
            f"this is no time stamp in strict DER: {error}",
            hint="ask another authority, or this one again",
        ) from error
    return decoded


def _client() -> Any:
    from ledger.errors import UsageError

    try:
        import rfc3161_client
        import rfc3161_client.verify
    except ImportError as error:
        raise UsageError(
            "time stamps need the package rfc3161-client",
            hint="pip install 'agentcompass-ledger[timestamp]'",
        ) from error
    return rfc3161_client
