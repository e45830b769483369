"""Finding exporters by entry point."""

from importlib import metadata

import pytest

import exporters
from exporters.details import export_details
from ledger.errors import UsageError


def installed(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    found = [metadata.EntryPoint(name, value, exporters.GROUP) for name, value in points.items()]
    monkeypatch.setattr(
        metadata, "entry_points", lambda *, group: found if group == exporters.GROUP else []
    )


def test_a_layout_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, details="exporters.details:export_details")
    assert exporters.find_exporter("details") is export_details


def test_layouts_are_listed_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, b="x:y", a="x:y")
    assert exporters.exporter_names() == ["a", "b"]


def test_an_unknown_layout_names_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, details="exporters.details:export_details")
    with pytest.raises(UsageError, match="known: details"):
        exporters.find_exporter("jobs")


def test_a_broken_plug_in_is_a_usage_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, broken="no_such_module_anywhere:export")
    with pytest.raises(UsageError, match="'broken' cannot be loaded: ModuleNotFoundError"):
        exporters.find_exporter("broken")
