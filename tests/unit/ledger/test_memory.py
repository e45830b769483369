"""A key signs only what extends what it signed before."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import events as ev
from ledger import note, tlog
from ledger.errors import SignatureRefused, UsageError
from ledger.keys import SigningKey, open_note
from ledger.memory import Memory, state_directory
from ledger.store import Ledger
from tests import events_of as say

KEY = SigningKey("lab", bytes(32))
LEAVES = [tlog.leaf_hash(bytes([n])) for n in range(8)]
ORIGIN = "acl/lab/" + "ab" * 16


def root_of(size, leaves=LEAVES):
    return tlog.root_of(b"".join(leaves), size)


def at(size, leaves=LEAVES, origin=ORIGIN):
    return note.Checkpoint(origin, size, root_of(size, leaves))


def never(size):
    raise AssertionError(f"asked for {size}")


def test_what_grows_is_signed_and_remembered(tmp_path):
    memory = Memory(tmp_path)
    assert memory.last(ORIGIN) is None
    memory.extend(at(2), never)
    memory.extend(at(2), never)
    memory.extend(at(5), root_of)
    assert memory.last(ORIGIN) == Memory(tmp_path).last(ORIGIN) == at(5)


def test_what_is_smaller_than_what_was_signed_is_refused(tmp_path):
    Memory(tmp_path).extend(at(5), never)
    with pytest.raises(SignatureRefused, match="5 events were signed, now there are 3"):
        Memory(tmp_path).extend(at(3), root_of)
    assert Memory(tmp_path).last(ORIGIN) == at(5)


@pytest.mark.parametrize("size", [5, 6])
def test_another_history_is_refused(tmp_path, size):
    Memory(tmp_path).extend(at(5), never)
    others = [tlog.leaf_hash(b"another"), *LEAVES[1:]]
    with pytest.raises(SignatureRefused, match="first 5 events another history"):
        Memory(tmp_path).extend(at(size, others), lambda n: root_of(n, others))
    assert Memory(tmp_path).last(ORIGIN) == at(5)


def test_each_log_is_remembered_by_itself(tmp_path):
    memory = Memory(tmp_path)
    memory.extend(at(5), never)
    memory.extend(at(2, origin="acl/lab/" + "cd" * 16), never)
    assert memory.last(ORIGIN) == at(5)


@pytest.mark.parametrize("content", [b"", b"acl/lab\n", bytes(at(5).text) + b"\xff\n"])
def test_a_memory_that_cannot_be_read_signs_nothing(tmp_path, content):
    memory = Memory(tmp_path)
    memory.extend(at(5), never)
    (kept,) = [path for path in (tmp_path / "signed").iterdir() if path.suffix != ".lock"]
    kept.write_bytes(content)
    with pytest.raises(SignatureRefused, match="cannot be read"):
        memory.extend(at(6), root_of)


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="ACL_STATE_DIR"):
        Memory(tmp_path / "file").extend(at(1), never)


def test_the_state_directory_is_the_users_and_can_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("ACL_STATE_DIR", str(tmp_path / "here"))
    assert state_directory() == tmp_path / "here"
    Memory().extend(at(1), never)
    assert stat.S_IMODE((tmp_path / "here" / "signed").stat().st_mode) == 0o700
    monkeypatch.delenv("ACL_STATE_DIR")
    assert state_directory().name == "acl"


def test_a_ledger_put_back_to_an_older_copy_is_not_signed_any_more(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    with Ledger.create(path) as ledger:
        ledger.append(*say.opening("t"))
        first = ledger.checkpoint(KEY)
    older = {one.name: one.read_bytes() for one in path.iterdir()}
    with Ledger.open(path) as ledger:
        ledger.append(ev.TaskStarted(task="t"))
        ledger.checkpoint(KEY)
    for name, content in older.items():
        (path / name).write_bytes(content)
    with Ledger.open(path) as ledger:
        assert ledger.size == first.size
        with pytest.raises(SignatureRefused, match="now there are"):
            ledger.checkpoint(KEY)
        ledger.append(ev.TaskStarted(task="t"))
        with pytest.raises(SignatureRefused, match="another history"):
            ledger.checkpoint(KEY)
        ledger.checkpoint()


def test_a_ledger_that_goes_on_is_signed_after_every_opening(tmp_path):
    memory = Memory(tmp_path / "state")
    with Ledger.create(tmp_path, memory=memory) as ledger:
        ledger.append(*say.opening("t", "u"))
        ledger.checkpoint(KEY)
        ledger.append(ev.TaskStarted(task="t"))
        ledger.checkpoint(KEY)
        ledger.append(ev.TaskStarted(task="u"))
        ledger.checkpoint(KEY)
    with Ledger.open(tmp_path, memory=memory) as ledger:
        ledger.append(ev.AnnotationAdded(text="on", author="me"))
        sealed = ledger.seal(KEY)
    signed, who = open_note((tmp_path / "ledger.checkpoint").read_bytes(), [KEY.verifier])
    assert note.parse_checkpoint(signed.text) == sealed
    assert who == (KEY.verifier,)
    assert memory.last(sealed.origin) == sealed


def test_two_keys_sign_one_checkpoint_under_the_name_of_the_first(tmp_path):
    second = SigningKey("second", b"\2" * 32)
    with Ledger.create(tmp_path) as ledger:
        ledger.append(*say.opening("t"))
        checkpoint = ledger.checkpoint(KEY, second)
        assert checkpoint.origin == f"acl/lab/{ledger.ledger_id.hex()}"
    _, who = open_note(
        (tmp_path / "ledger.checkpoint").read_bytes(), [second.verifier, KEY.verifier]
    )
    assert set(who) == {KEY.verifier, second.verifier}


def test_what_is_signed_is_remembered_before_the_signature_exists(tmp_path):
    class Dies:
        name, key_id = KEY.name, KEY.key_id

        def sign(self, text):
            raise OSError("the power went out")

    memory = Memory(tmp_path)
    with pytest.raises(OSError, match="power"):
        memory.sign(at(5), [Dies()], never)
    assert memory.last(ORIGIN) == at(5)


def test_processes_that_sign_at_once_never_sign_two_histories(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tests.unit.ledger.test_memory import *\n"
        "mine = [tlog.leaf_hash(sys.argv[2].encode()), *LEAVES[1:]]\n"
        "try:\n"
        "    Memory(Path(sys.argv[1])).extend(at(5, mine), lambda n: root_of(n, mine))\n"
        "except SignatureRefused:\n"
        "    sys.exit(4)\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)], env=environ)
        for n in range(4)
    ]
    assert sorted(one.wait(60) for one in started) == [0, 4, 4, 4]
