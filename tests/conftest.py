"""What holds for every test: nothing is read from or written to the user's own state."""

import signal

import pytest
from hypothesis import HealthCheck, settings

# A shell has what runs in the background ignore SIGINT, and what is started here would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast an example is made or tried is the machine's affair.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    """Remember what keys have signed in a folder of this test, and use no key of the user's."""
    directory = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("ACL_STATE_DIR", str(directory))
    monkeypatch.delenv("ACL_SIGNING_KEY", raising=False)
    return directory
