"""`acl witness serve`: sign the checkpoints of others, as long as each extends the one before."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from acl.output import Json, document, line

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)

KEY_VARIABLE = "ACL_WITNESS_KEY"


@app.callback()
def witness() -> None:
    """A witness of logs: it makes a second history, or an older one, be seen."""


@app.command()
def serve(
    log: Annotated[
        list[str],
        typer.Option(metavar="VKEY", help="A log that is signed for, or a file of such keys."),
    ],
    store: Annotated[
        Path, typer.Option(metavar="DIR", help="Where what was seen last is kept; never lose it.")
    ],
    witness_key: Annotated[
        str,
        typer.Option(metavar="FILE", envvar=KEY_VARIABLE, help="From acl keygen --witness."),
    ],
    host: Annotated[str, typer.Option(metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N")] = 8410,
    json: Json = False,
) -> int:
    """Serve C2SP tlog-witness over HTTP until it is stopped by a signal."""
    import time

    from acl.keys import verifiers_of
    from ledger.errors import UsageError
    from ledger.keys import CosigningKey, LogKey
    from runtime.signing import read_signing_key
    from runtime.witness.server import Witness, WitnessServer
    from runtime.witness.store import WitnessStore

    key = read_signing_key(witness_key, CosigningKey)
    logs = [one for one in verifiers_of(log) if isinstance(one, LogKey)]
    if not logs:
        raise UsageError("no key of a log is given", hint="name one with --log")
    judge = Witness(key, logs, WitnessStore(store.absolute()), lambda: int(time.time()))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        server = WitnessServer((host, port), judge)
    except OSError as error:
        raise UsageError(f"cannot serve at {host}:{port}: {error.strerror}") from error
    with server:
        bound = server.server_address
        verifier, url = key.verifier.encode(), f"http://{bound[0]!s}:{bound[1]}"
        if json:
            document({"verifier_key": verifier, "url": url})
        else:
            line(verifier)
            line(f"serving {url}")
        return _until_stopped(server)


def _until_stopped(server: object) -> int:
    """Serve until SIGINT or SIGTERM comes, and return the exit status that it means."""
    import signal
    import threading
    from http.server import HTTPServer

    from acl.output import flush

    assert isinstance(server, HTTPServer)
    stopped: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stopped.append(number)
        # It waits for the loop to end, which runs in this very thread.
        threading.Thread(target=server.shutdown).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    flush()
    server.serve_forever()
    return 128 + stopped[0] if stopped else 0
