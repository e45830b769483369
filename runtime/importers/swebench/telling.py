"""One instance as an attempt: its own report stands, the report of the run where there is none.

An instance that nobody judged is an error and not wrong: no patch, a harness that failed.
"""

from dataclasses import dataclass
from typing import Any, Final

from ledger import events as ev
from runtime.importers.foreign import UNKNOWN, ForeignAttempt, ForeignVerdict
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import Remark
from runtime.importers.source import Source, SourceFile
from runtime.importers.swebench.layout import FORMAT, LOG, OUTPUT, PATCH, REPORT, Instance
from runtime.importers.swebench.predictions import as_json
from runtime.importers.swebench.report import Report, read_report

EMPTY: Final = "empty_patch"

_VERDICTS: Final = {"resolved": True, "unresolved": False}
# What the harness writes to its logs, by what it means.
_MARKS: Final = (
    (b">>>>> Patch Apply Failed", "patch_apply_failed"),
    (b">>>>> Reset Failed", "reset_failed"),
    (b">>>>> Tests Timed Out", "tests_timed_out"),
    (b">>>>> Tests Errored", "tests_errored"),
)


@dataclass(slots=True)
class Telling:
    """An instance with all that is told of it; what is odd goes to `remarks`.

    `kind` is what the report of the run counts it as, None where that does not list it. `listed`
    is False if an instance that is not listed was tried and not resolved.
    """

    source: Source
    instance: Instance
    kind: str | None
    listed: bool
    why: str | None
    patch: str | None
    predicted: bool
    rest: dict[str, Any] | None
    summary_path: str
    remarks: list[Remark]

    def attempt(self) -> ForeignAttempt:
        """The only attempt."""
        report = self._report()
        patch = self._patch()
        verdict = self._verdict(report)
        error = None if verdict is not None else self._no_patch(report, patch)
        if verdict is None and error is None and self.kind != "incomplete":
            verdict = ForeignVerdict(evaluator=_evaluator(), error=self._failed())
        skipped = verdict is None and error is None
        return ForeignAttempt(
            number=1,
            final_answer=patch,
            error=error,
            extra=self._extra(report),
            verdict=verdict,
            issues=tuple(self._issues(report)),
            originals=self._files(),
            status="skipped" if skipped else None,
        )

    def _report(self) -> Report | None:
        file = self.instance.files.get(REPORT)
        if file is None:
            return None
        try:
            report = read_report(self.source.read(file), self.instance.id)
        except NotARecord as fault:
            self.remarks.append(unread(file.path, fault))
            return None
        self.remarks += [Remark(file.path, why, placed=True) for why in report.faults]
        return report

    def _patch(self) -> str | None:
        """The patch of the logs, else that of the predictions."""
        file = self.instance.files.get(PATCH)
        if file is None:
            return self.patch
        patch = self.source.read(file).decode("utf-8", "surrogateescape")
        if self.predicted and as_json(patch) != as_json(self.patch):
            self._tell(file.path, "another patch than the predictions have")
        return patch

    def _verdict(self, report: Report | None) -> ForeignVerdict | None:
        """What was decided; None if nobody did."""
        if report is not None and report.resolved is not None:
            told = _VERDICTS.get(self.kind or "")
            if self.kind is None and not self.listed:
                told = False
            if (told is not None and told is not report.resolved) or (
                told is None and self.kind not in (None, "submitted")
            ):
                kind = self.kind or "not resolved"
                word = "true" if report.resolved else "false"
                reason = f"it tells of {self.instance.id} as {kind}, whose report says {word}"
                self._tell(self.summary_path, reason)
            if report.empty and not report.resolved:
                return None
            return ForeignVerdict(
                evaluator=_evaluator(),
                correct=report.resolved,
                reason=report.counted,
                tests_status=report.tests,
            )
        if self.kind in _VERDICTS:
            return ForeignVerdict(evaluator=_evaluator(), correct=_VERDICTS[self.kind])
        return None

    def _no_patch(self, report: Report | None, patch: str | None) -> ev.ErrorInfo | None:
        told = self.kind == EMPTY or (report is not None and report.empty)
        if told or ((self.predicted or PATCH in self.instance.files) and not (patch or "").strip()):
            return ev.ErrorInfo(code=EMPTY, message="there is no patch to test")
        return None

    def _failed(self) -> ev.ErrorInfo:
        """Why there is no verdict, as far as logs say."""
        if self.kind == "no_apply":
            return ev.ErrorInfo(code="patch_apply_failed", message="the patch could not be applied")
        for name in (LOG, OUTPUT):
            file = self.instance.files.get(name)
            data = b"" if file is None else self.source.read(file)
            for mark, code in _MARKS:
                if mark in data:
                    return ev.ErrorInfo(code=code, message=mark.decode().lstrip("> "))
        if self.why is not None:
            return ev.ErrorInfo(code=self.why, message="the report of the run says so")
        words = "error" if self.kind == "error" else "no_verdict"
        return ev.ErrorInfo(code=words, message="the harness gave no verdict")

    def _issues(self, report: Report | None) -> list[ev.Issue]:
        found = []
        if report is not None and report.applied is False and not report.empty:
            found.append(("patch_not_applied", "the report says that the patch was not applied"))
        if report is not None and report.infra is not None:
            found.append(("infra_failure", report.infra))
        elif report is not None and report.resolved is False and self.why is not None:
            found.append(("failure_reason", self.why))
        return [
            ev.Issue(severity="warning", phase="evaluate", code=code, message=message)
            for code, message in found
        ]

    def _extra(self, report: Report | None) -> dict[str, Any] | None:
        extra = {**(report.rest if report else {})}
        if self.kind is not None:
            extra["run_report"] = self.kind
        if self.rest is not None:
            extra["prediction"] = self.rest
        return extra or None

    def _files(self) -> tuple[SourceFile, ...]:
        return (*self.instance.files.values(), *self.instance.others)

    def _tell(self, path: str, reason: str) -> None:
        self.remarks.append(Remark(path, reason, placed=True))


def unread(path: str, fault: NotARecord) -> Remark:
    """What is told of a report that is none; an empty or short one is what a crash leaves."""
    return Remark(path, f"no report: {fault}", damage=not fault.cut, torn=fault.cut)


def _evaluator() -> ev.Evaluator:
    return ev.Evaluator(id=f"import:{FORMAT}", version=UNKNOWN)
