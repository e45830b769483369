"""Every statement of the requirements has code that does it and a test that shows it."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from runtime.results import (
    Evaluation,
    MetricResult,
    OrchestrationResult,
    RequestOutcome,
    RequestResult,
    RunResult,
)

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.splitlines()
    if re.match(r"\| \d+ \|", line)
]
CODE = sorted(set(re.findall(r"`([a-z_.]+:[A-Za-z_.]+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`(tests/[a-z_/]+\.py::[a-z_0-9]+)`", TEXT)))


def test_statements_are_numbered_and_none_is_without_code_and_test() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert len(ROWS) >= 65
    for number, _, code, shown in ROWS:
        assert re.search(r"`[a-z_.]+:[A-Za-z_.]+`", code), f"statement {number} names no code"
        assert re.search(r"`tests/[a-z_/]+\.py::", shown), f"statement {number} names no test"


@pytest.mark.parametrize("name", CODE)
def test_the_code_that_is_named_exists(name: str) -> None:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", TESTS)
def test_the_test_that_is_named_exists(name: str) -> None:
    file, _, function = name.partition("::")
    assert function in functions(file)


def test_every_departure_that_is_named_is_explained_and_none_is_idle() -> None:
    table = "\n".join(" | ".join(row) for row in ROWS)
    explained = re.findall(r"^- \*\*(D\d+)\.\*\*", TEXT, flags=re.MULTILINE)
    assert explained == [f"D{number}" for number in range(1, len(explained) + 1)]
    assert set(re.findall(r"\((D\d+)\)", table)) == set(explained)


def test_the_requirements_own_names_are_ours() -> None:
    """Functions that the page names for others to call have the same names here."""
    names = {name.partition(":")[2].rpartition(".")[2] for name in CODE}
    assert names >= {
        *("to_task_payload", "to_persistence_params", "freeze_reuse_source", "finalize"),
        *("summarize_results", "build_detail_record", "_preflight", "collect_artifacts"),
    }


def test_each_layer_is_a_type_of_its_own() -> None:
    layers = (
        *(RunResult, Evaluation, MetricResult),
        *(RequestResult, RequestOutcome, OrchestrationResult),
    )
    for one in layers:
        assert [other for other in layers if issubclass(one, other)] == [one]


def test_every_stored_field_is_written_down() -> None:
    """A field that is added is added to the format as well, where somebody asks what it is for."""
    text = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    for code, model in ev.BY_CODE.items():
        (row,) = re.findall(rf"^\| {code} \| `.*$", text, flags=re.MULTILINE)
        told = set(re.findall(r"[a-z_0-9]+", row.split("|")[5]))
        fields = set(model.model_fields) - {"type", "task", "attempt", "lease", "redactions"}
        assert fields == told, ev.TYPE_NAMES[code]
