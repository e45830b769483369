from pathlib import Path

import pytest

from runtime.importers.agentcompass import AgentCompass
from runtime.importers.details import Details
from runtime.importers.source import Source
from runtime.redact import Redactor
from runtime.reuse_source import open_source
from tests.details_runs import do_import, export, round_trip, write_json
from tests.importer_runs import sample

SAMPLES = ["k3-avg", "k3-fatal", "k3-reuse", "k3-sigkill"]
OURS = {"schema": "acl.export.v1"}


def takers(directory: Path) -> list[str]:
    source = Source.open(directory)
    return [one.name for one in (AgentCompass(), Details()) if one.recognises(source)]


@pytest.mark.parametrize("name", SAMPLES)
def test_an_export_of_an_imported_run_is_imported_without_naming_its_format(
    tmp_path: Path, name: str
) -> None:
    foreign = do_import(sample(tmp_path, name), tmp_path / "foreign")
    report, comparison = round_trip(foreign.path, tmp_path)
    assert report.format == "details"
    assert (report.damaged, report.records_in) == (False, report.records_out)
    assert comparison.equal


def test_an_export_of_an_imported_run_is_a_source_of_reuse(tmp_path: Path) -> None:
    foreign = do_import(sample(tmp_path, "k3-avg"), tmp_path / "foreign")
    told = export(foreign.path, tmp_path / "results" / "files")
    source = open_source(
        tmp_path / "results" / "files", tmp_path / "results", "explicit", Redactor({})
    )
    source.close()
    assert source.exported_from is not None
    assert source.exported_from.ledger_id == told.ledger_id
    assert source.state.counts() == told.counts()


@pytest.mark.parametrize("file", ["run_info.json", "MANIFEST.json"])
def test_one_file_that_says_so_makes_an_export_of_ours(tmp_path: Path, file: str) -> None:
    write_json(tmp_path / "run_info.json", {"schema_version": "agentcompass.run_info.v3"})
    assert takers(tmp_path) == ["agentcompass"]
    document = {"schema_version": "agentcompass.run_info.v3", "acl": OURS}
    write_json(tmp_path / file, document)
    assert takers(tmp_path) == ["details"]


def test_a_schema_within_the_request_says_nothing(tmp_path: Path) -> None:
    inner = {"source": {"schema_version": "agentcompass.run_info.v3"}}
    document = {"request": inner, "schema_version": "agentcompass.run_info.v1"}
    write_json(tmp_path / "run_info.json", document)
    assert takers(tmp_path) == ["details"]


def test_a_file_that_was_cut_short_still_tells_its_schema(tmp_path: Path) -> None:
    (tmp_path / "run_info.json").write_text('{"schema_version": "agentcompass.run_info.v3", "st')
    assert takers(tmp_path) == ["agentcompass"]
