"""Which file of a directory in the layout `details` is what.

    run_info.json params.json .summary_counts.json summary.md MANIFEST.json
    analysis_summary.json analysis_summary.md run.log progress.json progress.jsonl
    details/<name>.json retry_details/<name>.json

A name says nothing but whether it begins with `_error_`: tasks, attempts and retries are told by
the files themselves.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from ledger.errors import UsageError
from ledger.opening import LEDGER_NAME
from runtime.importers.source import Source, SourceFile

RUN_INFO: Final = "run_info.json"
PARAMS: Final = "params.json"
COUNTS: Final = ".summary_counts.json"
MANIFEST: Final = "MANIFEST.json"
HEAD: Final = (PARAMS, RUN_INFO)
LOGS: Final = ("run.log", "progress.jsonl", "progress.json")
TAIL: Final = ("summary.md", "analysis_summary.json", "analysis_summary.md", MANIFEST)
RUN_FILES: Final = frozenset((*HEAD, COUNTS, *LOGS, *TAIL))
ERROR_MARK: Final = "_error_"

_RECORD: Final = re.compile(r"details/[^/]+\.json", re.DOTALL)
_RETRY: Final = re.compile(r"retry_details/[^/]+\.json", re.DOTALL)
_UNFINISHED: Final = re.compile(r"(?:.*/)?\.(?:acl-[^/]+|tmp\.[^/]+|[^/]+\.tmp)(?:/.*)?", re.DOTALL)


@dataclass(slots=True)
class Layout:
    """A directory: the run's own files by name, records, discarded tries, and all else.

    `unfinished` are files whose writing was cut short: they are renamed when they are whole.
    """

    run: dict[str, SourceFile] = field(default_factory=dict)
    records: list[SourceFile] = field(default_factory=list)
    retries: list[SourceFile] = field(default_factory=list)
    foreign: list[SourceFile] = field(default_factory=list)
    unfinished: list[SourceFile] = field(default_factory=list)


def arrange(source: Source) -> Layout:
    """Say of every file what it is; UsageError for the directory of a run with its ledger."""
    layout = Layout()
    for file in source.files:
        if file.path == LEDGER_NAME:
            raise UsageError(
                f"{source.root} holds a run with its ledger: there is nothing to import",
                hint="use it as it is, or import what `acl export` makes of it",
            )
        if file.path in RUN_FILES:
            layout.run[file.path] = file
        elif _UNFINISHED.fullmatch(file.path):
            layout.unfinished.append(file)
        elif _RECORD.fullmatch(file.path):
            layout.records.append(file)
        elif _RETRY.fullmatch(file.path):
            layout.retries.append(file)
        else:
            layout.foreign.append(file)
    return layout


def is_marked(file: SourceFile) -> bool:
    """True if the name says that the record holds an error."""
    return file.path.rpartition("/")[2].startswith(ERROR_MARK)
