"""Notes, proofs, keys, policies, envelopes, messages: files and frames that strangers write."""

import json
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from exporters.statement import checkpoint_of, read_statement, statement
from exporters.tile_layout import decode_bundle, encode_bundle
from ledger import LedgerView, canonical, dsse, fold, note, proof, sidefile, tlog
from ledger.canonical import SpilledBinary, SpilledList, SpilledText
from ledger.errors import AclError
from ledger.keys import CosigningKey, SigningKey, parse_verifier
from ledger.policy import parse_policy
from ledger.proof import checking
from runtime import call_socket_wire as wire
from runtime.call_records import Coordinates
from runtime.witness.judge import Refused, parse_request
from runtime.witness.server import Witness
from runtime.witness.store import WitnessStore
from tests.fuzz import strings
from tests.fuzz.bounds import memory_folder
from tests.fuzz.reached import ROOT
from tests.fuzz.target import Target, holds
from tests.signed_ledgers import LAB, OTHER, SAME_NAME, WITNESS, make, notes

_TRUST = checking.Trust([LAB.verifier, WITNESS.verifier])
Features = Iterable[str]


class TextTarget(Target):
    """Mutations of a text."""

    def prepare(self, data: bytes, home: Path) -> None:
        _honest()

    def mutate(self, data: bytes, others: Sequence[bytes], random: Random) -> bytes:
        return strings.mutate(data, others, random)

    def reduced(self, data: bytes) -> Iterator[bytes]:
        return strings.reduced(data)


@cache
def _honest() -> tuple[dict[int, bytes], tuple[bytes, ...], bytes, tuple[bytes, ...]]:
    """A ledger's headers by number, its checkpoints, a statement about it, and proofs."""
    with memory_folder() as folder:
        run = make(Path(folder) / "run")
        other = make(Path(folder) / "other", answer="43")
        told, theirs = tuple(notes(run)), tuple(notes(other))
        with LedgerView.open(run) as view:
            heads = {seq: view.raw(seq)[0] for seq in range(view.size)}
            files = {"checkpoint": "0" * 64}
            said = statement(fold(view.events()), told[-1], files)
            proofs = [proof.inclusion(view, seq, told[-1]) for seq in (0, 5, view.size - 1)]
            proofs += [proof.consistency(view, told[0], told[-1])]
            proofs += [proof.fork(view, theirs[1], told[-1])]
    return heads, told, said, tuple(proofs)


def _vectors(name: str) -> Any:
    return json.loads((ROOT / "tests" / "data" / "vectors" / f"{name}.json").read_bytes())


def _keys() -> tuple[note.Verifier, ...]:
    mine = (LAB.verifier, WITNESS.verifier)
    return (
        *mine,
        *(parse_verifier(_vectors("note")[one]["vkey"]) for one in ("log_key", "witness_key")),
    )


class Notes(TextTarget):
    """What is a note has one spelling, and nobody's signature moves to another text."""

    name = "note"

    def __init__(self) -> None:
        self._signed: set[bytes] = set()

    def seeds(self) -> Iterable[bytes]:
        foreign = [one["signed"].encode() for one in _vectors("note")["notes"]]
        told = _honest()[1]
        found = [*told, *foreign, note.parse_note(told[0]).text]
        self._signed = {note.parse_note(one).text for one in found[:-1]}
        return found

    def run(self, data: bytes, home: Path) -> Features:
        if not self._signed:
            self.seeds()
        said = []
        try:
            signed = note.parse_note(data)
            holds(note.format_note(signed) == data, "a note of two spellings")
            if note.good_lines(signed, _keys()):
                holds(signed.text in self._signed, "a signature over another text")
                said.append("signed")
        except AclError as error:
            said.append(error.message[:40])
        claim = sidefile.parse(data)
        text = claim.checkpoint.text
        holds(text == (data if claim.signed is None else claim.signed.text), "two spellings")
        return [*said, "a checkpoint"]


class Proofs(TextTarget):
    """What a proof proves under a key is what that key's ledger holds."""

    name = "proof"

    def seeds(self) -> Iterable[bytes]:
        foreign = [one["tlog_proof"].encode() for one in _vectors("proof")["tlog_proofs"]]
        return [*_honest()[3], *foreign]

    def run(self, data: bytes, home: Path) -> Features:
        return [self._said(kind, data) for kind in (self._event, self._consistency, self._fork)]

    def _said(self, kind: Callable[[bytes], str], data: bytes) -> str:
        try:
            return kind(data)
        except AclError as error:
            return strings.shape(error.message)

    def _event(self, data: bytes) -> str:
        found = proof.parse_inclusion(data)
        holds(proof.format_inclusion(found) == data, "a proof of two spellings")
        checking.check_event(found)
        held = checking.check_event(found, _TRUST)
        heads = _honest()[0]
        holds(heads.get(held.entry.header.seq) == held.entry.head, "an event that is not there")
        return "an event"

    def _consistency(self, data: bytes) -> str:
        found = proof.parse_consistency(data)
        holds(proof.format_consistency(found) == data, "a proof of two spellings")
        checking.check_consistency(found)
        checking.check_consistency(found, _TRUST)
        return "a history"

    def _fork(self, data: bytes) -> str:
        found = proof.parse_fork(data)
        holds(proof.format_fork(found) == data, "a report of two spellings")
        checking.check_fork(found)
        checking.check_fork(found, _TRUST)
        return "a fork"


class Keys(TextTarget):
    """Keys and policies have one spelling; no error shows the text of a signing key."""

    name = "key"
    policy = (
        f"# a policy\nlog {LAB.verifier.encode()} https://x.example\nlog {OTHER.verifier.encode()}\n"
        f"witness w {WITNESS.verifier.encode()}\ngroup g 1 w\nquorum g\n"
    )

    def seeds(self) -> Iterable[bytes]:
        keys = [LAB.encode(), OTHER.verifier.encode(), WITNESS.encode(), WITNESS.verifier.encode()]
        return [self.policy.encode(), *(one.encode() for one in keys)]

    def run(self, data: bytes, home: Path) -> Features:
        text = data.decode("utf-8", "surrogateescape")
        parsers = (parse_verifier, SigningKey.parse, CosigningKey.parse)
        said = [self._told(text, partial(self._read_back, parse, text)) for parse in parsers]
        return [*said, self._told(text, partial(self._judged, data))]

    def _told(self, text: str, read: Callable[[], str]) -> str:
        """What a reader of the text says; of the secrets in it it shows none."""
        try:
            return read()
        except AclError as error:
            told = str(error)
            holds(not any(secret in told for secret in self._secrets(text)), "a secret is told")
            return strings.shape(told)

    def _secrets(self, text: str) -> Iterable[str]:
        for word in text.split():
            secret = word.rpartition("+")[2]
            if "PRIVATE+KEY+" in word and len(secret) >= 20:
                yield secret

    def _read_back(self, parse: Callable[[str], Any], text: str) -> str:
        holds(parse(text).encode() == text, "a key of two spellings")
        return parse.__qualname__

    def _judged(self, data: bytes) -> str:
        found = parse_policy(data)
        faults = (found.fault(note.parse_note(one)) or "good" for one in _honest()[1])
        return strings.shape(", ".join(faults))


class Envelopes(TextTarget):
    """What is in an envelope under a key is what that key signed."""

    name = "envelope"

    def seeds(self) -> Iterable[bytes]:
        return [self._made(LAB), self._made(LAB, SAME_NAME), _honest()[2]]

    def _made(self, *keys: SigningKey) -> bytes:
        return dsse.encode(dsse.sign("application/vnd.in-toto+json", _honest()[2], keys))

    def run(self, data: bytes, home: Path) -> Features:
        said = []
        try:
            checkpoint_of(read_statement(data))
            said.append("a statement")
        except AclError as error:
            said.append(strings.shape(error.message))
        found = dsse.decode(data)
        holds(dsse.decode(dsse.encode(found)) == found, "an envelope does not read back")
        dsse.check(found, _keys())
        holds(found.payload == _honest()[2], "a signature over another payload")
        return [*said, "signed"]


class Canonical(TextTarget):
    """What is read is written again, and what is canonical to the same bytes."""

    name = "canonical"

    def seeds(self) -> Iterable[bytes]:
        def spill(digest: bytes, piece: bytes) -> None:
            pass

        values: list[Any] = [
            {"a": [1, 1.0, -0.0, 2**64, -(2**80), float("nan"), float("inf"), None, True]},
            {"$acl": 1, "\ud800": "\ud800", "é": "x" * 5000, "": "\0\x7f\u2028"},
            {"a": "y" * 9000, "b": [list(range(2000)), "z" * 5000]},
            canonical.Binary(b"abc"),
            {"b": canonical.Binary(bytes(140_000))},
            [[[[]]], {}, "", 1e16, 1e-5, 1.5e300, 5e-324],
        ]
        return [canonical.encode(one, spill) for one in values]

    def run(self, data: bytes, home: Path) -> Features:
        value = canonical.decode(data)
        canonical.has_envelopes(data)
        # A reference is written where the value is cut, never as a value of its own.
        whole = not _refers(value)
        again = canonical.encode(value) if whole else None
        if canonical.is_canonical(data):
            holds(again in (None, data), "a canonical value of two spellings")
        if again is not None:
            holds(canonical.is_canonical(again), "what is written is not canonical")
            holds(canonical.encode(canonical.decode(again)) == again, "does not read back")
        return [f"whole {whole}, canonical {again == data}"]


def _refers(value: Any) -> bool:
    if isinstance(value, SpilledText | SpilledList | SpilledBinary):
        return True
    if isinstance(value, dict):
        return any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))


class Messages(TextTarget):
    """What an agent's process sends to the recorder: frames, messages, tokens."""

    name = "wire"
    key = b"k" * 32

    def seeds(self) -> Iterable[bytes]:
        token = wire.seal_token(Coordinates("r", "t", 1), self.key)
        call: dict[str, Any] = {"token": token, "call_id": "c"}
        who: dict[str, Any] = {**call, "provider": "p", "model": "m"}
        messages = [
            wire.StartMessage(**who, params={"a": 1}, messages=[{"role": "user"}]),
            wire.StrayMessage(**who, reason="none"),
            wire.Reply(ok=False, error="E", message="m"),
            wire.EndMessage(
                **call,
                success=False,
                response={"a": [1.5]},
                usage={"input_tokens": 1},
                cost_usd=0.5,
                cost_source="x",
                started_at="2026-01-02T03:04:05Z",
                finished_at=None,
                duration_ms=1.0,
                ttft_ms=None,
                provider_request_id="x",
                error={"code": "x", "message": "y"},
                flags=("a",),
            ),
        ]
        return [token.encode(), *map(wire.encode_message, messages)]

    def run(self, data: bytes, home: Path) -> Features:
        said = [self._framed(data)]
        for read in (self._message, self._reply, self._token):
            try:
                said.append(read(data))
            except AclError as error:
                said.append(strings.shape(error.message))
        return said

    def _framed(self, data: bytes) -> str:
        ours, theirs = socket.socketpair()
        with closing(theirs):
            with closing(ours):
                ours.sendall(data)
            try:
                return f"frame {wire.receive_frame(theirs, 1.0, 1.0) is None}"
            except (EOFError, AclError) as error:
                return strings.shape(str(error))

    def _message(self, data: bytes) -> str:
        found = wire.decode_message(data)
        holds(wire.encode_message(found) == data or _has_defaults(data), "not what was sent")
        found.call()
        return type(found).__name__

    def _reply(self, data: bytes) -> str:
        wire.decode_reply(data)
        return "a reply"

    def _token(self, data: bytes) -> str:
        text = data.decode("utf-8", "surrogatepass") if data.isascii() else "x"
        wire.read_token(text)
        found = wire.open_token(text, self.key)
        holds(found == Coordinates("r", "t", 1), "a forged token")
        return "a token"


def _has_defaults(data: bytes) -> bool:
    """Whether fields that need not be there are not."""
    return any(
        name not in data for name in (b'"flags"', b'"kind"', b'"usage":null', b'"error":null')
    )


class Requests(TextTarget):
    """A witness signs only what extends what it signed before."""

    name = "witness"

    def seeds(self) -> Iterable[bytes]:
        told, path = _honest()[1], _honest()[3][3]
        hashes = path.split(b"\n\n")[0].split(b"\n", 1)[1]
        old = sidefile.parse(told[0]).checkpoint.size
        foreign = [one["request_body"].encode() for one in _vectors("witness")["requests"]]
        first = b"old 0\n\n" + told[0]
        return [first, b"old %d\n" % old + hashes + b"\n\n" + told[-1], *foreign]

    def run(self, data: bytes, home: Path) -> Features:
        store = WitnessStore(home / "store")
        witness = Witness(WITNESS, [LAB.verifier], store, lambda: 1_700_000_000)
        first = witness.add_checkpoint(b"old 0\n\n" + _honest()[1][0])
        holds(first.status == 200, "the first is signed")
        try:
            parse_request(data)
        except Refused as error:
            holds(error.answer.status == 400, "malformed is 400")
        answer = witness.add_checkpoint(data)
        if answer.status == 200:
            request = parse_request(data)
            texts = {note.parse_note(one).text for one in _honest()[1]}
            holds(request.signed.text in texts, "signed what no log signed")
            holds(
                request.checkpoint.size >= sidefile.parse(_honest()[1][0]).checkpoint.size, "back"
            )
        return [f"{answer.status} {strings.shape(answer.body.decode(errors='replace'))}"]


class Bundles(TextTarget):
    """Bundles of entries have one spelling."""

    name = "bundle"

    def seeds(self) -> Iterable[bytes]:
        return [b"", *(encode_bundle([b"x" * size] * 3) for size in (0, 1, 200, 256))]

    def run(self, data: bytes, home: Path) -> Features:
        entries = decode_bundle(data)
        holds(encode_bundle(entries) == data, "a bundle of two spellings")
        tlog.Frontier([tlog.leaf_hash(one) for one in entries]).root()
        return [f"{min(len(entries), 9)} entries"]


TEXTS: tuple[Target, ...] = (
    Notes(),
    Proofs(),
    Keys(),
    Envelopes(),
    Canonical(),
    Messages(),
    Requests(),
    Bundles(),
)
