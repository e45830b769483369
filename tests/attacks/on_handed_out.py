"""Attacks on what is handed out beside a ledger: tiles, attestations, older copies, answers."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final, Literal

from acl.attestation import check_attestation, make_attestation
from acl.verdict import Against, examine
from exporters.tiles import publish
from ledger import LedgerView, note
from ledger.errors import AclError
from ledger.keys import CosigningKey, SigningKey
from ledger.verify import Finding
from runtime.witness.client import accept, ask_witness
from tests.attacks.attack import Scene, Seen, copy_scene, judged
from tests.attacks.forging import notes
from tests.attacks.on_history import NAMESAKE, cut_to_checkpoint, fork
from tests.attacks.on_recording import rerecord_unsigned
from tests.attacks.runs import LAB

Said = Seen | Literal["kept out"]
Look = Callable[[Scene, Path, bool], Said]
TILES, ATTESTATION = "`acl verify --tree DIR --checkpoint DIR/checkpoint`", "`acl attest --check`"
OLDER, WITNESS = "`acl verify --old`", "`acl checkpoint --witness`"


@dataclass(frozen=True)
class HandedOut:
    """Something that somebody hands out, and what who looks at it `by` a command says of it.

    `look` gets a scene to spoil, an empty directory, and whether the key is known that signed: of
    the lab, or of the witness that is spoken of. `kept out` says that nothing comes of it.
    """

    name: str
    does: str
    by: str
    look: Look
    alone: Said
    key: Said


# -- tiles ----------------------------------------------------------------------------------------


def _published(scene: Scene, directory: Path) -> Path:
    """A log that was published after the first task, and again at the end."""
    for run in (scene.older, scene.run):
        with LedgerView.open(run) as view:
            publish(view, directory)
    return directory


def _held_against(scene: Scene, tiles: Path, *, with_key: bool) -> list[Finding]:
    against = Against(
        verifiers=[LAB.verifier] if with_key else [],
        checkpoints=[tiles / "checkpoint"],
        tree=tiles,
    )
    return [Finding(**found) for found in examine(str(scene.run), against)["findings"]]


def tiles(change: Callable[[Path], None]) -> Look:
    """Look at a published log that was changed."""

    def look(scene: Scene, home: Path, with_key: bool) -> Seen:
        directory = _published(scene, home / "tiles")
        honest = _held_against(scene, directory, with_key=with_key)
        change(directory)
        return judged(_held_against(scene, directory, with_key=with_key), honest)

    return look


def _earlier_and_last(directory: Path, kind: str) -> list[Path]:
    found = sorted((directory / "tile" / kind / "000.p").iterdir(), key=lambda path: int(path.name))
    assert len(found) == 2
    return found


def _flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def resigned(data: bytes) -> bytes:
    """A note under other signatures of the same name and id, none of which is one."""
    signed = note.parse_note(data)
    (line,) = signed.signatures
    wrong = note.Signature(line.name, line.key_id, b"\1" * len(line.signature))
    return note.format_note(note.SignedNote(signed.text, (wrong,)))


def _forge_signature(directory: Path) -> None:
    path = directory / "checkpoint"
    path.write_bytes(resigned(path.read_bytes()))


# -- attestations ---------------------------------------------------------------------------------


def _attested(run: Path, home: Path, signer: SigningKey = LAB) -> Path:
    file = home / "attestation"
    file.write_bytes(make_attestation(str(run), [signer], None)[0])
    return file


def _checked(scene: Scene, file: Path, with_key: bool) -> Seen:
    keys = [LAB.verifier.encode()] if with_key else None
    try:
        check_attestation(str(scene.run), file, keys, None, timestamp=None, roots=None)
    except AclError:
        return "refused"
    return "unseen"


def honest_attestation(scene: Scene, home: Path, with_key: bool) -> Seen:
    return _checked(scene, _attested(scene.run, home), with_key)


def attestation_of_another(scene: Scene, home: Path, with_key: bool) -> Seen:
    return _checked(scene, _attested(scene.other, home), with_key)


def attestation_of_another_history(scene: Scene, home: Path, with_key: bool) -> Seen:
    file = _attested(scene.run, home)
    fork(scene)
    return _checked(scene, file, with_key)


def attestation_of_a_namesake(scene: Scene, home: Path, with_key: bool) -> Seen:
    rerecord_unsigned(scene)
    return _checked(scene, _attested(scene.run, home, NAMESAKE), with_key)


# -- older copies ---------------------------------------------------------------------------------


def _older(scene: Scene, home: Path) -> Path:
    """A copy from after the second task."""
    copy = copy_scene(scene, home / "kept")
    cut_to_checkpoint(copy)
    return copy.path


def older(act: Callable[[Scene], None]) -> Look:
    """Look at a run to which something was done since somebody took a copy."""

    def look(scene: Scene, home: Path, with_key: bool) -> Seen:
        against = Against([LAB.verifier] if with_key else [], checkpoints=[_older(scene, home)])
        honest = [Finding(**one) for one in examine(str(scene.run), against)["findings"]]
        act(scene)
        verdict = examine(str(scene.run), against)
        return judged([Finding(**one) for one in verdict["findings"]], honest)

    return look


def _nothing(scene: Scene) -> None:
    """The lab is honest."""


def _another_run(scene: Scene) -> None:
    shutil.rmtree(scene.run)
    shutil.copytree(scene.other, scene.run)


# -- witnesses that lie to the lab ----------------------------------------------------------------

FIRST = CosigningKey("first.example", b"F" * 32)
LIAR = CosigningKey("liar.example", b"G" * 32)
_TIME: Final = 1_700_000_000


@contextmanager
def _answering(body: bytes) -> Iterator[str]:
    class Liar(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Liar) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        thread.join()


def lies(body: Callable[[note.SignedNote], bytes]) -> Look:
    """Ask a witness that lies, after an honest one signed; the key is of the honest one."""

    def look(scene: Scene, _home: Path, with_key: bool) -> Said:
        signed = note.parse_note(notes(scene.path)[-1])
        line = note.Signature(FIRST.name, FIRST.key_id, FIRST.cosign(signed.text, _TIME))
        before = note.with_lines(signed, [line])
        data = note.format_note(before)
        verifiers = [FIRST.verifier] if with_key else []
        try:
            with _answering(body(before)) as url:
                after = accept(before, ask_witness(url, data, lambda _old: ()), verifiers)
        except AclError:
            return "refused"
        whole = after.signatures[: len(before.signatures)] == before.signatures
        return "kept out" if whole else "unseen"

    return look


def _garbled(name: str, key_id: bytes, length: int) -> Callable[[note.SignedNote], bytes]:
    return lambda _: note.format_line(note.Signature(name, key_id, b"\1" * length))


def _garbled_among_its_own(before: note.SignedNote) -> bytes:
    own = note.Signature(LIAR.name, LIAR.key_id, LIAR.cosign(before.text, _TIME))
    return note.format_line(own) + _garbled(FIRST.name, FIRST.key_id, 72)(before)


HANDED_OUT: Final = (
    HandedOut(
        "tiles-honest",
        "(an honest lab) publishes its log",
        TILES,
        tiles(lambda _: None),
        "unseen",
        "unseen",
    ),
    HandedOut(
        "tiles-earlier-hashes",
        "changes a hash in a partial tile of an earlier checkpoint",
        TILES,
        tiles(lambda directory: _flip(_earlier_and_last(directory, "0")[0])),
        "broken",
        "broken",
    ),
    HandedOut(
        "tiles-earlier-entries",
        "changes an entry in a partial bundle of an earlier checkpoint",
        TILES,
        tiles(lambda directory: _flip(_earlier_and_last(directory, "entries")[0])),
        "broken",
        "broken",
    ),
    HandedOut(
        "tiles-hashes",
        "changes a hash in the newest tile",
        TILES,
        tiles(lambda directory: _flip(_earlier_and_last(directory, "0")[1])),
        "broken",
        "broken",
    ),
    HandedOut(
        "tiles-signature",
        "forges the lab's signature in the published `checkpoint`",
        TILES,
        tiles(_forge_signature),
        "unproven",
        "broken",
    ),
    HandedOut(
        "attestation-honest",
        "(an honest lab) attests its run",
        ATTESTATION,
        honest_attestation,
        "unseen",
        "unseen",
    ),
    HandedOut(
        "attestation-other",
        "shows the attestation of another run",
        ATTESTATION,
        attestation_of_another,
        "refused",
        "refused",
    ),
    HandedOut(
        "attestation-fork",
        "the lab shows a second history beside the attestation of the first",
        ATTESTATION,
        attestation_of_another_history,
        "refused",
        "refused",
    ),
    HandedOut(
        "attestation-namesake",
        "records the run anew and attests it with another key of the lab's name",
        ATTESTATION,
        attestation_of_a_namesake,
        "unseen",
        "refused",
    ),
    HandedOut(
        "older-honest",
        "(an honest lab) goes on after somebody took a copy",
        OLDER,
        older(_nothing),
        "unseen",
        "unseen",
    ),
    HandedOut(
        "older-fork",
        "the lab shows a second history to whoever has an older copy of the first",
        OLDER,
        older(fork),
        "broken",
        "broken",
    ),
    HandedOut(
        "older-other",
        "shows another run to whoever has an older copy",
        OLDER,
        older(_another_run),
        "broken",
        "broken",
    ),
    HandedOut(
        "witness-lies-of-the-lab",
        "a witness answers a line in the place of the lab's signature",
        WITNESS,
        lies(_garbled(LAB.name, LAB.key_id, 72)),
        "refused",
        "refused",
    ),
    HandedOut(
        "witness-lies-of-another",
        "a witness answers a garbled line in the place of another witness's",
        WITNESS,
        lies(_garbled(FIRST.name, FIRST.key_id, 72)),
        "kept out",
        "refused",
    ),
    HandedOut(
        "witness-lies-among-its-own",
        "a witness answers such a line behind its own signature",
        WITNESS,
        lies(_garbled_among_its_own),
        "kept out",
        "refused",
    ),
    HandedOut(
        "witness-answers-no-cosignature",
        "a witness answers a line without a time",
        WITNESS,
        lies(_garbled(LIAR.name, LIAR.key_id, 64)),
        "refused",
        "refused",
    ),
    HandedOut(
        "witness-answers-no-line",
        "a witness answers what is no line of a note",
        WITNESS,
        lies(lambda _: b"signed\n"),
        "refused",
        "refused",
    ),
)
