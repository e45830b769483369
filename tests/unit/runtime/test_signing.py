"""Where signing keys come from, and which files are refused."""

import pytest

from ledger.errors import KeyRefused, UsageError
from ledger.keys import CosigningKey, SigningKey
from runtime.signing import read_signing_key, signers_of

KEY = SigningKey("lab", bytes(32))


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_key_is_read_from_a_file_or_given_as_its_text(tmp_path):
    named = write(tmp_path / "key", KEY.encode() + "\n")
    assert read_signing_key(named, SigningKey) == KEY
    assert read_signing_key(KEY.encode(), SigningKey) == KEY
    assert read_signing_key(f"\n {KEY.encode()}\n", SigningKey) == KEY


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_read_is_refused_with_the_way_out(tmp_path, mode):
    named = write(tmp_path / "key", KEY.encode(), mode)
    with pytest.raises(KeyRefused, match=r"others than its owner.*chmod 600"):
        read_signing_key(named, SigningKey)


def test_what_is_no_key_is_refused_without_its_content(tmp_path):
    for text in ("", "secret words", KEY.encode()[:-4] + "AAA=", KEY.verifier.encode()):
        with pytest.raises(KeyRefused) as refused:
            read_signing_key(write(tmp_path / "key", text), SigningKey)
        assert not text or text not in str(refused.value)
        assert "key" in str(refused.value)
    with pytest.raises(KeyRefused):
        read_signing_key(write(tmp_path / "key", KEY.encode()), CosigningKey)
    with pytest.raises(UsageError, match="cannot read"):
        read_signing_key(str(tmp_path / "none"), SigningKey)
    with pytest.raises(UsageError, match="cannot read"):
        read_signing_key("a\0b", SigningKey)
    with pytest.raises(KeyRefused, match="not a file"):
        read_signing_key(str(tmp_path), SigningKey)


def test_the_variable_names_the_key_unless_others_are_given(tmp_path):
    other = SigningKey("other", b"\1" * 32)
    environ = {"ACL_SIGNING_KEY": write(tmp_path / "key", KEY.encode())}
    assert signers_of((), environ) == (KEY,)
    assert signers_of([other.encode()], environ) == (other,)
    assert signers_of((), {"ACL_SIGNING_KEY": ""}) == ()
    assert signers_of((), {}) == ()


def test_one_key_or_one_name_given_twice_is_refused():
    for second in (KEY, SigningKey("lab", b"\1" * 32), SigningKey("again", KEY.seed)):
        with pytest.raises(KeyRefused, match="twice"):
            signers_of([KEY.encode(), second.encode()], {})
