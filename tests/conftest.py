"""What holds for every test: nothing is read from or written to the user's own state."""

import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    """Remember what keys have signed in a folder of this test, and use no key of the user's."""
    directory = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("ACL_STATE_DIR", str(directory))
    monkeypatch.delenv("ACL_SIGNING_KEY", raising=False)
    return directory
