"""Commands start without what they do not need: nobody waits for a module that is not used."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
from acl.main import call
status = call(sys.argv[1:])
print(json.dumps([status, sorted(sys.modules)]))
"""
# Of each package that takes long to load, or that only some commands have a use for.
RARE = {
    "agentcompass",
    "asyncio",
    "exporters",
    "httpx",
    "litellm",
    "platformdirs",
    "pyarrow",
    "re2",
    "rich",
    "runtime.contracts",
    "runtime.importers",
    "runtime.orchestrator",
    "sqlite_utils",
    "yaml",
}
OF_LEDGERS = {"cryptography", "ledger.codec", "ledger.events", "pydantic", "xxhash", "zstandard"}


def loaded(*arguments: object) -> set[str]:
    """The modules that a process holds once it has run this command line."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0, done.stderr
    return set(modules)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_and_version_load_nothing_that_reads_a_ledger(arguments: tuple[str, ...]) -> None:
    assert not loaded(*arguments) & (RARE | OF_LEDGERS)


@pytest.mark.parametrize("command", ["verify", "show"])
def test_reading_a_ledger_loads_nothing_that_runs_or_exports(command: str, sealed: Path) -> None:
    found = loaded(command, sealed)
    assert not found & RARE
    assert "ledger.codec" in found


def test_what_packages_offer_is_what_their_modules_hold() -> None:
    program = """
import ledger.fold, ledger.verify.walk, runtime.replay
from importlib import import_module
for name in ("ledger", "runtime"):
    package = import_module(name)
    for offered in package.__all__:
        assert getattr(package, offered).__name__.rpartition(".")[2] in (offered, "BaseHarness")
    try:
        package.nothing
    except AttributeError as error:
        assert str(error) == f"module '{name}' has no attribute 'nothing'"
    else:
        raise AssertionError("an unknown name was found")
from ledger import fold, verify
from runtime import Harness, replay
assert callable(fold) and callable(verify) and callable(replay)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
