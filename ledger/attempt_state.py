"""The state of one attempt: its verdict, what it cost, and where its events stand.

No large value is kept, only the number of the event that holds it.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final, get_args

from ledger import events as ev
from ledger.packed import Field, Layout, Packed, Rare, rare_or_none
from ledger.transitions import ERROR_STATUSES

Measures = dict[str, bool | int | float]

_PLACE: Final = struct.Struct(">Q")
_NO_MEASURES: Final[Measures] = {}


def _nothing() -> Measures:
    return _NO_MEASURES


@dataclass(slots=True)
class Spend:
    """Model calls, their tokens and their cost in USD; what a provider did not say is counted.

    `open_calls` were started and neither finished nor lost: of an attempt that is open.
    """

    calls: int = 0
    open_calls: int = 0
    failed_calls: int = 0
    lost_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unknown_usage: int = 0
    cost_usd: float = 0.0
    unknown_cost: int = 0

    def add(self, other: "Spend") -> None:
        """Add `other` to this."""
        self.calls += other.calls
        self.open_calls += other.open_calls
        self.failed_calls += other.failed_calls
        self.lost_calls += other.lost_calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.unknown_usage += other.unknown_usage
        self.cost_usd += other.cost_usd
        self.unknown_cost += other.unknown_cost

    def minus(self, other: "Spend") -> "Spend":
        """What is left of this without `other`, which is part of it."""
        names = self.__dataclass_fields__
        return Spend(**{name: getattr(self, name) - getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reused task or attempt comes from: another ledger, at a size with a root.

    `claim` is given where that ledger was only an import of exported files, made to be reused: it
    is what the files say they come from.
    """

    run_id: str
    path: str | None
    ledger_id: str
    size: int
    root: str
    seq: int
    claim: ev.Claim | None = None


_layout: Final = Layout()


class AttemptState(Packed):
    """One attempt: its verdict, its errors, and where its events stand.

    `status` is None while the attempt is open. `result`, `evaluation` and the like are sequence
    numbers; `answer` is the SHA-256 of the canonical final answer, `measures` what the harness
    measured, `metrics` what the evaluation did. `phases` are those of the counted try; `calls` are
    the starts of its model calls, `call_ends` whatever was told of their ends and `tools` the ends
    of its tools, over all tries. `spend` is of the counted try, `discarded` of the tries that were
    retried; `lost` names the calls that were given up and where they were counted, since their end
    may still be told. `copied` is also true where an import was told so. `elsewhere` is the part
    of both that an attempt which came alone brought along, from the moment on when this run went
    on with it; `anew` is true where this run made it once more. `erased` are its events whose body
    is gone, and `origin_erased` says that where it was reused from is among them.
    """

    __slots__ = ("evaluator", "number", "score")

    number: int
    score: bool | int | float | None
    evaluator: tuple[str, str] | None

    started = _layout.number()
    plan = _layout.number()
    result = _layout.number()
    artifacts = _layout.number()
    evaluation = _layout.number()
    finished = _layout.number()
    started_ns = _layout.count()
    finished_ns = _layout.count()
    answer = _layout.digest()
    result_address = _layout.digest()
    evaluation_address = _layout.digest()
    finished_address = _layout.digest()
    status: Field[ev.AttemptStatus | None] = _layout.word(None, *get_args(ev.AttemptStatus))
    phase: Field[ev.Phase | None] = _layout.word(None, *get_args(ev.Phase))
    correct: Field[bool | None] = _layout.word(None, False, True)
    copied: Field[bool] = _layout.word(False, True)
    anew: Field[bool] = _layout.word(False, True)
    fatal: Field[bool] = _layout.word(False, True)
    origin_erased: Field[bool] = _layout.word(False, True)

    origin: Rare[Origin | None] = rare_or_none()
    claim: Rare[ev.Claim | None] = rare_or_none()
    elsewhere: Rare[tuple[Spend, Spend] | None] = rare_or_none()
    metrics: Rare[Measures] = Rare(_nothing, shared=True)
    measures: Rare[Measures] = Rare(_nothing, shared=True)
    spend = Rare(Spend)
    discarded = Rare(Spend)
    lost: Rare[dict[str, Spend]] = Rare(dict)
    analyses: Rare[list[int]] = Rare(list)
    retries: Rare[list[int]] = Rare(list)
    calls: Rare[list[int]] = Rare(list)
    call_ends: Rare[list[int]] = Rare(list)
    tools: Rare[list[int]] = Rare(list)
    erased: Rare[list[int]] = Rare(list)

    def __init__(self, number: int, **fields: Any) -> None:
        self.number = number
        self.fixed = _layout.blank
        self.score = self.evaluator = self.rare = None
        for name, value in fields.items():
            setattr(self, name, value)

    def plain(self) -> tuple[object, ...]:
        """What two equal attempts have in common."""
        return (self.number, self.score, self.evaluator, *super().plain())

    @property
    def phases(self) -> list[int]:
        """Where the phases of the counted try began; the list is a copy."""
        return [at for (at,) in _PLACE.iter_unpack(self.fixed[_PHASES:])]

    def enter(self, phase: ev.Phase, seq: int) -> None:
        """Note that event `seq` began a phase."""
        self.phase = phase
        self.fixed += _PLACE.pack(seq)

    def misses(self, seq: int | None) -> bool:
        """True if the body of this event of the attempt was erased."""
        return seq in (self.held("erased") or ())

    @property
    def retry_count(self) -> int:
        """How many tries were discarded."""
        return len(self.held("retries") or ())

    @property
    def verdict(self) -> bool:
        """True if the benchmark gave a verdict: a truth value, or a score."""
        return self.correct is not None or self.score is not None

    @property
    def error(self) -> bool:
        """True if the attempt ended in a run or evaluation error. A wrong answer is none."""
        return self.status in ERROR_STATUSES

    @property
    def reused(self) -> bool:
        """True if it ran in another run and came alone, by its copies or as an import was told."""
        return self.source_run is not None

    @property
    def source_run(self) -> str | None:
        """The run that it came alone from; None where it was made anew."""
        source = self.origin or self.claim
        return None if source is None or self.anew else source.run_id

    def forget_verdict(self) -> None:
        """Drop the verdict: the result is judged again, or another one is."""
        self.correct = self.score = None
        self.metrics = {}
        self.evaluation = self.evaluation_address = self.evaluator = None

    def begin_anew(self, *, copied: bool) -> None:
        """Set the try aside with what it cost; `copied` says that it was, where it first ran."""
        self.anew = self.origin is not None and not copied
        if self.elsewhere is not None:
            spent, discarded = self.elsewhere
            discarded.add(spent)
            self.elsewhere = Spend(), discarded
        self.discarded.add(self.spend)
        self.spend = Spend()
        self.lost = dict.fromkeys(self.lost, self.discarded)
        self.phase = None
        self.fixed = self.fixed[:_PHASES]
        self.plan = self.result = self.result_address = self.artifacts = None
        self.measures = {}
        self.answer = None

    def own_spend(self) -> tuple[Spend, Spend]:
        """(spend of the counted try, spend of discarded tries) in this run, whatever was copied."""
        if not self.copied:
            return self.spend, self.discarded
        if self.elsewhere is None:
            return Spend(), Spend()
        counted, discarded = self.elsewhere
        return self.spend.minus(counted), self.discarded.minus(discarded)

    @property
    def end_erased(self) -> bool:
        """True if the body of its end was erased, so that its status is not known any more."""
        return self.misses(self.finished)

    @property
    def verdict_erased(self) -> bool:
        """True if the evaluation's body was erased, so that its verdict is not known any more."""
        return self.misses(self.evaluation)

    @property
    def identity(self) -> bytes | None:
        """What makes copies of one attempt one attempt: its result's address, else its end's."""
        return self.result_address or self.finished_address


_PHASES: Final = len(_layout.blank)
"""Behind the fixed fields stand the numbers of the events that began a phase."""
