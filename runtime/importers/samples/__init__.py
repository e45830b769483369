"""A real run of AgentCompass 1.0.1, small enough to travel with the program.

Twelve tasks, three attempts each, three of them with errors, three retries; texts of a stub model
with planted secrets that look real and open nothing.
"""

import tarfile
from pathlib import Path, PurePosixPath

ARCHIVE = Path(__file__).with_name("agentcompass-1.0.1.tar.xz")


def unpack_sample(directory: Path, archive: Path = ARCHIVE, name: str = "k3-avg") -> Path:
    """Write the files of the run `name` into `directory` and return it; no file is replaced."""
    with tarfile.open(archive, "r:xz") as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is None or path.parts[0] != name:
                continue
            target = directory.joinpath(*path.parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(stream.read())
    return directory
