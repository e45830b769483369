"""The local environment: commands, files, and nothing left behind."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from runtime.contracts import ExecOutcome, ExecutionPlan, StageError
from runtime.environments.local import LocalEnvironment, LocalSession
from runtime.models import EnvironmentSpec

Given = TypeVar("Given")
PLAN = ExecutionPlan(EnvironmentSpec())


def inside(
    do: Callable[[LocalSession], Awaitable[Given]], spec: EnvironmentSpec | None = None
) -> Given:
    """Open a session, use it, close it."""

    async def main() -> Given:
        session = await LocalEnvironment().open(spec or EnvironmentSpec(), PLAN)
        assert isinstance(session, LocalSession)
        try:
            return await do(session)
        finally:
            await session.close()
            assert not session.directory.exists()

    return asyncio.run(main())


def python(code: str, **options: object) -> Callable[[LocalSession], Awaitable[ExecOutcome]]:
    return lambda session: session.exec([sys.executable, "-c", code], **options)  # type: ignore[arg-type]


def dead(pid: int) -> bool:
    """True if no such process runs; a zombie of somebody else's does not."""
    command = ["ps", "-o", "state=", "-p", str(pid)]
    state = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return state.strip()[:1] in ("", "Z", "X")


def test_a_command_gives_its_output_and_exit_status() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert inside(python(code)) == ExecOutcome(3, "out\n", "err\n")


def test_a_command_reads_its_input() -> None:
    code = "import sys; print(sys.stdin.read().upper())"
    assert inside(python(code, stdin="text")).stdout == "TEXT\n"


def test_a_command_need_not_read_its_input() -> None:
    assert inside(python("pass", stdin="x" * 1_000_000)).exit_code == 0


def test_a_command_without_input_reads_nothing() -> None:
    assert inside(python("import sys; print(repr(sys.stdin.read()))")).stdout == "''\n"


def test_an_unknown_command_exits_as_in_a_shell() -> None:
    outcome = inside(lambda session: session.exec(["no-such-command"]))
    assert outcome.exit_code == 127
    assert "no-such-command" in outcome.stderr


def test_a_command_that_takes_too_long_is_killed_and_keeps_its_output() -> None:
    code = "import time; print('begun', flush=True); time.sleep(600)"
    for seconds in (1.0, 10.0, 60.0):
        outcome = inside(python(code, timeout=seconds))
        assert (outcome.timed_out, outcome.exit_code) == (True, -9)
        if outcome.stdout:  # else the machine had not even begun it
            break
    assert outcome.stdout == "begun\n"


def test_what_a_command_leaves_running_is_ended_with_it() -> None:
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print(p.pid)"
    )
    child = int(inside(python(code)).stdout)
    # It was sent SIGKILL, and dies when the machine gets round to it; alone it would sleep on.
    for _ in range(500):
        if dead(child):
            return
        time.sleep(0.02)
    pytest.fail("the process that was left behind still runs")


def test_a_cancelled_command_is_killed() -> None:
    async def main(session: LocalSession) -> int:
        command = [
            sys.executable,
            "-c",
            "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)",
        ]
        running = asyncio.create_task(session.exec(command))
        while not await session.files() or not await session.read_text("pid"):
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return int(await session.read_text("pid"))

    assert dead(inside(main))


def test_a_flood_of_output_is_cut_with_a_marker() -> None:
    outcome = inside(python("print('x' * 20_000_000)"))
    assert len(outcome.stdout) < 9_000_000
    assert outcome.stdout.endswith("[truncated at 8388608 bytes]\n")


def test_output_that_is_not_utf_8_is_kept_readable() -> None:
    assert inside(python("import os; os.write(1, b'a\\xff')")).stdout == "a\ufffd"


def test_the_callers_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACL_TEST_SECRET", "hunter2hunter2")
    spec = EnvironmentSpec(env_variables={"GIVEN": "yes"})
    code = "import os; print(os.environ.get('ACL_TEST_SECRET'), os.environ['GIVEN'])"
    assert inside(python(code), spec).stdout == "None yes\n"


def test_commands_run_in_a_directory_of_their_own() -> None:
    async def main(session: LocalSession) -> tuple[str, Path]:
        outcome = await session.exec([sys.executable, "-c", "import os; print(os.getcwd())"])
        return outcome.stdout.strip(), session.directory

    where, directory = inside(main)
    assert where == str(directory)
    assert inside(main)[1] != directory


def test_text_is_written_and_read_back_as_it_is() -> None:
    async def main(session: LocalSession) -> tuple[str, bytes]:
        await session.write_text("a/b/text.txt", "é\r\n\0")
        return await session.read_text("a/b/text.txt"), await session.read_bytes("a/b/text.txt")

    assert inside(main) == ("é\r\n\0", "é\r\n\0".encode())


def test_files_are_copied_in_and_out(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"\x00\xff")

    async def main(session: LocalSession) -> None:
        await session.upload(tmp_path / "in", "deep/er/file")
        await session.download("deep/er/file", tmp_path / "out")

    inside(main)
    assert (tmp_path / "out").read_bytes() == b"\x00\xff"


def test_regular_files_are_listed_sorted_without_links(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")

    async def main(session: LocalSession) -> list[str]:
        for name in ("b.txt", "a/z.txt", "a/b/c.txt"):
            await session.write_text(name, "")
        (session.directory / "link").symlink_to("b.txt")
        (session.directory / "folder").symlink_to(tmp_path / "outside")
        os.mkfifo(session.directory / "pipe")
        return await session.files()

    assert inside(main) == ["a/b/c.txt", "a/z.txt", "b.txt"]


@pytest.mark.parametrize("path", ["../x", "/etc/hostname", "a/../../x", "out/x"])
def test_a_path_that_leads_out_is_refused(path: str) -> None:
    async def main(session: LocalSession) -> None:
        (session.directory / "out").symlink_to("/etc")
        for refused in (session.read_text(path), session.write_text(path, "x")):
            with pytest.raises(StageError, match="leads out"):
                await refused

    inside(main)


@pytest.mark.parametrize("part", ["params", "resources", "setup"])
def test_what_it_cannot_give_is_refused_as_a_fault_of_the_house(part: str) -> None:
    spec = EnvironmentSpec.model_validate({part: {"gpus": 8}})
    with pytest.raises(StageError, match=f"no {part}: gpus") as caught:
        asyncio.run(LocalEnvironment().open(spec, PLAN))
    assert caught.value.fatal


def test_closing_twice_does_nothing() -> None:
    async def main(session: LocalSession) -> None:
        await session.close()

    inside(main)


def test_the_size_of_a_file_is_told_without_reading_it() -> None:
    async def do(session: LocalSession) -> int:
        with (session.directory / "sparse").open("wb") as file:
            file.truncate(10**12)
        return await session.size("sparse")

    assert inside(do) == 10**12


def test_a_pipe_has_no_size() -> None:
    async def do(session: LocalSession) -> None:
        os.mkfifo(session.directory / "pipe")
        with pytest.raises(OSError, match="not a regular file"):
            await session.size("pipe")

    inside(do)
