"""The state of one attempt: its verdict, what it cost, and where its events stand.

No large value is kept, only the number of the event that holds it.
"""

from dataclasses import dataclass, field

from ledger import events as ev
from ledger.transitions import ERROR_STATUSES


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


@dataclass(slots=True)
class AttemptState:
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

    number: int
    copied: bool = False
    origin: Origin | None = None
    claim: ev.Claim | None = None
    anew: bool = False
    status: ev.AttemptStatus | None = None
    phase: ev.Phase | None = None
    correct: bool | None = None
    score: float | None = None
    metrics: dict[str, bool | int | float] = field(default_factory=dict)
    measures: dict[str, bool | int | float] = field(default_factory=dict)
    fatal: bool = False
    answer: bytes | None = None
    started: int | None = None
    plan: int | None = None
    result: int | None = None
    result_address: bytes | None = None
    artifacts: int | None = None
    evaluation: int | None = None
    evaluation_address: bytes | None = None
    evaluator: tuple[str, str] | None = None
    analyses: list[int] = field(default_factory=list)
    retries: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    call_ends: list[int] = field(default_factory=list)
    tools: list[int] = field(default_factory=list)
    phases: list[int] = field(default_factory=list)
    finished: int | None = None
    finished_address: bytes | None = None
    spend: Spend = field(default_factory=Spend)
    discarded: Spend = field(default_factory=Spend)
    elsewhere: tuple[Spend, Spend] | None = None
    lost: dict[str, Spend] = field(default_factory=dict)
    erased: list[int] = field(default_factory=list)
    origin_erased: bool = False
    started_ns: int = 0
    finished_ns: int = 0

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
        self.phases = []
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
        return self.finished is not None and self.finished in self.erased

    @property
    def verdict_erased(self) -> bool:
        """True if the evaluation's body was erased, so that its verdict is not known any more."""
        return self.evaluation is not None and self.evaluation in self.erased

    @property
    def identity(self) -> bytes | None:
        """What makes copies of one attempt one attempt: its result's address, else its end's."""
        return self.result_address or self.finished_address
