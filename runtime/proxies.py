"""When a proxy that the environment names may stand between us and a server."""

from typing import Final

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def may_be_proxied(host: str) -> bool:
    """Tell whether `host` may be asked through a proxy: not where it is this machine."""
    return host not in _LOOPBACK
