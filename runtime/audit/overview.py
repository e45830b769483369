"""Every run that the registry knows or that is on disk, matched with each other."""

import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ledger import sidefile
from ledger.errors import AclError, IntegrityError, RunNotFound
from ledger.verify import verify
from ledger.view import LedgerView
from runtime.audit.disk import Place, places
from runtime.audit.report import Problem, RegistryReport, RunReport
from runtime.audit.run import Against, examine
from runtime.importers.places import STAGE_PREFIX
from runtime.registry import Entry, Readings, read_entries, registry_file

_FAILURES: Final = (AclError, OSError, sqlite3.Error)
_SIGNATURES: Final = frozenset({"signed", "cosigned", "policy_met"})
_UNPROVEN: Final = frozenset({"unsigned", "policy", "no_outside_checkpoint", "uncovered"})


@dataclass(frozen=True, slots=True)
class Audit:
    """The registry's report, how many runs there are, and the report of each as it is made.

    `runs` can be gone through once; runs that were entered come first, in that order.
    """

    registry: RegistryReport
    total: int
    runs: Iterator[RunReport]


def audit(results_dir: Path, against: Against, checkpoints: Sequence[bytes] = ()) -> Audit:
    """Audit all runs of `results_dir`; `checkpoints` of its registry were kept elsewhere.

    Raises RunNotFound if there is no such directory.
    """
    if not results_dir.is_dir():
        raise RunNotFound(f"no results directory {results_dir}", hint="name one: acl audit DIR")
    results = results_dir.absolute()
    registry, readings = _registry(results, against, checkpoints)
    found = places(results)
    on_disk: dict[str, Path] = {}
    for place in found:
        if place.ledger_id is not None:
            on_disk.setdefault(place.ledger_id, place.directory)
    around = replace(against, on_disk=on_disk, registry=readings if registry.found else None)
    matching = _Matching(readings.entries, found, around)
    return Audit(registry, matching.total, matching.reports())


# -- the registry ------------------------------------------------------------------------------


def _registry(
    results_dir: Path, against: Against, checkpoints: Sequence[bytes]
) -> tuple[RegistryReport, Readings]:
    report, readings = RegistryReport(), Readings()
    try:
        file = registry_file(results_dir)
        if not os.path.lexists(file):
            report.problems += _gone(file, checkpoints)
            return report, readings
        report.found = True
        with LedgerView.open(file, pristine=True) as view:
            _verify_registry(view, report, against, checkpoints)
            readings = read_entries(view)
        report.ledger_id = readings.ledger_id
    except RunNotFound:
        report.problems.append(Problem("empty", "note", "no run was ever entered"))
    except IntegrityError as error:
        if not any(problem.severity == "broken" for problem in report.problems):
            report.problems.append(Problem("registry", "broken", error.message))
    except _FAILURES as error:
        report.problems.append(Problem("registry", "broken", f"it cannot be read: {error}"))
    report.entries = readings.size
    return report, readings


def _gone(file: Path, checkpoints: Sequence[bytes]) -> Iterator[Problem]:
    left = [side.name for side in sidefile.paths(file) if os.path.lexists(side)]
    if left or checkpoints:
        told = left[0] if left else "the given checkpoint"
        yield Problem("registry_gone", "broken", f"there is none, but {told} tells of one")
    else:
        yield Problem(
            "no_registry", "failed", "there is none: runs may have been removed without a trace"
        )


def _verify_registry(
    view: LedgerView,
    report: RegistryReport,
    against: Against,
    checkpoints: Sequence[bytes],
) -> None:
    verification = verify(
        view, verifiers=against.verifiers, policy=against.policy, checkpoint=list(checkpoints)
    )
    for finding in verification:
        if finding.severity == "broken":
            report.problems.append(Problem.of(finding))
        elif finding.code in {*_SIGNATURES, "outside_checkpoint"}:
            report.signatures.append(finding.message)
        elif finding.code in _UNPROVEN:
            report.unproven.append(finding.message)
    report.size = verification.size
    report.root = None if verification.root is None else verification.root.hex()


# -- the runs ----------------------------------------------------------------------------------


class _Matching:
    """Entries and ledgers on disk, each pair of them one report."""

    def __init__(self, entries: Sequence[Entry], found: Sequence[Place], against: Against) -> None:
        self._against = against
        self._entries = entries
        self._places = {place.path: place for place in found}
        self._by_id: dict[str, list[Place]] = defaultdict(list)
        for place in found:
            if place.ledger_id is not None:
                self._by_id[place.ledger_id].append(place)
        self._entered_at: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            self._entered_at[entry.path].append(entry)
        self._matched = {e.path: e for e in entries if self._is_its_own(e)}

    def _is_its_own(self, entry: Entry) -> bool:
        """Whether what is at the path of an entry is the ledger that was entered, or may be."""
        place = self._places.get(entry.path)
        if place is None:
            return False
        if place.ledger_id is not None:
            return place.ledger_id == entry.ledger_id
        # It cannot be read: the last that was entered there is as likely as any.
        return entry is self._entered_at[entry.path][-1]

    @property
    def total(self) -> int:
        """How many reports there will be."""
        return len(self._entries) + sum(path not in self._matched for path in self._places)

    def reports(self) -> Iterator[RunReport]:
        """Every entry in order, then what is on disk and in no entry, by path."""
        moved: set[str] = set()
        for entry in self._entries:
            if self._matched.get(entry.path) is entry:
                yield examine(self._places[entry.path].directory, entry.path, entry, self._against)
            else:
                report = self._absent(entry)
                if report.kind not in ("missing", "replaced"):
                    moved.add(report.path)
                yield report
        for path, place in self._places.items():
            if path not in self._matched and path not in moved:
                yield self._unknown(place)

    def _absent(self, entry: Entry) -> RunReport:
        """The report of a run that is not where it was entered."""
        elsewhere = [
            place
            for place in self._by_id.get(entry.ledger_id, ())
            if place.path not in self._matched
        ]
        if elsewhere:
            report = examine(elsewhere[0].directory, elsewhere[0].path, entry, self._against)
            report.add("moved", "note", f"it was entered at {entry.path}")
            return report
        report = RunReport(
            path=entry.path,
            kind="missing",
            run_id=entry.run_id,
            ledger_id=entry.ledger_id,
            registered="yes",
            opened_at=entry.at if entry.opened else None,
            sealed_at=entry.sealed_at,
        )
        self._say_where(report, entry)
        return report

    def _say_where(self, report: RunReport, entry: Entry) -> None:
        at = "sealed" if entry.sealed else "opened"
        there = self._matched.get(entry.path)
        if there is not None:
            why = f"another run, entered at {there.at}, has its place"
            report.add("missing", "failed", f"its ledger is gone; it was {at}; {why}")
        elif entry.path in self._places:
            report.kind = "replaced"
            other = self._places[entry.path].ledger_id
            what = f"ledger {other}" if other else "a ledger that cannot be read"
            report.add("replaced", "broken", f"in its place stands {what}, not entered there")
        else:
            report.add("missing", "failed", f"its ledger is gone; it was {at}")

    def _unknown(self, place: Place) -> RunReport:
        """The report of a ledger that is in no entry of the registry."""
        report = examine(place.directory, place.path, None, self._against)
        twins = [p.path for p in self._by_id.get(place.ledger_id or "", ()) if p != place]
        if place.path.split("/")[0].startswith(STAGE_PREFIX):
            report.add("import", "note", "an import that is under way, or was broken off")
        elif twins:
            report.add("copy", "note", f"it is a copy of the ledger in {twins[0]}")
        elif report.kind != "empty" and self._against.registry is not None:
            report.add("unregistered", "failed", "it is not in the registry")
        return report
