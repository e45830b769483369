"""The layout `details`: one record a task, what was asked, how it ended, counts and summaries.

Content and names of the files: `docs/layout-details.md`.
"""

from collections.abc import Iterator

from exporters import OutFile
from exporters.analysis import analysis_files
from exporters.counts import summary_counts
from exporters.names import detail_names
from exporters.record import build_detail_record, has_record, record_file
from exporters.retry_record import retry_files
from exporters.run_files import params, run_info
from exporters.summary import summary
from ledger.state import RunState
from ledger.view import Blobs

LAYOUT = "details"


def export_details(state: RunState, blobs: Blobs) -> Iterator[OutFile]:
    """Project a run into the files of the layout, one after another, each made when asked for.

    Memory is bounded by the largest record. Raises RunNotFound where the ledger holds no run, and
    LedgerDamaged where a stored byte that a file needs is not what was stored.
    """
    yield params(state)
    names = detail_names(state.tasks.values())
    for task in state.tasks.values():
        yield from retry_files(task, names[task.id], state, blobs)
        if has_record(task):
            yield record_file(task, names[task.id], state, blobs)
    yield summary_counts(state)
    yield summary(state)
    yield from analysis_files(state, blobs)
    yield run_info(state, blobs)


__all__ = ["LAYOUT", "build_detail_record", "export_details"]
