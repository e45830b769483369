"""`acl show --lineage`."""

import json
from pathlib import Path

from ledger import LedgerView
from tests.cli.conftest import Acl
from tests.importer_runs import do_import, sample


def run(acl: Acl, run_id: str, *more: object) -> str:
    said = acl(
        "run", "--benchmark", "acl-arith", "--harness", "calculator", "--run-id", run_id, *more
    )
    assert said.status == 0, said.err
    return f"results/acl-arith/none/{run_id}"


def test_the_chain_of_reuse_is_printed_from_the_run_to_the_makers(acl: Acl) -> None:
    run(acl, "first", "--limit", 2)
    run(acl, "second", "--limit", 3, "--reuse-run-id", "first")
    third = run(acl, "third", "--limit", 4, "--reuse-run-id", "second")
    document = acl("show", "--lineage", third, "--json").document()
    (second,) = document["sources"]
    (first,) = second["sources"]
    assert (document["run_id"], document["tasks"], document["reused"]) == ("third", 4, 3)
    assert (second["run_id"], second["tasks"]) == ("second", 3)
    assert (first["run_id"], first["tasks"], first["sources"]) == ("first", 2, [])
    text = acl("show", "--lineage", third).out
    rows = [line.strip() for line in text.splitlines()]
    assert rows.index("from run second: 3 tasks") < rows.index("from run first: 2 tasks")
    for source in (first, second):
        where = f"ledger {source['ledger_id']}, {source['size']} events, root {source['root']}"
        assert where in rows


def test_a_run_without_reuse_says_so(acl: Acl, sealed: Path) -> None:
    said = acl("show", "--lineage", sealed)
    assert said.status == 0
    assert "every task ran in this run itself" in said.out


def test_an_import_tells_what_its_source_said_it_reused(acl: Acl, tmp_path: Path) -> None:
    said = acl("show", "--lineage", do_import(sample(tmp_path, "k3-reuse"), tmp_path / "r").path)
    assert "its source says that it reused run k3-avg; for which tasks is not known" in said.out
    assert "ran in this run itself" not in said.out


def test_exported_files_are_named_as_what_they_are(acl: Acl, tmp_path: Path) -> None:
    path = tmp_path / run(acl, "first", "--limit", 2)
    elsewhere = path.rename(tmp_path / "elsewhere")
    assert acl("export", elsewhere, path).status == 0
    second = run(acl, "second", "--limit", 2, "--reuse-run-id", "first")
    text = acl("show", "--lineage", second).out
    assert "from run first, imported from exported files: 2 tasks" in text
    assert "ledger of that import, which was not kept: " in text
    with LedgerView.open(elsewhere) as view:
        assert f"    ledger {view.ledger_id.hex()}, {view.size} events" in text
        known = view.ledger_id.hex()
    assert "said by the import to be from run first: 2 tasks" in text
    summary = (tmp_path / second / "summary.md").read_text()
    told = f"from run first (ledger `{known}`"
    assert told in summary
    records = [json.loads(file.read_text()) for file in (tmp_path / second / "details").iterdir()]
    assert [record["acl"]["reused_from"]["ledger_id"] for record in records] == [known] * 2


def test_changed_exported_files_are_refused_by_name(acl: Acl, tmp_path: Path) -> None:
    path = tmp_path / run(acl, "first", "--limit", 2)
    elsewhere = path.rename(tmp_path / "elsewhere")
    assert acl("export", elsewhere, path).status == 0
    record = next((path / "details").iterdir())
    record.write_text(record.read_text().replace('"correct": true', '"correct": false'))
    more = ("--benchmark", "acl-arith", "--harness", "calculator", "--reuse-run-id", "first")
    said = acl("run", *more, "--run-id", "second")
    assert said.status == 2
    assert f"details/{record.name}" in said.err
    assert not (path.parent / "second").exists()


def test_lineage_is_of_a_whole_run(acl: Acl, sealed: Path) -> None:
    said = acl("show", "--lineage", sealed, "right")
    assert said.status == 2
    assert "leave the task out" in said.err
