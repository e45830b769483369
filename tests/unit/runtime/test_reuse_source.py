import hashlib
import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from exporters.details import LAYOUT, export_details
from exporters.identity import Identity
from exporters.live import LiveExport
from exporters.write import write_tree
from ledger import LedgerView, fold
from ledger import events as ev
from ledger.errors import LedgerDamaged, NotALedger, UsageError, VersionUnsupported
from ledger.store import Ledger
from runtime.redact import Redactor
from runtime.reuse_source import ReuseSource, open_source
from tests import events_of as say

NO_SECRETS = Redactor({})


def opened(results: Path, run: Path) -> ReuseSource:
    return open_source(run, results, "explicit", NO_SECRETS)


def begun(run: Path) -> Ledger:
    """A ledger with one finished task and one that waits, open for writing."""
    run.mkdir(parents=True)
    ledger = Ledger.create(run)
    ledger.append(*say.opening("t", "u"))
    ledger.append(*say.whole_task("t", say.attempt("t", answer="x" * 9000)))
    ledger.checkpoint()
    return ledger


def sealed(run: Path) -> Path:
    with begun(run) as ledger:
        ledger.append(*say.whole_task("u", say.attempt("u")), *say.ending())
        ledger.seal()
    return run


def killed(run: Path) -> Path:
    """What a killed writer leaves: the file with its -wal. Copied by another process."""
    with begun(run.with_name("living")):
        subprocess.run(["cp", "-r", run.with_name("living"), run], check=True)
    shutil.rmtree(run.with_name("living"))
    assert (run / "ledger.sqlite-wal").stat().st_size
    return run


def exported(run: Path, source: Path) -> Path:
    with LedgerView.open(source) as view:
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, run, identity=Identity.of(state), layout=LAYOUT)
    return run


def foreign(run: Path) -> Path:
    """A directory of another program: `run_info.json` and records, nothing of ours."""
    (run / "details").mkdir(parents=True)
    info = {
        "schema_version": "agentcompass.run_info.v1",
        "run_id": "old",
        "status": "completed",
        "started_at": "2025-01-01T00:00:00Z",
        "finished_at": "2025-01-01T01:00:00Z",
        "request": {"benchmark": {"id": "bench"}, "model": {"id": "model-1"}},
    }
    (run / "run_info.json").write_text(json.dumps(info))
    attempt = {"status": "completed", "correct": True, "score": 1.0, "final_answer": "42"}
    record = {"task_id": "t", "category": None, "k": 1, "attempts": {"1": attempt}}
    (run / "details" / "t.json").write_text(json.dumps(record))
    return run


def everything(directory: Path) -> dict[str, tuple[Any, ...]]:
    """Every entry below a directory: content, mode, and when it was changed."""
    found = {}
    for path in sorted(directory.rglob("*")):
        known = path.lstat()
        data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (data, stat.S_IMODE(known.st_mode), known.st_mtime_ns)
    return found


@pytest.mark.parametrize("kind", ["sealed", "killed", "exported"])
@pytest.mark.parametrize("mode", [0o755, 0o555])
def test_not_a_byte_of_a_source_changes(tmp_path: Path, kind: str, mode: int) -> None:
    run = tmp_path / "root" / "run"
    if kind == "exported":
        exported(run, sealed(tmp_path / "elsewhere"))
    else:
        {"sealed": sealed, "killed": killed}[kind](run)
    if mode == 0o555:
        for path in run.rglob("*"):
            path.chmod(mode if path.is_dir() else 0o444)
        run.chmod(mode)
    before = everything(run)
    source = opened(tmp_path, run)
    assert source.state.tasks["t"].stage == "done"
    assert source.view.resolve(source.view.event(5).event) is not None
    leaves = source.view.leaves()
    source.close()
    assert len(leaves) == 32 * source.state.size
    assert everything(run) == before
    run.chmod(0o755)


def test_a_source_is_named_by_its_run_and_its_place(tmp_path: Path) -> None:
    run = sealed(tmp_path / "bench" / "model" / "r1")
    source = opened(tmp_path, run)
    source.close()
    assert (source.run_id, source.path, source.mode) == ("r1", "bench/model/r1", "explicit")
    assert (source.running, source.exported_from, source.run_info_sha256) == (None, None, None)


def test_the_digest_of_run_info_is_told(tmp_path: Path) -> None:
    run = sealed(tmp_path / "r1")
    (run / "run_info.json").write_bytes(b"{}")
    source = opened(tmp_path, run)
    source.close()
    assert source.run_info_sha256 == hashlib.sha256(b"{}").hexdigest()


# -- a run that goes on -------------------------------------------------------------------------


def test_a_run_that_goes_on_is_read_as_it_is_now(tmp_path: Path) -> None:
    with begun(tmp_path / "live") as ledger:
        source = opened(tmp_path, tmp_path / "live")
        ledger.append(ev.TaskStarted(task="u"))
        assert source.running is not None
        assert "process" in source.running
        assert source.view.size == source.state.size == ledger.size - 1
        assert source.state.tasks["u"].stage == "pending"
        source.close()


def test_a_reader_of_a_run_that_goes_on_does_not_keep_it_from_ending(tmp_path: Path) -> None:
    with begun(tmp_path / "live") as ledger:
        source = opened(tmp_path, tmp_path / "live")
        ledger.append(ev.RunFinished(status="failed", exit_code=1))
        ledger.seal()
    left = {path.name for path in (tmp_path / "live").iterdir()}
    assert "ledger.sqlite-wal" not in left
    assert source.state.finished is None
    source.close()


def test_what_was_opened_is_gone_when_it_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    exported(tmp_path / "files", sealed(tmp_path / "sealed"))
    with begun(tmp_path / "live"):
        sources = [opened(tmp_path, tmp_path / name) for name in ("live", "files", "sealed")]
        assert list(scratch.iterdir())
        for source in sources:
            source.close()
            source.close()
    assert list(scratch.iterdir()) == []


# -- exported files -----------------------------------------------------------------------------


def test_exported_files_are_a_source_that_tells_its_ledger(tmp_path: Path) -> None:
    original = sealed(tmp_path / "elsewhere")
    with LedgerView.open(original) as view:
        ledger_id, size, root = view.ledger_id.hex(), view.size, view.root().hex()
    source = opened(tmp_path, exported(tmp_path / "root" / "files", original))
    source.close()
    assert source.exported_from == ev.Claim(run_id="r1", ledger_id=ledger_id, size=size, root=root)
    assert source.path == "root/files"
    assert source.state.ledger_id != ledger_id
    assert [task.stage for task in source.state.tasks.values()] == ["done", "done"]


def test_a_directory_of_another_program_tells_no_ledger(tmp_path: Path) -> None:
    source = opened(tmp_path, foreign(tmp_path / "old"))
    source.close()
    assert source.exported_from is None
    assert source.state.imported is not None
    assert source.state.tasks["t"].stage == "done"
    assert source.state.tasks["t"].correct is True


def test_what_an_import_cannot_place_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = foreign(tmp_path / "files")
    (run / "details" / "u.json").write_bytes(b"{")
    opened(tmp_path, run).close()
    assert "files: details/u.json" in caplog.text


def test_exported_files_that_were_changed_are_no_source(tmp_path: Path) -> None:
    run = exported(tmp_path / "files", sealed(tmp_path / "elsewhere"))
    record = run / "details" / "t.json"
    changed = record.read_text().replace('"correct": true', '"correct": false')
    assert changed != record.read_text()
    record.write_text(changed)
    with pytest.raises(UsageError, match=r"not as they were exported: .*details/t\.json") as caught:
        opened(tmp_path, run)
    assert caught.value.exit_status == 2


def test_exported_files_whose_own_words_are_gone_are_no_source(tmp_path: Path) -> None:
    run = exported(tmp_path / "files", sealed(tmp_path / "elsewhere"))
    (run / "run_info.json").write_text("{}")
    with pytest.raises(UsageError, match=r"run_info\.json"):
        opened(tmp_path, run)


def test_an_unfinished_live_export_is_a_source(tmp_path: Path) -> None:
    with begun(tmp_path / "living"), LedgerView.open(tmp_path / "living") as view:
        LiveExport(tmp_path / "files")(fold(view.events()), view)
    source = opened(tmp_path, tmp_path / "files")
    source.close()
    assert source.exported_from is not None
    assert source.state.tasks["t"].stage == "done"


# -- no source ----------------------------------------------------------------------------------


def test_a_directory_without_ledger_and_run_info_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotALedger, match=r"neither a ledger nor a run_info\.json"):
        opened(tmp_path, tmp_path / "empty")


def test_a_ledger_without_a_run_is_no_source(tmp_path: Path) -> None:
    with Ledger.create(tmp_path) as ledger:
        ledger.append(
            ev.RegistryOpened(
                run_id="r", path="p", ledger_id="00", request_digest="00", planned_tasks=1, k=1
            )
        )
    with pytest.raises(NotALedger, match="holds no run"):
        opened(tmp_path.parent, tmp_path)


def test_a_damaged_ledger_is_no_reason_to_read_the_files_beside_it(tmp_path: Path) -> None:
    run = exported(tmp_path / "files", sealed(tmp_path / "elsewhere"))
    shutil.copyfile(tmp_path / "elsewhere" / "ledger.sqlite", run / "ledger.sqlite")
    (run / "ledger.sqlite").chmod(0o644)
    data = bytearray((run / "ledger.sqlite").read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    (run / "ledger.sqlite").write_bytes(data)
    with pytest.raises(LedgerDamaged):
        opened(tmp_path, run)


def test_files_of_a_newer_release_are_refused_by_name(tmp_path: Path) -> None:
    run = exported(tmp_path / "files", sealed(tmp_path / "elsewhere"))
    info = json.loads((run / "run_info.json").read_bytes())
    info["schema_version"] = "agentcompass.run_info.v9"
    (run / "run_info.json").write_text(json.dumps(info))
    with pytest.raises(VersionUnsupported):
        open_source(run, tmp_path, "explicit", NO_SECRETS)
