"""Everything about one run: verified, folded, recomputed and compared, one after another."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger import note
from ledger.errors import AclError, IntegrityError, RunNotFound, UsageError
from ledger.fold import fold
from ledger.state import RunState
from ledger.verify import Finding, Policy, verify
from ledger.view import LedgerView
from runtime.audit.attempts import Watch, attempts, sources
from runtime.audit.memory import told_of_registry
from runtime.audit.report import Problem, RunReport, Severity
from runtime.audit.shares import shares
from runtime.containment import named
from runtime.contracts import Benchmark
from runtime.lineage import lineage
from runtime.plugins import Plugins
from runtime.registry import Entry, Readings, attempts_of, request_digest
from runtime.replay import replay

Exported = Callable[[Path, LedgerView], Iterable[Finding] | None]
"""Compares the files beside a ledger with it; None where no export ended there."""

_FAILURES: Final = (AclError, OSError, sqlite3.Error)
_SIGNATURES: Final = frozenset({"signed", "cosigned", "policy_met"})
_UNPROVEN_SIGNATURES: Final = frozenset({"unsigned", "policy"})
_ORIGINS: Final = frozenset({"origin_unsigned", "origin_missing", "origin_unchecked"})
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Against:
    """What the ledgers are held against: all that the auditor brought, and what lies around.

    `on_disk` has the directory of each ledger that was found, by its id; `registry` is what was
    read of the registry, None where there is none.
    """

    verifiers: Sequence[note.Verifier] = ()
    policy: Policy | None = None
    exported: Exported | None = None
    on_disk: Mapping[str, Path] | None = None
    registry: Readings | None = None


def examine(directory: Path, path: str, entry: Entry | None, against: Against) -> RunReport:
    """Report on the ledger in `directory`, of which the registry says `entry`; raises nothing.

    A ledger that is damaged, or no ledger, is a report like any other.
    """
    report = RunReport(path=path, kind="unreadable")
    if entry is not None:
        report.run_id, report.ledger_id = entry.run_id, entry.ledger_id
        report.registered = "yes"
        report.opened_at = entry.at if entry.opened else None
        report.sealed_at = entry.sealed_at
    try:
        _Examination(directory, report, entry, against).run()
    except RunNotFound:
        report.kind = "empty"
        report.add("empty", "note", "its ledger holds no event: the run never began")
    except IntegrityError as error:
        report.kind = "damaged"
        report.add("damaged", "broken", error.message)
    except _FAILURES as error:
        report.add("unreadable", "failed", str(error))
    return report


class _Examination:
    """One run under examination; fills its report in."""

    def __init__(
        self, directory: Path, report: RunReport, entry: Entry | None, against: Against
    ) -> None:
        self._directory = directory
        self._report = report
        self._entry = entry
        self._against = against
        self._watch = Watch()

    def run(self) -> None:
        with LedgerView.open(self._directory, pristine=True) as view:
            self._report.ledger_id = view.ledger_id.hex()
            state = self._fold(view)
            intact = self._verify(view, state)
            self._tell_kind(view, state, intact=intact)
            if state is None or state.created is None:
                return
            self._tell_run(view, state)
            if intact:
                self._recompute(view)
                self._compare_export(view, running=self._report.kind == "running")

    def _fold(self, view: LedgerView) -> RunState | None:
        """What the events amount to; None where verification will tell why that is not known."""
        try:
            return fold(self._watch.over(view.events()))
        except AclError:
            return None

    def _verify(self, view: LedgerView, state: RunState | None) -> bool:
        """Verify the ledger, also against its checkpoint in the registry; tell if it is intact."""
        report, seal = self._report, self._entry.sealed if self._entry else None
        outside = [] if seal is None else [seal.checkpoint.encode("utf-8", "surrogatepass")]
        intact = True
        with ExitStack() as stack:
            verification = verify(
                view,
                verifiers=self._against.verifiers,
                policy=self._against.policy,
                checkpoint=outside,
                sources=self._sources(state, stack),
            )
            for finding in verification:
                intact = intact and finding.severity != "broken"
                self._take(finding)
        report.size = verification.size
        report.root = None if verification.root is None else verification.root.hex()
        if seal is not None and verification.sealed_at is None and intact:
            report.add("unsealed", "broken", "the registry knows of its seal, the ledger does not")
            intact = False
        return intact

    def _take(self, finding: Finding) -> None:
        report = self._report
        if finding.severity == "broken":
            broken = sum(problem.severity == "broken" for problem in report.problems)
            if broken < _SHOWN:
                report.problems.append(Problem.of(finding))
            elif broken == _SHOWN:
                report.add("more", "broken", "and more: `acl verify` has all findings")
        elif finding.code in _SIGNATURES:
            report.signatures.append(finding.message)
        elif finding.code in _UNPROVEN_SIGNATURES:
            report.unproven.append(finding.message)
        elif finding.code == "erased":
            report.add("erased", "note", f"event {finding.seq}: {finding.message}")

    def _sources(self, state: RunState | None, stack: ExitStack) -> list[LedgerView]:
        """The ledgers that tasks were reused from, as far as they are here."""
        places = self._against.on_disk or {}
        named: dict[str, None] = {}
        for task in state.tasks.values() if state else ():
            origins = [task.origin, *(attempt.origin for attempt in task.attempts.values())]
            named |= {one.ledger_id: None for one in origins if one is not None}
        found = []
        for ledger_id in named:
            place = places.get(ledger_id)
            if place is not None and place != self._directory:
                try:
                    found.append(stack.enter_context(LedgerView.open(place, pristine=True)))
                except _FAILURES:
                    continue  # its own report says what is wrong with it
        return found

    def _tell_kind(self, view: LedgerView, state: RunState | None, *, intact: bool) -> None:
        report = self._report
        if not intact or state is None:
            report.kind = "damaged"
        elif state.created is None:
            report.kind = "unreadable"
            report.add("no_run", "note", "the ledger holds no run")
        elif state.sealed_size is not None:
            report.kind = "sealed"
        else:
            report.kind = "running" if view.writer() is not None else "interrupted"

    def _tell_run(self, view: LedgerView, state: RunState) -> None:
        report, opened = self._report, self._entry.opened if self._entry else None
        report.run_id = state.run_id
        report.status = state.status
        report.imported = state.imported is not None
        tasks = opened.planned_tasks if opened and opened.planned_tasks else len(state.tasks)
        planned = tasks * (opened.k if opened else state.k) or None
        report.attempts = attempts(state, self._watch, planned)
        report.metrics = list(shares(state, tasks or None, planned, report.attempts.stopped_early))
        places = self._against.on_disk or {}
        here = {ledger_id: str(place) for ledger_id, place in places.items()}
        report.sources = sources(lineage(view).sources, here)
        self._compare_entry(state)
        self._tell_attempts(state)

    def _compare_entry(self, state: RunState) -> None:
        """Hold what the ledger says of its plan against what was entered before it began."""
        report, entry = self._report, self._entry
        if self._watch.unregistered:
            report.add("was_unregistered", "note", "it says that it could not be entered in time")
        told = told_of_registry(self._watch.registered, self._against.registry, state.ledger_id)
        report.problems += told
        if entry is None:
            return
        if entry.more:
            report.add("entered_twice", "failed", f"{entry.more} entries of it contradict others")
        if entry.sealed is None and report.kind == "sealed":
            report.add("seal_not_entered", "note", "that it was sealed is not in the registry yet")
        opened = entry.opened
        if opened is None:
            report.registered = "late"
            return
        began = self._watch.began_ns
        if began is not None and entry.wall_ns > began and not report.imported:
            report.registered = "late"
            report.add("late", "note", f"it was entered at {entry.at}, after its first attempt")
        entered = opened.run_id, opened.request_digest, opened.k
        if entered != (state.run_id, request_digest(state.request), attempts_of(state.request)):
            report.add("request", "broken", "its request is not the one that was entered")
        if opened.planned_tasks and state.tasks and opened.planned_tasks != len(state.tasks):
            report.add(
                "plan",
                "failed",
                f"{opened.planned_tasks} tasks were planned when it was entered,"
                f" it has {len(state.tasks)}",
            )

    def _tell_attempts(self, state: RunState) -> None:
        report, counts = self._report, self._report.attempts
        assert counts is not None
        if counts.without_end and report.kind != "running":
            named = [f"{t.id!r} {a.number}" for t, a in state.attempts() if a.finished is None]
            more = ", …" * (len(named) > _SHOWN)
            report.add(
                "without_end",
                "note",
                f"{counts.without_end} attempts began and never ended:"
                f" {', '.join(named[:_SHOWN])}{more}",
            )
        if state.finished is None and report.kind == "sealed":
            report.add("interrupted", "note", "it was sealed without having finished")

    def _recompute(self, view: LedgerView) -> None:
        """Compare the recorded numbers with what the events give: a headline is derived."""
        try:
            found = replay(view, benchmark=_benchmark(view))
        except RunNotFound:
            return
        except Exception as error:  # noqa: BLE001 - what a benchmark adds is a plug-in's
            self._report.add(
                "metrics", "failed", f"its numbers were not recomputed: {named(error)}"
            )
            return
        for difference in found.differences[:_SHOWN]:
            what = f"{difference.name} is {difference.recorded}, the events give"
            # What a source said of itself is its own affair.
            severity: Severity = "note" if found.source == "import" else "broken"
            self._report.add("metrics_differ", severity, f"{what} {difference.replayed}")

    def _compare_export(self, view: LedgerView, *, running: bool) -> None:
        report, exported = self._report, self._against.exported
        if exported is None or running:
            return
        try:
            findings = exported(self._directory, view)
            if findings is None:
                report.export = "none"
                return
            broken = [finding for finding in findings if finding.severity == "broken"]
        except Exception as error:  # noqa: BLE001 - a layout is a plug-in, and may raise anything
            report.add("export", "failed", f"its export cannot be compared: {named(error)}")
            return
        report.export = "differs" if broken else "matches"
        report.problems += [Problem.of(finding) for finding in broken[:_SHOWN]]
        if len(broken) > _SHOWN:
            report.add("export", "broken", f"and {len(broken) - _SHOWN} more files differ")


def _benchmark(view: LedgerView) -> Benchmark | None:
    """The run's own benchmark, or None if it is not installed."""
    first = view.event(0).event
    request = getattr(first, "request", None) or {}
    try:
        return Plugins().benchmark(request["benchmark"]["id"])
    except (UsageError, KeyError, TypeError):
        return None
