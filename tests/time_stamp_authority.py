"""A time stamp authority for tests, made with `openssl ts`."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

OPENSSL = shutil.which("openssl")

# `certs = chain` in the section would order a set as strict DER forbids; readers refuse the reply.
_CONFIGURATION = """
[tsa_ext]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[tsa]
default_tsa = one
[one]
serial = {directory}/serial
crypto_device = builtin
signer_cert = {directory}/tsa.pem
signer_key = {directory}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
ess_cert_id_alg = sha256
"""


def openssl(directory: Path, *arguments: str) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *arguments], cwd=directory, check=True, capture_output=True)


class Authority:
    """Certificates in a directory: `root.pem` is what clients trust."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        (directory / "tsa.cnf").write_text(_CONFIGURATION.format(directory=directory))
        (directory / "serial").write_text("01\n")
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl(
            directory,
            *("req", "-x509", *new, "-keyout", "root.key", "-out", "root.pem", "-days", "3650"),
            *("-subj", "/CN=Test root", "-addext", "keyUsage=critical,keyCertSign"),
        )
        openssl(
            directory,
            *("req", *new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=Test authority"),
        )
        openssl(
            directory,
            *("x509", "-req", "-in", "tsa.csr", "-CA", "root.pem", "-CAkey", "root.key"),
            *("-CAcreateserial", "-out", "tsa.pem", "-days", "3650"),
            *("-extfile", "tsa.cnf", "-extensions", "tsa_ext"),
        )

    @property
    def root(self) -> Path:
        return self.directory / "root.pem"

    def reply(self, query: bytes) -> bytes:
        (self.directory / "query").write_bytes(query)
        openssl(
            self.directory,
            *("ts", "-reply", "-config", "tsa.cnf", "-section", "one"),
            *("-queryfile", "query", "-out", "reply"),
        )
        return (self.directory / "reply").read_bytes()

    @contextmanager
    def served(self, *, status: int = 200, reply: bytes | None = None) -> Iterator[str]:
        """The URL at which it answers: by `openssl ts`, or always with `reply`."""
        authority = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                query = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/timestamp-query"
                body = authority.reply(query) if reply is None else reply
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
