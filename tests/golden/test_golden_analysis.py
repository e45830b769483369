"""Golden trees of analyses: the same ledger gives the same bytes on every machine."""

from pathlib import Path

import pytest

from exporters.job_analysis import AnalysisConfig
from tests.analysis_runs import analyzed
from tests.golden.regenerate import ANALYSES, ANALYSIS_RUNS


@pytest.mark.parametrize("case", sorted(ANALYSIS_RUNS))
def test_a_ledger_gives_its_golden_analysis_byte_for_byte(case: str, tmp_path: Path) -> None:
    build, config = ANALYSIS_RUNS[case]
    build(tmp_path)
    made = analyzed(tmp_path, config).files
    kept = AnalysisConfig.parse((ANALYSES / case / "analysis_config.yaml").read_bytes())
    again = analyzed(tmp_path, kept).files
    found = (path for path in (ANALYSES / case).rglob("*") if path.is_file())
    golden = {path.relative_to(ANALYSES / case).as_posix(): path.read_bytes() for path in found}
    assert set(made) == set(golden)
    for path, data in golden.items():
        assert made[path] == data, path
    assert again == golden
