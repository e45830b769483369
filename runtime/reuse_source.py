"""A run that is reused, open for reading as it was when it was chosen; no byte of it changes."""

import hashlib
import json
import logging
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from ledger import lock
from ledger.closing import discard
from ledger.copying import copy_ledger
from ledger.errors import LedgerLocked, NotALedger, UsageError
from ledger.events import Claim, Differing
from ledger.fold import fold
from ledger.opening import ledger_file
from ledger.state import RunState
from ledger.store import Ledger
from ledger.view import LedgerView
from runtime.importers import Remark, import_for_reuse, needs_import
from runtime.importers.run_info import MANIFEST
from runtime.recorder import Recorder
from runtime.redact import Redactor
from runtime.reuse_index import SourceIndex

Mode = Literal["explicit", "implicit"]

RUN_INFO: Final = "run_info.json"
_SHOWN: Final = 5

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReuseSource:
    """The run that is reused: its state, and a way to its events.

    `running` names who was writing to it, `exported_from` the ledger that it says to be projected
    from, if it was read from exported files. `differences` are what its tasks were run with
    otherwise, `reconfigured` whether it was itself asked for another configuration.
    """

    mode: Mode
    run_id: str
    path: str
    view: LedgerView
    state: RunState
    index: SourceIndex
    run_info_sha256: str | None = None
    running: str | None = None
    exported_from: Claim | None = None
    differences: tuple[Differing, ...] = ()
    reconfigured: bool = False
    _opened: ExitStack = field(default_factory=ExitStack)

    def close(self) -> None:
        """Let go of the source; may be called again."""
        self._opened.close()


def open_source(path: Path, results_dir: Path, mode: Mode, redactor: Redactor) -> ReuseSource:
    """Open the run in the directory `path`: its ledger, else the files that were exported from it.

    A run that is being written is read from a snapshot, a run without a ledger is imported into a
    temporary folder first. Raises NotALedger where there is neither, UsageError for an export of
    ours that was changed since, and what opening a ledger and importing raise.
    """
    with ExitStack() as opened:
        exported_from = running = None
        if needs_import(path):
            exported_from = _exported_from(path)
            is_export = exported_from is not None or (path / MANIFEST).exists()
            view = _imported(path, opened, redactor, is_export=is_export)
        elif ledger_file(path).exists():
            view, running = _reader(path, opened)
        else:
            raise NotALedger(f"{path} holds neither a ledger nor a {RUN_INFO}")
        index = SourceIndex()
        state = fold(index.watch(view.events()))
        if state.created is None:
            raise NotALedger(f"{path} holds no run")
        return ReuseSource(
            mode=mode,
            run_id=state.run_id,
            path=path.relative_to(results_dir).as_posix(),
            view=view,
            state=state,
            index=index,
            run_info_sha256=_digest(path / RUN_INFO),
            running=running,
            exported_from=exported_from,
            _opened=opened.pop_all(),
        )


def _digest(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


# -- a ledger ----------------------------------------------------------------------------------


def _reader(path: Path, opened: ExitStack) -> tuple[LedgerView, str | None]:
    """A reader of the ledger, and who writes to it now."""
    writer = lock.holder(ledger_file(path))
    if writer is None:
        try:
            return _entered(opened, LedgerView.open(path, pristine=True)), None
        except LedgerLocked as error:
            # Somebody began to write just now.
            writer = error.holder
    # A reader of the file itself would keep its writer from folding it at the end.
    return _entered(opened, LedgerView.open(copy_ledger(path, _folder(opened)))), writer


def _entered(opened: ExitStack, view: LedgerView) -> LedgerView:
    opened.callback(view.close)
    return view


def _folder(opened: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="acl-"))
    opened.callback(discard, folder)
    return folder


# -- exported files ----------------------------------------------------------------------------


def _imported(path: Path, opened: ExitStack, redactor: Redactor, *, is_export: bool) -> LedgerView:
    """A reader of the ledger that an import of these files gives."""
    report = import_for_reuse(path, results_dir=_folder(opened), create=_creating(redactor))
    if is_export and report.damaged:
        # The new ledger would claim that this came from a ledger which never said so.
        raise _changed(path, [remark for remark in report.unplaced if remark.damage])
    lost = [remark for remark in report.unplaced if remark.damage or not remark.placed]
    for remark in lost[:_SHOWN]:
        _log.warning("%s: %s: %s", path.name, remark.source, remark.reason)
    if len(lost) > _SHOWN:
        _log.warning("%s: and %d more", path.name, len(lost) - _SHOWN)
    return _entered(opened, LedgerView.open(report.path))


def _changed(path: Path, remarks: Sequence[Remark]) -> UsageError:
    told = "; ".join(f"{remark.source}: {remark.reason}" for remark in remarks[:_SHOWN])
    more = f"; and {len(remarks) - _SHOWN} more" if len(remarks) > _SHOWN else ""
    return UsageError(
        f"the exported files in {path.name} are not as they were exported: {told}{more}",
        hint="export the run again, or see what `acl import` makes of them",
    )


def _creating(redactor: Redactor) -> Callable[[Path], Recorder]:
    return lambda directory: Recorder(Ledger.create(directory), redactor)


def _exported_from(path: Path) -> Claim | None:
    """The ledger that exported files say they are projected from; None where they say nothing."""
    try:
        document = json.loads((path / RUN_INFO).read_bytes())
        told: Any = document["acl"]
        fields = {name: told[name] for name in Claim.model_fields}
        return Claim.model_validate(fields)
    except (ValueError, KeyError, TypeError, ValidationError):
        return None
