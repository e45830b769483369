"""What holds for every test: nothing is read from or written to the user's own state."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# A shell has what runs in the background ignore SIGINT, and what is started here would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Nor are servers that tests start asked through a proxy of the user's.
for name in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)

# Modes of files are told as they are with this mask.
os.umask(0o022)

# How fast an example is made or tried is the machine's affair. `--hypothesis-profile=new` looks for
# faults among other examples; without it a test tries the same ones each time.
settings.register_profile("new", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory, monkeypatch):
    """Remember what keys have signed in a folder of this test, and use no key of the user's."""
    directory = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("ACL_STATE_DIR", str(directory))
    monkeypatch.delenv("ACL_SIGNING_KEY", raising=False)
    return directory
