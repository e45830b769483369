"""The environment `local`: processes of this machine in a temporary directory of their own.

It separates attempts from each other, not an attempt from the machine: a command can read what the
user can read.  Code that is not trusted to that extent belongs in `runtime.sandbox`.
"""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, ClassVar

from ledger.closing import discard
from runtime.contracts import BaseEnvironment, ExecOutcome, ExecutionPlan, Session, StageError
from runtime.models import EnvironmentSpec

_OUTPUT_BYTES = 8 << 20  # kept of each stream of a command
_NOT_FOUND = 127  # as a shell says it
_TRUNCATED = f"\n... [truncated at {_OUTPUT_BYTES} bytes]\n"


class LocalEnvironment(BaseEnvironment):
    """Opens a new directory for each try; its parts of a spec are `env_variables` only."""

    id: ClassVar[str] = "local"

    async def open(self, spec: EnvironmentSpec, plan: ExecutionPlan) -> Session:
        """Make the directory; StageError for what this environment cannot give."""
        for name in ("params", "resources", "setup"):
            if getattr(spec, name):
                asked = ", ".join(sorted(getattr(spec, name)))
                message = f"environment local has no {name}: {asked}"
                raise StageError("environment_unsupported", message, fatal=True)
        try:
            directory = await asyncio.to_thread(tempfile.mkdtemp, prefix="acl-local-")
        except OSError as error:
            message = f"no temporary directory: {error.strerror}"
            raise StageError("environment_start_failed", message, fatal=True) from error
        return LocalSession(Path(directory), spec.env_variables)


class LocalSession:
    """An open directory and the processes started in it.

    Paths are relative to the directory; one that leads out of it, by `..`, as an absolute path or
    through a link, is refused with StageError.
    """

    def __init__(self, directory: Path, env_variables: dict[str, str]) -> None:
        self.directory = directory.resolve()
        # Not the caller's environment: it holds keys that are none of the agent's business.
        self._env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.directory),
            "TMPDIR": str(self.directory),
            "LANG": "C.UTF-8",
            **env_variables,
        }
        self._groups: set[int] = set()

    async def exec(
        self, command: Sequence[str], *, timeout: float | None = None, stdin: str | None = None
    ) -> ExecOutcome:
        """Run a command in the directory; all it started is ended when it ends or times out."""
        # Files, not pipes: a pipe is only at its end when the last process that has it is gone.
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write((stdin or "").encode())
            given.seek(0)
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=given,
                    stdout=out,
                    stderr=err,
                    cwd=self.directory,
                    env=self._env,
                    start_new_session=True,
                )
            except (FileNotFoundError, PermissionError) as error:
                return ExecOutcome(_NOT_FOUND, "", f"{command[0]}: {error.strerror}\n")
            timed_out = await self._wait(process, timeout)
            return ExecOutcome(await process.wait(), _kept(out), _kept(err), timed_out)

    async def _wait(self, process: asyncio.subprocess.Process, timeout: float | None) -> bool:
        """Wait for the end of a command and end what it left behind; True if it took too long."""
        self._groups.add(process.pid)
        try:
            async with asyncio.timeout(timeout):
                await process.wait()
        except TimeoutError:
            return True
        finally:  # also after cancellation
            self._end(process.pid)
            await process.wait()  # else it could still write where the directory is removed
        return False

    def _end(self, group: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        self._groups.discard(group)

    async def upload(self, source: Path, target: str) -> None:
        """Copy a file into the directory."""
        path = self._inside(target)
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(shutil.copyfile, source, path)

    async def download(self, source: str, target: Path) -> None:
        """Copy a file out of the directory."""
        await asyncio.to_thread(shutil.copyfile, self._inside(source), target)

    async def read_text(self, path: str) -> str:
        """Read a UTF-8 file."""
        return (await self.read_bytes(path)).decode()

    async def size(self, path: str) -> int:
        """Bytes of a regular file; OSError for anything else, which might never end."""
        found = await asyncio.to_thread(self._inside(path).stat)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return found.st_size

    async def read_bytes(self, path: str) -> bytes:
        """Read a file."""
        return await asyncio.to_thread(self._inside(path).read_bytes)

    async def write_text(self, path: str, text: str) -> None:
        """Write a UTF-8 file, making its directories."""
        target = self._inside(path)
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(target.write_bytes, text.encode())

    async def files(self) -> list[str]:
        """Relative paths of the regular files, sorted; links are left out and not followed."""
        return await asyncio.to_thread(self._files)

    def _files(self) -> list[str]:
        found = []
        for folder, _, names in os.walk(self.directory):
            for name in names:
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    found.append(path.relative_to(self.directory).as_posix())
        return sorted(found)

    async def close(self) -> None:
        """End the processes and remove the directory; the second time does nothing."""
        for group in tuple(self._groups):
            self._end(group)
        await asyncio.to_thread(discard, self.directory)

    def _inside(self, path: str) -> Path:
        target = (self.directory / path).resolve()
        if not target.is_relative_to(self.directory):
            raise StageError("environment_path_refused", f"{path!r} leads out of the environment")
        return target


def _kept(file: IO[bytes]) -> str:
    """The beginning of an output, with a marker if that is not all."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    text = file.read(_OUTPUT_BYTES).decode(errors="replace")
    return text + _TRUNCATED if size > _OUTPUT_BYTES else text
