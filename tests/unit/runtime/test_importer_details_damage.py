"""No value of any field of any file stops an import, or gives a ledger that does not verify."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.verify import verify
from tests.details_runs import do_import, export, foreign_run, record, right, write_json
from tests.golden.runs import RUNS

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**70,
    1.5,
    float("nan"),
    "",
    "x",
    "completed",
    "error",
    "a\udc00",
    [],
    [None],
    ["x"],
    {},
    {"1": None},
    {"a": {"b": 1}},
    {"$acl": ["float", "nan"]},
    {"$acl": 1},
)


@pytest.fixture(scope="module", params=["full", "reused", "interrupted", "foreign"])
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("source")
    if request.param == "foreign":
        return foreign_run(scratch / "tree")
    (scratch / "run").mkdir()
    RUNS[request.param](scratch / "run")
    export(scratch / "run", scratch / "tree")
    return scratch / "tree"


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    entries = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    here = [(value, key) for key, _ in entries]
    below = (item for _, item in entries if isinstance(item, dict | list))
    return [*here, *(place for item in below for place in places(item))]


@given(data=st.data())
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_odd_values_anywhere_are_imported_or_named(source: Path, data: st.DataObject) -> None:
    files = sorted(path for path in source.rglob("*.json") if path.name != "MANIFEST.json")
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "tree"
        shutil.copytree(source, tree)
        for _ in range(data.draw(st.integers(1, 3))):
            path = tree / data.draw(st.sampled_from(files)).relative_to(source)
            value = json.loads(path.read_text(encoding="utf-8"))
            container, key = data.draw(st.sampled_from(places(value) or [({}, "x")]))
            if data.draw(st.booleans()) or isinstance(container, list):
                container[key] = data.draw(st.sampled_from(ODD))
            else:
                del container[key]
            text = json.dumps(value, indent=2, ensure_ascii=True)
            path.write_text(text + "\n", encoding="utf-8")
        report = do_import(tree, Path(directory) / "results")
        assert [f for f in verify(report.path) if f.severity == "broken"] == []
        placed = {remark.source for remark in report.unplaced if not remark.placed}
        assert report.records_out == report.records_in - len(placed)
        export(report.path, Path(directory) / "again")


@pytest.mark.parametrize(
    "name",
    ["task_id", "category", "attempts", "correct", "score", "k", "retry_counts", "acl"],
)
def test_odd_fields_of_a_record_are_imported_or_named(tmp_path: Path, name: str) -> None:
    run = foreign_run(tmp_path / "run")
    for number, odd in enumerate(ODD):
        value = record(f"odd {number}", right())
        value[name] = odd
        write_json(run / "details" / f"odd{number}.json", value, ascii_only=True)
    report = do_import(run, tmp_path / "results")
    assert [f for f in verify(report.path) if f.severity == "broken"] == []
