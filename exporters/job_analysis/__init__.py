"""The analysis of a job: what failed and why, by which kinds of tasks, and what goes with success.

Everything is computed from the events of one ledger prefix and one configuration, so the same two
give the same bytes. Content and formulas of every file: `docs/analysis.md`.
"""

from collections.abc import Iterable, Iterator

from exporters import OutFile
from exporters.identity import Identity
from exporters.job_analysis.config import AnalysisConfig, EmpiricalSource, config_file
from exporters.job_analysis.difficulty import empirical_source
from exporters.job_analysis.groups import Groups
from exporters.job_analysis.instance_report import instance_files
from exporters.job_analysis.instances import instances_file, read_instances
from exporters.job_analysis.manifest import with_manifest
from exporters.job_analysis.reports import report_files
from exporters.job_analysis.task_report import task_report
from exporters.job_analysis.traj_report import traj_report
from ledger.state import RunState
from ledger.view import Blobs

DIRECTORY = "analysis"


def analyze_job(
    state: RunState, blobs: Blobs, config: AnalysisConfig | None = None
) -> Iterator[OutFile]:
    """Yield the files of the analysis, their paths relative to its directory, the manifest last.

    Memory is bounded by the largest single value of an event plus a few kilobytes an instance.
    Raises RunNotFound where the ledger holds no run, LedgerDamaged where a byte is not as stored.
    """
    identity = Identity.of(state)
    yield from with_manifest(_files(state, blobs, config or AnalysisConfig(), identity), identity)


def _files(
    state: RunState, blobs: Blobs, asked: AnalysisConfig, identity: Identity
) -> Iterable[OutFile]:
    config = asked.of_run(state)
    instances = read_instances(state, blobs, config)
    groups = Groups.of(instances)
    yield instances_file(state, instances)
    yield from report_files(groups, config, identity)
    if config.task_analysis.enabled:
        yield task_report(groups, config, identity)
    if config.traj_analysis.enabled:
        yield traj_report(groups, config, identity)
    if config.instance_analysis.enabled:
        yield from instance_files(groups, instances, config, identity)
    yield config_file(config)


__all__ = [
    "DIRECTORY",
    "AnalysisConfig",
    "EmpiricalSource",
    "analyze_job",
    "empirical_source",
]
