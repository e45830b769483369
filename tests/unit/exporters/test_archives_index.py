from pathlib import Path
from typing import Any

import pytest
import yaml

from exporters.archives.index import Entry, number_of, parse
from ledger.errors import ExportRefused

NEW = {
    "id": "run_002",
    "started_at": "2025-06-15T15:06:41Z",
    "status": "completed",
    "acl": {"run_id": "r", "ledger_id": "1" * 32, "root": "2" * 64},
}


def added(text: str) -> str:
    return parse(text.encode(), "index.yaml").with_entry(NEW).decode()


def runs(text: str) -> list[Any]:
    return yaml.safe_load(text)["runs"]


def test_the_first_entry_makes_the_list() -> None:
    for empty in ("", "runs:\n", "runs: []\n", "# nothing yet\n", "{}\n"):
        assert runs(added(empty)) == [NEW]


@pytest.mark.parametrize(
    "text",
    [
        "runs:\n- id: run_001\n  note: mine # by hand\n",
        "# ours\nversion: 3\nruns:\n  - id: run_001\n    note: mine\n",
        "runs:\n- id: run_001\n  note: |\n    - a\n    - b\n",
        "runs:\n- {id: run_001, when: 2025-01-01T00:00:00Z}",
        "runs:\n-   id: run_001\n    deep:\n      - 1\n",
    ],
)
def test_what_stands_there_stays_to_the_byte(text: str) -> None:
    more = added(text)
    before = yaml.safe_load(text)
    assert yaml.safe_load(more) == {**before, "runs": [*before["runs"], NEW]}
    if text.startswith(("runs:\n- id", "# ours")) and "|" not in text:
        assert more.startswith(text)


@pytest.mark.parametrize(
    "text", ["runs: [{id: run_001}]\n", "runs:\n- id: run_001\nafter: {kept: true}\n"]
)
def test_a_list_that_cannot_be_extended_as_text_loses_no_entry(text: str) -> None:
    before = yaml.safe_load(text)
    assert yaml.safe_load(added(text)) == {**before, "runs": [*before["runs"], NEW]}


def test_entries_are_added_one_after_another() -> None:
    text = ""
    for number in range(1, 6):
        text = parse(text.encode(), "").with_entry({**NEW, "id": f"run_{number:03d}"}).decode()
    assert [one["id"] for one in runs(text)] == [f"run_{number:03d}" for number in range(1, 6)]


@pytest.mark.parametrize(
    "data",
    [
        b"runs: [\n",
        b"- a\n",
        b"runs: 3\n",
        b"runs:\n- just text\n",
        b"\xff\xfe\x00",
        b"runs:\n- id: a\n  id: b\n",
        b"runs: &x\n- id: a\nmore: *x\n",
        b"runs: !!python/object/apply:os.system ['true']\n",
        b"a: 1\n---\nb: 2\n",
    ],
)
def test_what_is_no_index_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(ExportRefused, match=r"^artifacts/index\.yaml cannot be read"):
        parse(data, "artifacts/index.yaml")


def test_entries_say_what_they_say() -> None:
    index = parse(b"runs:\n- id: run_001\n- id: 5\n  acl: gone\n- {}\n", "")
    assert index.entries == [Entry("run_001"), Entry(None), Entry(None)]
    assert parse(yaml.safe_dump({"runs": [NEW]}).encode(), "").entries == [
        Entry("run_002", "r", "1" * 32, "2" * 64)
    ]


def test_numbers_are_read_from_names() -> None:
    assert [
        number_of(name) for name in ("run_001", "run_12", "run_1000", "run_x", "run_", "x")
    ] == [*(1, 12, 1000, 0, 0, 0)]


def test_a_name_of_a_file_is_no_part_of_the_data(tmp_path: Path) -> None:
    assert parse(b"", str(tmp_path)).document == {}
