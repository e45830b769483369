"""What a run takes from outside: clocks, chance, environment variables, plug-ins, patience."""

import asyncio
import os
import platform
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

from ledger.note import Signer
from ledger.store import system_clock
from ledger.tail import Clock, Entropy
from runtime.limits import Sleep
from runtime.plugins import Plugins
from runtime.prices import price_table_sha256
from runtime.registry import LOCK_SECONDS, Registration, Registry
from runtime.retry import Uniform
from runtime.signing import signers_of

_PACKAGES: Final = ("google-re2", "httpx", "orjson", "pydantic", "xxhash", "zstandard")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The defaults are the real ones; the same clock and entropy give the same ledger.

    `grace_seconds` is how long plug-ins may clean up after they were told to stop, `patience` how
    many seconds a full disk is waited for. `alarm` is told at once, in one line without secrets,
    of what keeps a run from being recorded or shown, and of what to know of its reuse; in any
    thread. `signers` sign the checkpoints; without them that is done by the key that the variable
    ACL_SIGNING_KEY names, if it does. A run waits `registry_wait` seconds for its turn to enter
    itself in the registry, and goes on without unless `require_registry`.
    """

    clock: Clock = system_clock
    entropy: Entropy = os.urandom
    uniform: Uniform = random.uniform
    sleep: Sleep = asyncio.sleep
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    plugins: Plugins = field(default_factory=Plugins)
    grace_seconds: float = 30.0
    patience: float = 60.0
    alarm: Callable[[str], object] | None = None
    signers: Sequence[Signer] | None = None
    registry_wait: float = LOCK_SECONDS
    require_registry: bool = False

    def keys(self) -> tuple[Signer, ...]:
        """Who signs the checkpoints; KeyRefused for a key that cannot be used."""
        if self.signers is not None:
            return tuple(self.signers)
        return signers_of((), self.environ)

    def registration(
        self, results_dir: Path, directory: Path, ledger_id: bytes, signers: Sequence[Signer]
    ) -> Registration:
        """The entries of a run in the registry of its results directory."""
        registry = Registry(
            results_dir,
            signers=signers,
            wait=self.registry_wait,
            clock=self.clock,
            entropy=self.entropy,
        )
        return Registration(registry, directory, ledger_id)

    def monotonic(self) -> float:
        """The monotonic clock, in seconds."""
        return self.clock()[1] / 1e9


def program() -> dict[str, object]:
    """Which program runs, as event 0 tells it; nothing of it names the machine."""
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "price_table_sha256": price_table_sha256(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
