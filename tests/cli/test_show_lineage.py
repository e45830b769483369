"""`acl show --lineage`."""

from pathlib import Path

from tests.cli.conftest import Acl


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


def test_lineage_is_of_a_whole_run(acl: Acl, sealed: Path) -> None:
    said = acl("show", "--lineage", sealed, "right")
    assert said.status == 2
    assert "leave the task out" in said.err
