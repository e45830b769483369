"""`acl audit`: the page, its document, and the exit status."""

import json
import shutil
from pathlib import Path

import pytest

from ledger import LedgerView
from ledger.opening import LEDGER_NAME
from ledger.store import Ledger
from tests.cli.conftest import Acl

SUITE = {
    "name": "two",
    "requests": [
        {
            "name": name,
            "benchmark": {"id": "acl-arith", "params": {"limit": 2}},
            "harness": {"id": "calculator"},
            "model": {"id": name},
        }
        for name in ("one", "two")
    ],
}
RUN = ("run", "--benchmark", "acl-arith", "--harness", "calculator", "--limit", "2", "--json")


def run(acl: Acl, run_id: str, *more: str) -> Path:
    said = acl(*RUN, "--model", "m", "--run-id", run_id, *more)
    assert said.status == 0, said.err
    return Path(said.document()["path"])


def findings(acl: Acl, *more: object) -> tuple[dict[str, list[str]], int]:
    said = acl("audit", "results", *more, "--json")
    page = said.document()
    assert page["exit"] == said.status
    problems = {run["path"]: [one["code"] for one in run["problems"]] for run in page["runs"]}
    problems["registry"] = [one["code"] for one in page["registry"]["problems"]]
    return {path: codes for path, codes in problems.items() if codes}, said.status


def test_an_honest_directory_has_no_findings(acl: Acl) -> None:
    run(acl, "first")
    run(acl, "second", "--reuse-run-id", "first")
    assert findings(acl) == ({}, 0)
    page = acl("audit", "results", "--json").document()
    first, second = page["runs"]
    assert {
        "path": "acl-arith/m/first",
        "kind": "sealed",
        "status": "completed",
        "registered": "yes",
        "export": "matches",
    }.items() <= first.items()
    assert [(one["run_id"], one["tasks"]) for one in second["sources"]] == [("first", 2)]
    assert second["attempts"]["reused"] == 2
    assert second["attempts"]["made"] == 0
    assert page["registry"]["entries"] == 4


def test_the_page_fits_a_hundred_columns(acl: Acl) -> None:
    run(acl, "first")
    gone = run(acl, "second")
    shutil.rmtree(gone)
    said = acl("audit", "results")
    assert said.status == 1
    assert said.err == ""
    assert max(map(len, said.out.splitlines())) <= 100
    for words in (
        "2 runs: 1 sealed, 1 missing",
        "failed 2: its ledger is gone; it was sealed [missing]",
        "attempts 2 of 2 (100%)",
        "correct.accuracy=1.0000",
    ):
        assert words in said.out


def test_a_signature_whose_key_was_not_given_is_unproven_on_the_page(
    acl: Acl, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = acl("keygen", "--name", "lab.example", "--out", "key", "--json").document()
    monkeypatch.setenv("ACL_SIGNING_KEY", "key")
    run(acl, "first")
    for given, told in (((), "unproven"), (("--key", verifier["verifier_key"]), "yes")):
        lines = acl("audit", "results", *given).out.splitlines()
        titles = next(n for n, line in enumerate(lines) if line.startswith("RUN  STATE"))
        row = dict(zip(lines[titles].split(), lines[titles + 1].split(), strict=True))
        assert (row["PATH"], row["SIGNED"]) == ("acl-arith/m/first", told)


def test_each_run_of_a_suite_is_entered(acl: Acl, tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    assert acl("run", "-f", "suite.json", "--json").status == 0
    runs = acl("audit", "results", "--json").document()["runs"]
    assert sorted(one["path"].split("/")[1] for one in runs) == ["one", "two"]
    assert findings(acl) == ({}, 0)


def test_an_import_is_entered_once(acl: Acl) -> None:
    directory = run(acl, "first")
    exported = Path("exported")
    assert acl("export", "-f", "details", directory, exported).status == 0
    for _ in range(2):
        said = acl("import", exported, "--results-dir", "imports", "--json")
        assert said.err == ""
    page = acl("audit", "imports", "--json").document()
    assert page["exit"] == 0
    assert page["registry"]["entries"] == 2
    (imported,) = page["runs"]
    assert (imported["imported"], imported["registered"], imported["problems"]) == (True, "yes", [])


def test_a_dry_import_enters_nothing(acl: Acl) -> None:
    exported = Path("exported")
    assert acl("export", "-f", "details", run(acl, "first"), exported).status == 0
    acl("import", exported, "--results-dir", "imports", "--dry-run")
    assert not Path("imports/registry.sqlite").exists()


def test_a_file_of_an_export_that_was_changed_is_told(acl: Acl) -> None:
    (run(acl, "first") / "run_info.json").write_text("{}")
    assert findings(acl) == ({"acl-arith/m/first": ["tree_differs"]}, 4)


def test_without_an_export_there_is_none_to_differ(acl: Acl) -> None:
    run(acl, "first", "--no-export")
    (only,) = acl("audit", "results", "--json").document()["runs"]
    assert (only["export"], only["problems"]) == ("none", [])


def test_what_is_no_ledger_is_a_line_of_its_own(acl: Acl) -> None:
    directory = run(acl, "first")
    for name, data in {"nonsense": b"no database", "nothing": b""}.items():
        place = directory.with_name(name)
        place.mkdir()
        (place / LEDGER_NAME).write_bytes(data)
    link = directory.with_name("link")
    link.mkdir()
    (link / LEDGER_NAME).symlink_to(directory.absolute() / LEDGER_NAME)
    found, status = findings(acl)
    assert set(found) == {"acl-arith/m/nonsense", "acl-arith/m/nothing", "acl-arith/m/link"}
    assert status == 1


def test_the_runs_of_two_directories_are_apart(acl: Acl) -> None:
    run(acl, "first")
    run(acl, "elsewhere", "--results-dir", "other")
    (only,) = acl("audit", "results", "--json").document()["runs"]
    assert only["run_id"] == "first"


def test_sealing_an_interrupted_run_is_entered(acl: Acl) -> None:
    run(acl, "first")
    directory = run(acl, "second")
    (directory / LEDGER_NAME).unlink()
    for left in directory.glob("ledger.*"):
        left.unlink()
    with LedgerView.open("results/acl-arith/m/first") as view:
        created = view.event(0).event
    with Ledger.create(directory) as ledger:
        ledger.append(created)
    said = acl("seal", directory)
    assert (said.status, said.err) == (0, "")
    entries = acl("log", "results/registry.sqlite", "--json").lines()
    assert [one["type"] for one in entries[-2:]] == ["registry.opened", "registry.sealed"]


def test_a_registry_can_be_required(acl: Acl) -> None:
    Path("results").mkdir()
    Path("results/registry.sqlite").write_bytes(b"not a database")
    said = acl(*RUN, "--model", "m", "--require-registry")
    assert said.status == 2
    document = said.document()
    assert document["status"] == "failed"
    assert "not in the registry" in document["error"]["message"]
    with LedgerView.open(document["ledger"]) as view:
        assert "attempt.started" not in {recorded.type for recorded in view.events()}


def test_a_run_that_is_not_entered_says_so_at_once(acl: Acl) -> None:
    Path("results").mkdir()
    Path("results/registry.sqlite").write_bytes(b"not a database")
    said = acl(*RUN, "--model", "m")
    assert said.status == 0
    assert "the run is not in the registry" in said.err
    found, status = findings(acl)
    assert "registry" in found
    assert status == 4


def test_a_checkpoint_of_the_registry_can_be_brought(acl: Acl, tmp_path: Path) -> None:
    run(acl, "first")
    kept = tmp_path / "kept"
    shutil.copy("results/registry.checkpoint.unsigned", kept)
    assert findings(acl, "--checkpoint", kept) == ({}, 0)
    for path in Path("results").glob("registry.*"):
        path.unlink()
    run(acl, "second")
    found, status = findings(acl, "--checkpoint", kept)
    assert found["registry"]
    assert status == 4


@pytest.mark.parametrize("arguments", [("nowhere",), ("--checkpoint", "nowhere")])
def test_what_is_not_there_is_wrong_use(acl: Acl, arguments: tuple[str, ...]) -> None:
    Path("results").mkdir()
    assert acl("audit", *arguments).status == 2


def test_an_empty_directory_has_no_runs(acl: Acl) -> None:
    Path("results").mkdir()
    said = acl("audit")
    assert said.status == 1
    assert "Registry: none" in said.out
    assert "0 runs: none" in said.out
