"""How hard a task is: as declared, by its gold patch, or by what other runs made of it.

Never by this run alone: a tier that is made of the outcomes it is compared with explains nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from exporters.job_analysis.config import (
    AnalysisConfig,
    Bands,
    EmpiricalSource,
    PeerRun,
    PeerTask,
)
from exporters.job_analysis.patches import Patch, fail_to_pass, gold_patch
from exporters.jobs.resolution import countable_attempts, is_resolved
from exporters.jobs.trial import harness_id, model_id
from ledger.state import RunState, TaskState
from ledger.statistics import wilson

UNKNOWN: Final = "unknown"
SCORES: Final = {"easy": 1, "medium": 2, "hard": 3, "very_hard": 4, "unsolved": 5}

_DECLARED: Final = ("easy", "medium", "hard", "very_hard")
# The labels of SWE-bench Verified: how long a person is thought to need.
_LABELS: Final = {
    "<15 min fix": "easy",
    "15 min - 1 hour": "medium",
    "1-4 hours": "hard",
    ">4 hours": "very_hard",
}
_UNDECLARED: Final = 1
_EASY, _MEDIUM, _HARD = 2, 5, 8


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier and where it comes from; `certain` is told of empirical ones."""

    name: str = UNKNOWN
    source: str = UNKNOWN
    certain: bool | None = None

    @property
    def score(self) -> int | None:
        """The tier as a number from 1; None where it is unknown."""
        return SCORES.get(self.name)


def tier_of(task: TaskState, config: AnalysisConfig) -> Tier:
    """The tier by the first source that answers: declared, structural, empirical."""
    label = declared_label(task.metadata)
    declared = label if label in _DECLARED else _LABELS.get(label or "")
    if declared is not None:
        return Tier(declared, "declared")
    gold = gold_patch(task.metadata)
    if gold is not None:
        return Tier(_structural(gold, fail_to_pass(task.metadata)), "structural")
    source = config.empirical_source
    peers = None if source is None else source.tasks.get(task.id)
    if peers is None:
        return Tier()
    enough = peers.n >= config.difficulty.min_attempts
    return _empirical(peers, config) if enough and _has_pairs(peers, config) else Tier()


def declared_label(metadata: Mapping[str, Any]) -> str | None:
    """The difficulty that the benchmark gives, as it gives it."""
    given = metadata.get("difficulty")
    return given if isinstance(given, str) and given else None


def _structural(gold: Patch, tests: int) -> str:
    points = 2 * _UNDECLARED + _size(gold.lines, len(gold.hunks))
    directories = {str(PurePosixPath(file).parent) for file in gold.files}
    points += 2 if len(directories) > 1 else 1 if len(gold.files) > 1 else 0
    points += tests > 3
    if points <= _EASY:
        return "easy"
    if points <= _MEDIUM:
        return "medium"
    return "hard" if points <= _HARD else "very_hard"


def _size(lines: int, hunks: int) -> int:
    steps = ((50, 10, 3), (20, 5, 2), (5, 2, 1))
    return next((p for most, many, p in steps if lines > most or hunks > many), 0)


def _has_pairs(peers: PeerTask, config: AnalysisConfig) -> bool:
    return peers.pairs >= config.difficulty.min_pairs


def _empirical(peers: PeerTask, config: AnalysisConfig) -> Tier:
    bands = config.difficulty.thresholds
    name = _band(peers.k / peers.n, bands)
    bounds = wilson(peers.k, peers.n)
    assert bounds is not None
    return Tier(name, "empirical", all(_band(bound, bands) == name for bound in bounds))


def _band(rate: float, bands: Bands) -> str:
    for name, least in bands:
        if rate >= least:
            return str(name)
    return "very_hard" if rate > 0 else "unsolved"


@dataclass(slots=True)
class _Tally:
    n: int = 0
    k: int = 0
    pairs: set[tuple[str, str | None]] = field(default_factory=set)


def empirical_source(state: RunState, peers: Iterable[RunState]) -> EmpiricalSource:
    """What other runs made of the tasks of `state`: their evaluated attempts, task by task.

    Counted are runs of the same benchmark and version, and tasks with the same input. Copies of
    one attempt count once, in the first run that has one, and those that this run holds too count
    for nothing, so that no run decides over itself. Peers are taken one at a time.
    """
    own = {attempt.identity for _, attempt in state.attempts()}
    seen: set[bytes | None] = own | {None}
    tallies: dict[str, _Tally] = {}
    runs = [
        _named(peer)
        for peer in peers
        if _is_peer(state, peer) and _count(state, peer, tallies, seen)
    ]
    tasks = {
        task_id: PeerTask(n=tally.n, k=tally.k, pairs=len(tally.pairs))
        for task_id, tally in sorted(tallies.items())
    }
    return EmpiricalSource(
        runs=sorted(runs, key=lambda one: (one.run_id, one.ledger_id)), tasks=tasks
    )


def _is_peer(state: RunState, peer: RunState) -> bool:
    same = (peer.benchmark, peer.benchmark_version) == (state.benchmark, state.benchmark_version)
    return same and peer.ledger_id != state.ledger_id


def _count(
    state: RunState, peer: RunState, tallies: dict[str, _Tally], seen: set[bytes | None]
) -> bool:
    """Count the attempts of one run; whether there were any that count."""
    pair = (harness_id(peer), model_id(peer))
    before = len(seen)
    for task_id, theirs in peer.tasks.items():
        ours = state.tasks.get(task_id)
        if ours is None or ours.checksum != theirs.checksum:
            continue
        for attempt in countable_attempts(theirs):
            if attempt.verdict and attempt.identity not in seen:
                seen.add(attempt.identity)
                tally = tallies.setdefault(task_id, _Tally())
                tally.n += 1
                tally.k += is_resolved(theirs, attempt)
                tally.pairs.add(pair)
    return len(seen) > before


def _named(peer: RunState) -> PeerRun:
    return PeerRun(
        run_id=peer.run_id, ledger_id=peer.ledger_id, size=peer.size, root=peer.root.hex()
    )
