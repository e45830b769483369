import asyncio
import logging
import re
import threading
from pathlib import Path

from runtime.redact import Redactor
from runtime.runlog import run_log

LOG = logging.getLogger("runtime.test_runlog")
OTHER = logging.getLogger("somebody.else")


def test_lines_have_time_level_and_name(tmp_path: Path) -> None:
    with run_log(tmp_path / "run.log", Redactor({})):
        LOG.info("hello")
    (line,) = (tmp_path / "run.log").read_text().splitlines()
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(rf"{moment} INFO runtime\.test_runlog: hello", line)


def test_secrets_are_masked_also_in_tracebacks(tmp_path: Path) -> None:
    secret = "correct-horse-battery"
    with run_log(tmp_path / "run.log", Redactor({"API_TOKEN": secret})):
        try:
            raise ValueError(f"with {secret}")
        except ValueError:
            LOG.exception("failed for %s", secret)
    text = (tmp_path / "run.log").read_text()
    assert "ValueError" in text
    assert secret not in text


def test_of_others_only_warnings_are_kept(tmp_path: Path) -> None:
    with run_log(tmp_path / "run.log", Redactor({})):
        OTHER.info("chatter")
        OTHER.warning("careful")
    text = (tmp_path / "run.log").read_text()
    assert "chatter" not in text
    assert "careful" in text


def test_runs_side_by_side_have_their_own_logs(tmp_path: Path) -> None:
    async def one(name: str) -> None:
        with run_log(tmp_path / name, Redactor({})):
            await asyncio.sleep(0)
            LOG.warning("this is %s", name)
            await asyncio.to_thread(LOG.warning, "a thread of %s", name)

    async def both() -> None:
        await asyncio.gather(one("a"), one("b"))

    asyncio.run(both())
    for name, other in (("a", "b"), ("b", "a")):
        text = (tmp_path / name).read_text()
        assert f"this is {name}" in text
        assert f"a thread of {name}" in text
        assert f"this is {other}" not in text


def test_what_is_logged_outside_is_not_in_it(tmp_path: Path) -> None:
    with run_log(tmp_path / "run.log", Redactor({})):
        LOG.warning("inside")
        stranger = threading.Thread(target=LOG.warning, args=("a stranger",))
        stranger.start()
        stranger.join()
    LOG.warning("outside")
    text = (tmp_path / "run.log").read_text()
    assert "inside" in text
    assert "stranger" not in text
    assert "outside" not in text


def test_a_log_that_cannot_be_written_disturbs_nobody(tmp_path: Path) -> None:
    with run_log(tmp_path / "missing" / "run.log", Redactor({})):
        LOG.warning("lost")


def test_errors_of_ours_are_told_at_once_without_secrets_and_tracebacks(tmp_path: Path) -> None:
    secret, told = "correct-horse-battery", list[str]()
    redactor = Redactor({"API_TOKEN": secret})
    with run_log(tmp_path / "missing" / "run.log", redactor, told.append):
        LOG.warning("not that bad")
        OTHER.error("not ours")
        try:
            raise ValueError(f"with {secret}")
        except ValueError:
            LOG.exception("it failed")
    LOG.error("outside")
    assert told == ["it failed: ValueError: with ********"]


def test_an_alarm_that_cannot_be_told_disturbs_nobody(tmp_path: Path) -> None:
    def broken(line: str) -> None:
        raise BrokenPipeError

    with run_log(tmp_path / "run.log", Redactor({}), broken):
        LOG.error("it failed")
    assert "it failed" in (tmp_path / "run.log").read_text()
