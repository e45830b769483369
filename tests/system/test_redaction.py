"""No secret reaches anything that a run leaves, and what only looks like one does."""

import base64
import json
import shutil
import sqlite3
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest
import zstandard

from exporters.details import LAYOUT, export_details
from exporters.identity import Identity
from exporters.write import write_tree
from ledger import LedgerView, fold
from runtime.redact import Redactor
from runtime.results import RequestOutcome
from tests.ledger_checks import check_ledger
from tests.system.secret_run import MEASURES, ORDINARY, Planter, planted_run


class Through(Redactor):
    """Lets everything through: so it is seen that every secret gets as far as to the gate."""

    def __init__(self) -> None:
        super().__init__({})

    def redact(self, value: Any) -> tuple[Any, int]:
        return value, 0

    def redact_text(self, text: str) -> tuple[str, int]:
        return text, 0


class Left:
    """What a run left: its directory, a copy that another process took meanwhile, an export."""

    def __init__(self, base: Path, *, redactor: Redactor | None = None) -> None:
        self.results = base / "results"
        self.secret = Planter()
        self.copy = base / "copy"
        self.export = base / "export"
        home = self.results / "listed" / "none" / "planted"

        def meanwhile() -> None:
            # By another process: this one must not open the file that it writes.
            if not self.copy.exists():
                subprocess.run(["cp", "-r", home, self.copy], check=True)

        self.outcome: RequestOutcome = planted_run(
            self.results, self.secret, redactor=redactor, meanwhile=meanwhile
        )
        assert self.outcome.path == home
        self.home = home
        with LedgerView.open(home) as view:
            self.state = fold(view.events())
            files = export_details(self.state, view)
            write_tree(files, self.export, identity=Identity.of(self.state), layout=LAYOUT)

    def everything(self) -> Iterator[tuple[str, bytes]]:
        """Every byte that was left, as it is stored and as it is meant."""
        for place in (self.home, self.copy, self.export):
            for path in sorted(place.rglob("*")):
                if path.is_file():
                    yield str(path.relative_to(place.parent)), path.read_bytes()
                yield "a name", path.name.encode()
        yield "the ledger, unpacked", unpacked(self.home / "ledger.sqlite")
        yield "the copy of the ledger, unpacked", unpacked(self.copy / "ledger.sqlite")
        # Its name is that of the request file, as the user gave it.
        yield "the outcome", repr(replace(self.outcome, name="")).encode()


def unpacked(ledger: Path) -> bytes:
    """The plain bytes of everything in a ledger, with its -wal if there is one."""
    with TemporaryDirectory() as scratch:
        # SQLite folds a -wal when the last reader leaves.
        copied = [shutil.copy(path, scratch) for path in ledger.parent.glob(f"{ledger.name}*")]
        found = list(_unpacked(Path(min(copied))))
    return b"\n".join(found)


def _unpacked(ledger: Path) -> Iterator[bytes]:
    with sqlite3.connect(ledger) as connection:
        for table in ("segment", "blobsegment"):
            frames: defaultdict[int, bytes] = defaultdict(bytes)
            for number, data in connection.execute(f"SELECT id, data FROM {table} ORDER BY id"):
                frames[number >> 20] += data
            for frame in frames.values():
                yield zstandard.ZstdDecompressor().decompressobj().decompress(frame)
        for (note,) in connection.execute("SELECT note FROM checkpoint"):
            yield note.encode()
    connection.close()


def spellings(secret: str) -> set[bytes]:
    plain = secret.encode()
    return {plain, base64.b64encode(plain), quote(secret).encode(), plain.hex().encode()}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return Left(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def ungated(tmp_path_factory: pytest.TempPathFactory) -> Left:
    return Left(tmp_path_factory.mktemp("ungated"), redactor=Through())


def test_every_secret_was_planted_where_it_would_be_stored(ungated: Left) -> None:
    haystack = b"\n".join(data for _, data in ungated.everything())
    missing = [
        place
        for place, secret in ungated.secret.planted.items()
        if not any(spelling in haystack for spelling in spellings(secret))
    ]
    assert missing == []
    assert len(ungated.secret.planted) >= 50


def test_no_secret_is_in_anything_that_the_run_left(left: Left, ungated: Left) -> None:
    assert left.secret.planted == ungated.secret.planted
    found = [
        (place, where)
        for where, data in left.everything()
        for place, secret in left.secret.planted.items()
        if any(spelling in data for spelling in spellings(secret))
    ]
    assert found == []


def test_everything_that_can_be_left_was_looked_at(left: Left) -> None:
    home = {path.name for path in left.home.iterdir()}
    assert home >= {
        *("ledger.sqlite", "ledger.lock", "ledger.checkpoint.unsigned", "MANIFEST.json"),
        *("run_info.json", "params.json", "summary.md", ".summary_counts.json", "details"),
        *("retry_details", "analysis_summary.md", "analysis_summary.json"),
        *("run.log", "progress.json", "progress.jsonl"),
    }
    copy = {path.name for path in left.copy.iterdir()}
    assert copy >= {"ledger.sqlite", "ledger.sqlite-wal", "run.log", "progress.jsonl"}
    assert (left.copy / "ledger.sqlite-wal").stat().st_size > 10_000
    assert list((left.home / "details").iterdir())
    assert list((left.home / "retry_details").iterdir())
    assert b"connecting with password=" in (left.home / "run.log").read_bytes()


def record(left: Left, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((left.home / "details" / f"{name}.json").read_bytes())
    return found


def test_ordinary_fields_with_similar_names_stay(left: Left) -> None:
    attempt = record(left, "whole")["attempts"]["1"]
    said = attempt["final_answer"]
    assert {name: said[name] for name in ORDINARY} == ORDINARY
    assert attempt["extra"]["kept"] == ORDINARY
    assert attempt["ground_truth"]["answer_key"] == "C"
    info = json.loads((left.home / "run_info.json").read_bytes())
    params = info["request"]["benchmark"]["params"]
    assert {name: params[name] for name in ORDINARY} == ORDINARY
    plan = info["resolved_execution_plans"]["whole"]["attempts"]["1"]
    assert plan["benchmark"]["primary_key"] == "id"
    assert left.state.tasks["whole"].metadata["stop_token"] == "</s>"


def test_numbers_of_results_stay_whatever_they_are_called(left: Left) -> None:
    attempt = record(left, "whole")["attempts"]["1"]
    assert attempt["metrics"] == MEASURES
    assert (attempt["correct"], attempt["score"]) == (True, 1.0)


def test_what_stands_around_a_secret_stays(left: Left) -> None:
    attempt = record(left, "whole")["attempts"]["1"]
    trajectory = attempt["trajectory"]
    arguments = json.loads(trajectory[1]["tool_calls"][0]["function"]["arguments"])
    assert arguments["url"] == "https://********@h/path?q=1"
    assert arguments["body"] == {"clientSecret": "********", "max_tokens": 5}
    assert json.loads(arguments["nested"]) == {"api_key": "********"}
    assert trajectory[2]["content"].startswith("HTTP/1.1 200\nSet-Cookie: ")
    assert attempt["extra"]["stdout"] == "password: ********"
    (file,) = attempt["extra"]["collected_artifacts"]["files"]
    assert file["content"] == "AWS_SECRET_ACCESS_KEY=********\nMAX_TOKENS=9\n"
    assert file["bytes"] == len(file["content"])
    error = record(left, "_error_raises")["attempts"]["1"]["error"]
    assert error == "RuntimeError: login failed: password=********"


def test_how_many_were_replaced_is_told(left: Left) -> None:
    with LedgerView.open(left.home) as view:
        told = {r.type: r.event.redactions for r in view.events() if r.event and r.event.redactions}
    assert told.keys() >= {
        *("run.created", "tasks.selected", "plan.resolved", "call.started", "call.finished"),
        *("tool.finished", "result.recorded", "artifacts.collected", "evaluation.finished"),
        *("analysis.finished", "attempt.retried", "attempt.finished", "metrics.computed"),
    }
    assert left.state.redactions > len(left.secret.planted)
    shown = (left.home / "summary.md").read_text()
    assert f"- Redactions: {left.state.redactions}" in shown


def test_copies_in_a_run_that_reuses_it_hold_no_secret_either(left: Left) -> None:
    outcome = planted_run(
        left.results, left.secret, runtime={"reuse_run_id": "planted"}, run_id="second"
    )
    assert outcome.path is not None
    with LedgerView.open(outcome.path) as view:
        state = fold(view.events())
    assert state.counts().reused == 2
    check_ledger(outcome.path)
    stored = [path.read_bytes() for path in outcome.path.rglob("*") if path.is_file()]
    haystack = b"\n".join([*stored, unpacked(outcome.path / "ledger.sqlite")])
    assert [p for p, secret in left.secret.planted.items() if secret.encode() in haystack] == []
