"""Artifacts: files that an attempt leaves in its environment, within the limits of the request."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from ledger.canonical import Binary
from ledger.events import Artifact, ArtifactsCollected
from runtime.contracts import Session
from runtime.models import ArtifactLimits
from runtime.redact import Redactor

_LEAST_DIGESTED = 1024
"""Bytes; the digest of something shorter could be guessed."""


@dataclass(slots=True)
class Collection:
    """What was taken so far; `truncated` says that the limits left something behind."""

    artifacts: list[Artifact] = field(default_factory=list)
    contents: dict[str, str | Binary] = field(default_factory=dict)
    truncated: bool = False
    redactions: int = 0

    def event(self, task: str, attempt: int) -> ArtifactsCollected | None:
        """The event of this collection; None if there was nothing."""
        if not self.artifacts and not self.truncated:
            return None
        return ArtifactsCollected(
            task=task,
            attempt=attempt,
            artifacts=tuple(self.artifacts),
            contents=dict(self.contents),
            truncated=self.truncated,
            redactions=self.redactions or None,
        )

    def add(self, path: str, data: bytes, redactor: Redactor) -> None:
        """Take a file: as text without its secrets if it is UTF-8, else as it is.

        Size and digest are those of what is kept.
        """
        content: str | Binary
        try:
            content, count = redactor.redact_text(data.decode("utf-8"))
            if count:
                data = content.encode("utf-8", "surrogatepass")
                self.redactions += count
        except UnicodeDecodeError:
            content = Binary(data)
        digest = hashlib.sha256(data).hexdigest() if len(data) >= _LEAST_DIGESTED else None
        self.artifacts.append(Artifact(path=path, bytes=len(data), sha256=digest))
        self.contents[path] = content


async def collect(
    session: Session,
    paths: Iterable[str],
    limits: ArtifactLimits,
    redactor: Redactor,
    into: Collection,
) -> None:
    """Take the files at `paths` in order, as long as the limits hold; each path once.

    What is larger than the room that is left is not even read.
    """
    room = limits.max_bytes
    for path in dict.fromkeys(map(str, paths)):
        if len(into.artifacts) >= limits.max_files:
            into.truncated = True
            return
        if await session.size(path) > room:
            into.truncated = True
            continue
        data = await session.read_bytes(path)
        if len(data) > room:  # it has grown
            into.truncated = True
            continue
        room -= len(data)
        into.add(path, data, redactor)
