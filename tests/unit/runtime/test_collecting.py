import asyncio
import hashlib

from ledger.canonical import Binary
from runtime.collecting import Collection, collect
from runtime.models import ArtifactLimits
from runtime.redact import Redactor
from tests.fake_plugins import Room

SECRET = "correct-horse-battery"


def collected(files: dict[str, bytes], paths: list[str], **limits: int) -> Collection:
    room, found = Room(), Collection()
    room.contents = files
    redactor = Redactor({"API_TOKEN": SECRET})
    asyncio.run(collect(room, paths, ArtifactLimits(**limits), redactor, found))
    return found


def test_nothing_gives_no_event() -> None:
    assert collected({}, []).event("t", 1) is None


def test_each_path_is_taken_once_in_the_order_it_was_named() -> None:
    found = collected({"a": b"1", "b": b"2"}, ["b", "a", "b"])
    assert [artifact.path for artifact in found.artifacts] == ["b", "a"]


def test_size_and_digest_are_of_what_is_kept() -> None:
    text = f"token {SECRET} " + "x" * 2000
    found = collected({"a": text.encode()}, ["a"])
    kept = found.contents["a"]
    assert isinstance(kept, str)
    assert SECRET not in kept
    (artifact,) = found.artifacts
    assert artifact.bytes == len(kept)
    assert artifact.sha256 == hashlib.sha256(kept.encode()).hexdigest()
    event = found.event("t", 1)
    assert event is not None
    assert event.redactions == 1


def test_what_is_no_text_is_kept_as_bytes() -> None:
    assert collected({"a": b"\x00\xff"}, ["a"]).contents == {"a": Binary(b"\x00\xff")}


def test_no_digest_names_what_could_be_guessed() -> None:
    found = collected({"short": b"x" * 1023, "long": b"x" * 1024}, ["short", "long"])
    assert [artifact.sha256 is None for artifact in found.artifacts] == [True, False]


def test_a_limit_on_files_ends_the_collection() -> None:
    found = collected({"a": b"1", "b": b"2"}, ["a", "b"], max_files=1)
    assert [artifact.path for artifact in found.artifacts] == ["a"]
    assert found.truncated


def test_a_limit_alone_is_told_where_nothing_fits() -> None:
    event = collected({"a": b"12345"}, ["a"], max_bytes=4).event("t", 1)
    assert event is not None
    assert (event.artifacts, event.truncated) == ((), True)


def test_a_file_larger_than_the_room_is_not_read() -> None:
    class Huge(Room):
        async def size(self, path: str) -> int:
            return 10**12 if path == "huge" else await super().size(path)

        async def read_bytes(self, path: str) -> bytes:
            assert path != "huge"
            return await super().read_bytes(path)

    room, found = Huge(), Collection()
    room.contents = {"huge": b"", "small": b"1"}
    work = collect(room, ["huge", "small"], ArtifactLimits(), Redactor({}), found)
    asyncio.run(work)
    assert [artifact.path for artifact in found.artifacts] == ["small"]
    assert found.truncated


def test_a_file_that_grew_meanwhile_is_held_to_the_limit() -> None:
    class Growing(Room):
        async def size(self, path: str) -> int:
            return 1

    room, found = Growing(), Collection()
    room.contents = {"a": b"12345"}
    asyncio.run(collect(room, ["a"], ArtifactLimits(max_bytes=4), Redactor({}), found))
    assert (found.artifacts, found.truncated) == ([], True)
