"""Comparing an exported directory with its ledger."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from exporters.check import check_tree
from exporters.details import LAYOUT, export_details
from exporters.identity import Identity
from exporters.manifest import manifest_file
from exporters.write import write_tree
from ledger import events as ev
from ledger.errors import ExportRefused, LedgerDamaged
from ledger.fold import fold
from ledger.state import RunState
from ledger.verify import Finding
from ledger.view import LedgerView, Recorded
from tests.golden.erasing import Erased
from tests.golden.runs import attempt, create, full, interrupted, opening, ref, task


def export(path: Path, target: Path) -> None:
    with LedgerView.open(path) as view:
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, target, identity=Identity.of(state), layout=LAYOUT)


def check(
    path: Path, target: Path, *erased: int, view_of: Callable[[LedgerView], object] | None = None
) -> list[Finding]:
    with LedgerView.open(path) as ledger:
        view = view_of(ledger) if view_of else Erased(ledger, *erased)
        found = check_tree(
            lambda size: fold(view.events(until=size)),
            view,
            target,
            ledger_id=ledger.ledger_id.hex(),
            size=ledger.size,
            find={LAYOUT: export_details}.__getitem__,
        )
        return list(found)


def told(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(f.code, f.severity, f.message) for f in findings]


@pytest.fixture
def exported(tmp_path: Path) -> tuple[Path, Path]:
    full(tmp_path / "run")
    export(tmp_path / "run", tmp_path / "out")
    return tmp_path / "run", tmp_path / "out"


def test_an_export_as_it_was_written_has_no_findings(exported: tuple[Path, Path]) -> None:
    assert check(*exported) == []


def test_a_changed_file_is_named(exported: tuple[Path, Path]) -> None:
    run, out = exported
    path = out / "details" / "loose.json"
    path.write_text(path.read_text().replace('"score": 0.5', '"score": 0.6'))
    assert told(check(run, out)) == [
        ("tree_differs", "broken", "details/loose.json is not what the ledger says")
    ]


def test_every_single_file_is_compared(exported: tuple[Path, Path]) -> None:
    run, out = exported
    for path in sorted(p for p in out.rglob("*") if p.is_file() and p.name != "MANIFEST.json"):
        original = path.read_bytes()
        path.write_bytes(original + b" ")
        (finding,) = check(run, out)
        assert finding.message.startswith(f"{path.relative_to(out)} is not")
        path.write_bytes(original)


def test_missing_and_extra_files_are_named(exported: tuple[Path, Path]) -> None:
    run, out = exported
    (out / "summary.md").unlink()
    (out / "details" / "more.json").write_text("{}")
    (out / "link").symlink_to(out / "params.json")
    assert told(check(run, out)) == [
        ("tree_missing", "broken", "summary.md is missing"),
        ("tree_extra", "broken", "details/more.json is not part of the export"),
        ("tree_extra", "broken", "link is not part of the export"),
    ]


def test_a_link_to_the_right_bytes_is_not_the_file(exported: tuple[Path, Path]) -> None:
    run, out = exported
    (out / "params.json").rename(out.parent / "params.json")
    (out / "params.json").symlink_to(out.parent / "params.json")
    (finding,) = check(run, out)
    assert finding.code == "tree_differs"
    assert "params.json" in finding.message


def test_what_belongs_to_the_run_is_not_extra(exported: tuple[Path, Path]) -> None:
    run, out = exported
    for name in (
        "progress.json",
        "progress.jsonl",
        "run.log",
        "ledger.sqlite",
        "ledger.checkpoint",
    ):
        (out / name).write_text("x")
    (out / "details" / "run.log").write_text("x")
    assert [finding.message for finding in check(run, out)] == [
        "details/run.log is not part of the export"
    ]


def test_a_tree_without_a_manifest_is_not_whole(exported: tuple[Path, Path]) -> None:
    run, out = exported
    (out / "MANIFEST.json").unlink()
    (finding,) = check(run, out)
    assert (finding.code, finding.severity) == ("tree_manifest", "broken")


def test_a_manifest_that_is_none_is_a_finding(exported: tuple[Path, Path]) -> None:
    run, out = exported
    (out / "MANIFEST.json").write_text("{}")
    (finding,) = check(run, out)
    assert (finding.code, finding.severity) == ("tree_manifest", "broken")


def edit(out: Path, change: Callable[[dict], None]) -> None:
    manifest = json.loads((out / "MANIFEST.json").read_text())
    change(manifest)
    (out / "MANIFEST.json").write_text(json.dumps(manifest, indent=2) + "\n")


def test_a_manifest_that_tells_other_digests_is_a_finding(exported: tuple[Path, Path]) -> None:
    run, out = exported
    edit(out, lambda manifest: manifest["files"][0].update(sha256="00" * 32))
    assert told(check(run, out)) == [
        ("tree_manifest", "broken", "MANIFEST.json is not what the ledger says")
    ]


def test_a_manifest_that_leaves_a_file_out_is_a_finding(exported: tuple[Path, Path]) -> None:
    run, out = exported
    edit(out, lambda manifest: manifest["files"].pop())
    assert [finding.code for finding in check(run, out)] == ["tree_manifest"]


def test_another_ledger_another_root_and_a_future_size_are_findings(
    exported: tuple[Path, Path],
) -> None:
    run, out = exported
    original = (out / "MANIFEST.json").read_bytes()
    for field, value, code in (
        ("ledger_id", "00" * 16, "tree_ledger"),
        ("size", 10_000, "tree_ledger"),
        ("root", "00" * 32, "tree_root"),
    ):
        edit(out, lambda manifest, field=field, value=value: manifest["acl"].update({field: value}))
        (finding,) = check(run, out)
        assert (finding.code, finding.severity) == (code, "broken")
        (out / "MANIFEST.json").write_bytes(original)


def test_a_directory_that_is_not_there_is_refused(exported: tuple[Path, Path]) -> None:
    run, out = exported
    with pytest.raises(ExportRefused):
        check(run, out / "none")


def test_an_older_export_is_compared_at_its_own_size(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    with create(run, "older") as ledger:
        ledger.append(*opening("r", ref("a"), ref("b")), *task("a", attempt("a")))
        export(run, out)
        ledger.append(*task("b", attempt("b")))
    assert told(check(run, out)) == [
        ("tree_older", "note", "the export is of the first 10 of 17 events")
    ]
    (out / "details" / "a.json").write_text("{}")
    assert [finding.code for finding in check(run, out)] == ["tree_differs", "tree_older"]


@pytest.fixture
def erased(tmp_path: Path) -> tuple[Path, Path]:
    """An export, and afterwards the erasure (event 16) of the result of task `a` (event 5)."""
    run, out = tmp_path / "run", tmp_path / "out"
    with create(run, "erased") as ledger:
        ledger.append(*opening("r", ref("a"), ref("b")))
        for name in ("a", "b"):
            begin, _, *rest = attempt(name, final_answer="z" * 9000)
            ledger.append(*task(name, [begin, *rest]))
        ledger.append(ev.AnnotationAdded(text="look", author="me"))
        export(run, out)
        ledger.append(ev.PayloadErased(sequence=(5,), reason="asked to"))
    return run, out


def test_a_file_that_needs_an_erased_payload_is_not_checkable(erased: tuple[Path, Path]) -> None:
    run, out = erased
    found = check(run, out, 5)
    assert found[0] == Finding(
        "tree_erased",
        "unproven",
        "details/a.json is not checkable: event 5 was erased by event 16",
        5,
    )
    assert [finding.code for finding in found[1:]] == ["tree_older"]


def test_erased_pieces_make_a_file_uncheckable_too(erased: tuple[Path, Path]) -> None:
    run, out = erased

    def view_of(ledger: LedgerView) -> Erased:
        return Erased(ledger, pieces=True)

    # The pieces of both answers are the same: `b` needs them as well, and nobody erased its own.
    found = check(run, out, view_of=view_of)
    assert found[0].message == "details/a.json is not checkable: event 5 was erased by event 16"
    assert found[1].severity == "unproven"


def test_an_erasure_hides_no_change_of_other_files(erased: tuple[Path, Path]) -> None:
    run, out = erased
    (out / "details" / "b.json").write_text("{}")
    messages = [finding.message for finding in check(run, out, 5)]
    assert "details/b.json is not what the ledger says" in messages


def test_counts_that_lack_an_erased_verdict_are_not_checkable(erased: tuple[Path, Path]) -> None:
    run, out = erased
    severities = {f.message.split(" ")[0]: f.severity for f in check(run, out, 6)}
    assert severities[".summary_counts.json"] == "unproven"
    assert severities["details/a.json"] == "unproven"
    assert "details/b.json" not in severities


def test_a_tree_exported_after_the_erasure_is_checkable(erased: tuple[Path, Path]) -> None:
    run, _ = erased
    out = run.parent / "after"
    with LedgerView.open(run) as ledger:
        view = Erased(ledger, 5)
        state = fold(view.events())
        files = export_details(state, view)
        write_tree(files, out, identity=Identity.of(state), layout=LAYOUT)
    assert check(run, out, 5) == []


class Damaged(Erased):
    def event(self, seq: int) -> Recorded:
        if seq == 5:
            raise LedgerDamaged("segment 0 fails its check", seq=5)
        return super().event(seq)


def test_a_damaged_ledger_is_told_and_stops_the_comparison(erased: tuple[Path, Path]) -> None:
    run, out = erased
    found = check(run, out, view_of=Damaged)
    assert [(f.code, f.severity, f.seq) for f in found] == [
        ("tree_unreadable", "unproven", 5),
        ("tree_older", "note", None),
    ]


def test_the_manifest_is_the_same_however_the_files_came(exported: tuple[Path, Path]) -> None:
    run, out = exported
    with LedgerView.open(run) as view:
        state: RunState = fold(view.events())
    manifest = json.loads((out / "MANIFEST.json").read_text())
    assert manifest["acl"] == Identity.of(state).trailer()
    paths = [listed["path"] for listed in manifest["files"]]
    assert paths == sorted(paths)
    assert manifest_file([], Identity.of(state), LAYOUT).path == "MANIFEST.json"


def test_an_interrupted_run_is_checkable(tmp_path: Path) -> None:
    interrupted(tmp_path / "run")
    export(tmp_path / "run", tmp_path / "out")
    assert check(tmp_path / "run", tmp_path / "out") == []
