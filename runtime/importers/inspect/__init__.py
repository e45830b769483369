"""Logs of Inspect AI (`inspect_ai`): `.eval` and `.json`, finished, stopped or crashed."""

from ledger.errors import UsageError
from runtime.importers.inspect.archive import SIGNATURE
from runtime.importers.inspect.bytesource import ByteSource
from runtime.importers.inspect.evalfile import read_eval
from runtime.importers.inspect.jsonfile import read_json
from runtime.importers.inspect.run import FORMAT, Run
from runtime.importers.inspect.sniff import logs_in
from runtime.importers.inspect.survey import Survey
from runtime.importers.plan import ImportPlan, Original, Remark
from runtime.importers.source import Source, SourceFile

__all__ = ["Inspect"]


class Inspect:
    """The importer of format `inspect`; see `runtime.importers.plan.Importer`."""

    name = FORMAT

    def recognises(self, source: Source) -> bool:
        """True for a log, or a directory with logs in it."""
        return bool(logs_in(source))

    def plan(self, source: Source) -> ImportPlan:
        """Read the log once; UsageError for none or several, VersionUnsupported for a newer one."""
        file = _only_log(source)
        data = ByteSource(source, file)
        log = read_eval(data) if data.read(0, 4) == SIGNATURE else read_json(data)
        others = [other for other in source.files if other is not file]
        log.remarks += [Remark(other.path, "it is no part of the log") for other in others]
        log.remarks += [Remark(path, f"left alone: {why}") for path, why in source.skipped]
        run = Run(log, Survey.of(log), tuple(Original(other) for other in others))
        return run.plan()


def _only_log(source: Source) -> SourceFile:
    if len(source.files) == 1:
        return source.files[0]
    logs = logs_in(source)
    if not logs:
        raise UsageError(f"{source.root} holds no Inspect log", hint="name the log itself")
    if len(logs) > 1:
        names = ", ".join(file.path for file in logs[:10])
        more = f" and {len(logs) - 10} more" if len(logs) > 10 else ""
        raise UsageError(
            f"{source.root} holds {len(logs)} Inspect logs: {names}{more}",
            hint="one import is one run: import each log by itself",
        )
    return logs[0]
