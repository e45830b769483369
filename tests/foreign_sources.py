"""Sources of the importers of single formats: written, imported by whatever takes them, told."""

import json
from pathlib import Path
from typing import Any

from runtime.importers import ImportReport, Source
from runtime.plugins import installed
from tests import importer_runs

SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "samples"


def take(path: Path, results: Path, **options: Any) -> ImportReport:
    """Import through the door, by whichever installed importer recognises the source."""
    return importer_runs.do_import(path, results, points=installed, **options)


def recognised(path: Path) -> list[str]:
    """The names of all installed importers that would take a source."""
    source = Source.open(path)
    loaded = {point.name: point.load()() for point in installed("acl.importers")}
    return sorted(name for name, importer in loaded.items() if importer.recognises(source))


def write_lines(path: Path, *lines: Any, end: str = "\n") -> Path:
    """JSON lines; a text is written as it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + end, encoding="utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    """A JSON file as most programs write it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=4), encoding="utf-8")
    return path


def lost(report: ImportReport) -> list[str]:
    """What has no place, as `source: reason`."""
    return [f"{one.source}: {one.reason}" for one in report.unplaced if not one.placed]


def told(report: ImportReport) -> list[str]:
    """What is odd and has its place."""
    return [f"{one.source}: {one.reason}" for one in report.unplaced if one.placed]
