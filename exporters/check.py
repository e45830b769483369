"""Comparing an exported directory with what the ledger says its files must be."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from exporters import Exporter, find_exporter
from exporters.agentcompass.kept import is_kept_run
from exporters.agentcompass.tree import check_run_directory
from exporters.folder import Folder
from exporters.identity import Identity, Salvaged
from exporters.job_analysis import AnalysisConfig, analyze_job
from exporters.job_analysis.config import CONFIG_FILE
from exporters.job_analysis.manifest import MANIFEST as ANALYSIS_MANIFEST
from exporters.job_analysis.manifest import read_analysis_manifest
from exporters.jobs.job import LAYOUT as JOBS
from exporters.jobs.job import JobOptions, job_files
from exporters.jobs.names import ANALYSIS
from exporters.manifest import MANIFEST, MAX_BYTES, Manifest, manifest_file, read_manifest
from exporters.projection import Comparison, digest_of
from exporters.tiles import CHECKPOINT, Log
from exporters.tiles_check import check_tiles
from ledger.errors import AclError, ExportRefused, UsageError
from ledger.state import RunState
from ledger.verify.finding import Finding, broken, remark
from ledger.view import Blobs


def check_tree(
    state_at: Callable[[int], RunState],
    blobs: Blobs,
    directory: Path,
    *,
    ledger_id: str,
    size: int,
    find: Callable[[str], Exporter] = find_exporter,
) -> Iterator[Finding]:
    """Project the ledger as of the manifest's size; yield a finding for each file that is not so.

    `state_at(n)` folds the first n events, `size` is how many there are now, `ledger_id` is in
    hex. A file that needs something erased is told as not checkable. Raises ExportRefused where
    the directory cannot be read, UsageError for a layout that is not installed.
    """
    try:
        folder = Folder.open(directory.resolve())
    except FileNotFoundError:
        raise ExportRefused(f"{directory} does not exist") from None
    with folder:
        try:
            manifest = read_manifest(folder)
        except ExportRefused as error:
            if _is_analysis(folder):
                yield from _analysis(folder, "", state_at, blobs, state_at(size))
            else:
                yield broken("tree_manifest", error.message)
            return
        if manifest is None:
            yield from _without_manifest(folder, blobs, size, state_at)
            return
        why = _not_of_this_ledger(manifest, ledger_id, size)
        if why is not None:
            yield broken("tree_ledger", why)
            return
        state = state_at(manifest.acl.size)
        if state.root.hex() != manifest.acl.root:
            yield broken("tree_root", f"the first {state.size} events have another root")
            return
        now = state if state.size == size else state_at(size)
        if manifest.acl.salvaged is not None:
            # The files say so, and this ledger may be the copy that is not damaged.
            state = Salvaged.of(state, manifest.acl.salvaged.damaged_at)
        # What was erased after the export is told like what was erased before it.
        erased = replace(state, erasures=now.erasures)
        exporter = _exporter(manifest, find)
        yield from _whole(folder, manifest, erased, blobs, exporter)
        if manifest.layout == JOBS:
            yield from _analysis(folder, f"{ANALYSIS}/", state_at, blobs, now)
        if size > state.size:
            yield remark("tree_older", f"the export is of the first {state.size} of {size} events")


def _without_manifest(
    folder: Folder, blobs: Blobs, size: int, state_at: Callable[[int], RunState]
) -> Iterator[Finding]:
    """A log of tiles needs none, nor does a run directory of another program."""
    if isinstance(blobs, Log) and folder.holds(CHECKPOINT):
        yield from check_tiles(blobs, folder, size)
    elif is_kept_run(state := state_at(size), blobs):
        yield from check_run_directory(state, blobs, folder)
    else:
        yield broken("tree_manifest", f"{folder.path} has no {MANIFEST}: no export ended here")


def _exporter(manifest: Manifest, find: Callable[[str], Exporter]) -> Exporter:
    """What the files were made with; a job is looked at from its own directory."""
    if manifest.layout == JOBS:
        return partial(job_files, options=JobOptions.of(manifest.options))
    return find(manifest.layout)


def _not_of_this_ledger(manifest: Manifest, ledger_id: str, size: int) -> str | None:
    if manifest.acl.ledger_id != ledger_id:
        return f"the export is of ledger {manifest.acl.ledger_id}"
    if manifest.acl.size > size:
        return f"the export is of {manifest.acl.size} events, the ledger has {size}"
    return None


def _whole(
    folder: Folder, manifest: Manifest, state: RunState, blobs: Blobs, exporter: Exporter
) -> Iterator[Finding]:
    """The files of the export, then the listing of them."""
    comparison = Comparison(folder, state, blobs)
    # The analysis of a job has a manifest of its own.
    beside = {MANIFEST, *([f"{ANALYSIS}/"] if manifest.layout == JOBS else [])}
    yield from comparison.run(exporter, beside)
    if comparison.is_clean:
        identity = Identity.of(state)
        listing = manifest_file(comparison.entries, identity, manifest.layout, manifest.options)
        if folder.digest(MANIFEST) != digest_of(listing):
            yield broken("tree_manifest", f"{MANIFEST} is not what the ledger says")


def _is_analysis(folder: Folder) -> bool:
    """Whether the directory is an analysis by itself."""
    try:
        read_analysis_manifest(_read(folder, ANALYSIS_MANIFEST))
    except (FileNotFoundError, ExportRefused):
        return False
    return True


def _analysis(
    folder: Folder,
    prefix: str,
    state_at: Callable[[int], RunState],
    blobs: Blobs,
    now: RunState,
) -> Iterator[Finding]:
    """The files of an analysis, made again with the configuration that stands beside them.

    There need not be one: where analysis failed, or was not asked for, nothing stands there.
    """
    if not any(path.startswith(prefix) for path in folder.files()):
        return
    try:
        manifest = read_analysis_manifest(_read(folder, f"{prefix}{ANALYSIS_MANIFEST}"))
        config = AnalysisConfig.parse(_read(folder, f"{prefix}{CONFIG_FILE}"))
    except (FileNotFoundError, ExportRefused, UsageError) as error:
        yield broken("tree_analysis", f"the analysis is not whole: {_words(error)}")
        return
    source = manifest.source
    if source.ledger_id != now.ledger_id or source.size > now.size:
        yield broken("tree_ledger", f"the analysis is of ledger {source.ledger_id}")
        return
    state = now if source.size == now.size else state_at(source.size)
    if state.root.hex() != source.root:
        yield broken("tree_root", f"the first {state.size} events have another root")
        return
    if config.acl is not None and config.acl.salvaged is not None:
        state = Salvaged.of(state, config.acl.salvaged.damaged_at)
    erased = replace(state, erasures=now.erasures)
    comparison = Comparison(folder, erased, blobs, prefix=prefix)
    yield from comparison.run(partial(analyze_job, config=config))


def _read(folder: Folder, path: str) -> bytes:
    with folder.reading(path) as file:
        return file.read(MAX_BYTES)


def _words(error: Exception) -> str:
    return error.message if isinstance(error, AclError) else "a file is missing"
