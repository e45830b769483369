import json
from pathlib import Path

import pytest
import yaml

from ledger import events as ev
from ledger.store import Ledger
from tests.archive_runs import write
from tests.cli.conftest import Acl, flip_a_stored_byte, write_run


def tree(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "results" / "r1")


def test_an_analysis_is_made_and_verified(acl: Acl, run: Path, tmp_path: Path) -> None:
    said = acl("analyze", run, "--out", "analysis", "--json")
    assert said.status == 0
    document = said.document()
    assert document["run_id"] == "r1"
    assert document["files"] == len(tree(tmp_path / "analysis"))
    assert acl("verify", run, "--tree", "analysis").status == 0


def test_its_configuration_makes_the_same_bytes_again(acl: Acl, run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("features: {loop_threshold: 7}\n")
    acl("analyze", run, "--out", "one", "--config", "mine.yaml")
    configuration = tmp_path / "one" / "analysis_config.yaml"
    assert yaml.safe_load(configuration.read_text())["features"]["loop_threshold"] == 7
    assert acl("analyze", run, "--out", "two", "--config", configuration).status == 0
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_it_does_so_after_the_ledger_went_on(acl: Acl, tmp_path: Path) -> None:
    run = write(tmp_path / "run", seal=False)
    acl("analyze", run, "--out", "one")
    with Ledger.open(run) as ledger:
        ledger.append(ev.AnnotationAdded(text="later", author="a"))
    configuration = tmp_path / "one" / "analysis_config.yaml"
    acl("analyze", run, "--out", "two", "--config", configuration)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    acl("analyze", run, "--out", "three")
    assert tree(tmp_path / "one") != tree(tmp_path / "three")


def test_the_configuration_of_another_run_gives_its_options(
    acl: Acl, run: Path, tmp_path: Path
) -> None:
    other = write(tmp_path / "other")
    acl("analyze", other, "--out", "other-analysis")
    acl("analyze", run, "--out", "one")
    acl("analyze", run, "--out", "two", "--config", "other-analysis/analysis_config.yaml")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_an_earlier_analysis_of_the_run_is_replaced_whole(
    acl: Acl, run: Path, tmp_path: Path
) -> None:
    acl("analyze", run, "--out", "analysis")
    before = tree(tmp_path / "analysis")
    (tmp_path / "mine.yaml").write_text("traj_analysis: {enabled: false}\n")
    assert acl("analyze", run, "--out", "analysis", "--config", "mine.yaml").status == 0
    assert (
        "traj_analysis/score_comparison.json" in before.keys() - tree(tmp_path / "analysis").keys()
    )
    assert acl("analyze", run, "--out", "analysis").status == 0
    assert tree(tmp_path / "analysis") == before


def test_what_else_stands_there_is_refused(acl: Acl, run: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other")
    acl("analyze", other, "--out", "of-another")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("x")
    acl("analyze", run, "--out", "touched")
    (tmp_path / "touched" / "notes.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    (tmp_path / "file").write_text("x")
    before = tree(tmp_path)
    for name in ("of-another", "full", "touched", "link", "file"):
        assert acl("analyze", run, "--out", name).status == 5, name
    for name in ("full", "touched", "link", "file"):
        assert acl("analyze", run, "--out", name, "--force").status == 5, name
    assert {path: data for path, data in tree(tmp_path).items() if path in before} == before
    assert acl("analyze", run, "--out", "of-another", "--force").status == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".acl-")]


def test_wrong_configurations_are_wrong_use(acl: Acl, run: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("features: {loop_threshold: many}\n")
    for name in ("wrong.yaml", "missing.yaml"):
        said = acl("analyze", run, "--out", "analysis", "--config", name)
        assert said.status == 2
        assert not (tmp_path / "analysis").exists()


def test_a_configuration_of_events_that_are_not_there_is_refused(
    acl: Acl, run: Path, tmp_path: Path
) -> None:
    acl("analyze", run, "--out", "one")
    told = yaml.safe_load((tmp_path / "one" / "analysis_config.yaml").read_text())
    told["acl"]["size"] += 1
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(told))
    said = acl("analyze", run, "--out", "two", "--config", "mine.yaml")
    assert said.status == 2
    assert "does not hold" in said.err


def test_a_damaged_ledger_is_not_analysed(acl: Acl, run: Path, tmp_path: Path) -> None:
    flip_a_stored_byte(run / "ledger.sqlite")
    assert acl("analyze", run, "--out", "analysis").status == 4
    assert not (tmp_path / "analysis").exists()


def test_peers_grade_the_tasks_and_are_recorded(acl: Acl, tmp_path: Path) -> None:
    runs = []
    for number, harness in enumerate(
        ("calculator", "calculator", "noop", "noop", "calculator", "noop")
    ):
        arguments = ("--benchmark", "acl-arith", "--harness", harness, "--limit", "3")
        runs.append(acl("run", *arguments, "--run-id", f"r{number}", "--json").document()["path"])
    (tmp_path / "results" / "bad").mkdir()
    (tmp_path / "results" / "bad" / "ledger.sqlite").write_text("no ledger")
    said = acl("analyze", runs[0], "--out", "one", "--peers", "results")
    assert said.status == 0
    assert "bad is left out" in said.err
    told = yaml.safe_load((tmp_path / "one" / "analysis_config.yaml").read_text())
    assert [peer["run_id"] for peer in told["empirical_source"]["runs"]] == [
        *("r1", "r2", "r3", "r4", "r5")
    ]
    lines = (tmp_path / "one" / "instances.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    declared = {row["difficulty_source"] for row in rows}
    assert declared <= {"declared", "structural", "empirical"}
    # What was recorded is enough: the peers are not needed again.
    acl("analyze", runs[0], "--out", "two", "--config", "one/analysis_config.yaml")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert acl("analyze", runs[0], "--out", "x", "--peers", "nowhere").status == 2
