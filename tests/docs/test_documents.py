"""What the documents say of the code is so."""

import re
from pathlib import Path

import pytest

from ledger import events as ev

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("document", DOCS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / link).exists(), link


def test_the_format_names_every_event_type_and_its_code() -> None:
    text = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    for code, name in ev.TYPE_NAMES.items():
        assert re.search(rf"\|\s*{code}\s*\|[^\n]*`{re.escape(name)}`", text), (code, name)


def test_nothing_tells_of_the_machine_it_was_written_on() -> None:
    for document in [*DOCS, ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        text = document.read_text(encoding="utf-8")
        assert not re.search(r"/(?:work|root|home|srv)/", text), document.name
