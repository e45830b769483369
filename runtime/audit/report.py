"""What an audit says: of the registry, and of each run that is known from it or found on disk."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from ledger.state import Spend
from ledger.verify import Finding

Severity = Literal["broken", "failed", "note"]
Kind = Literal[
    "sealed", "interrupted", "running", "empty", "damaged", "unreadable", "missing", "replaced"
]
Registered = Literal["yes", "late", "no"]

EXIT_STATUS: Final[dict[Severity, int]] = {"broken": 4, "failed": 1, "note": 0}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that an auditor should know.

    `broken`: what is stored contradicts itself or the registry. `failed`: something that should be
    there is not. `note`: worth knowing.
    """

    code: str
    severity: Severity
    message: str

    @classmethod
    def of(cls, finding: Finding) -> "Problem":
        """A contradiction that verification found."""
        where = "" if finding.seq is None else f"event {finding.seq}: "
        return cls(finding.code, "broken", f"{where}{finding.message}")


@dataclass(frozen=True, slots=True)
class Cost:
    """Model calls and what is known of their tokens and USD.

    `cost_usd` and the tokens are None where they are known of no call, else the sum of what is
    known; `unknown_usage` and `unknown_cost` count the calls that it lacks.
    """

    calls: int
    input_tokens: int | None
    output_tokens: int | None
    unknown_usage: int
    cost_usd: float | None
    unknown_cost: int

    @classmethod
    def of(cls, spend: Spend) -> "Cost":
        """What was spent; calls that are open are not told of yet."""
        silent = spend.open_calls
        usage, cost = spend.unknown_usage + silent, spend.unknown_cost + silent
        knows_usage = usage < spend.calls or not spend.calls
        return cls(
            calls=spend.calls,
            input_tokens=spend.input_tokens if knows_usage else None,
            output_tokens=spend.output_tokens if knows_usage else None,
            unknown_usage=usage,
            cost_usd=spend.cost_usd if cost < spend.calls or not spend.calls else None,
            unknown_cost=cost,
        )


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts of a run.

    `planned` are tasks times attempts a task, by the registry if it knows, else by the ledger; None
    where the plan was open. `made` are those of this run, `reused` those that ran in another one.
    `discarded_tries` were retried and count nowhere, `repeated_evaluations` are verdicts that were
    asked for once more, of an own attempt or of a reused one; `spent` is all that this run spent,
    `discarded` the part of it that went into discarded tries.
    """

    planned: int | None
    made: int
    reused: int
    without_end: int
    errors: int
    skipped: int
    stopped_early: int
    cancelled_tasks: int
    discarded_tries: int
    repeated_evaluations: int
    spent: Cost
    discarded: Cost


@dataclass(frozen=True, slots=True)
class Share:
    """What a published number rests on.

    `attempts` are those whose value is in it, of `planned_attempts`, and `tasks` those with a
    value, of `planned_tasks`; None where it is not told. `zeros` counts attempts that stand in
    it as zero, and `left_out` the attempts and tasks that do not, each by the reason. `value` is
    None for a number that could not be published, with the reason `why`.
    """

    metric: str
    value: float | None
    why: str | None
    tasks: int | None
    planned_tasks: int | None
    attempts: int | None
    planned_attempts: int | None
    zeros: dict[str, int]
    left_out_attempts: dict[str, int]
    left_out_tasks: dict[str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """A run that tasks or single attempts were reused from; `on_disk` is where it is now."""

    run_id: str
    ledger_id: str
    tasks: int
    attempts: int
    on_disk: str | None


@dataclass(slots=True)
class RunReport:
    """One run: where it is, what the registry says of it, and what its ledger says.

    `path` is below the results directory. `kind` says what is on disk; `status` how the run
    ended by itself, `interrupted` if it did not. `export` is `matches`, `differs`, `none` (no
    export ended beside the ledger) or `unchecked`. What is not known is None.
    """

    path: str
    kind: Kind
    run_id: str | None = None
    ledger_id: str | None = None
    registered: Registered = "no"
    opened_at: str | None = None
    sealed_at: str | None = None
    status: str | None = None
    imported: bool = False
    size: int | None = None
    root: str | None = None
    signatures: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    attempts: Attempts | None = None
    metrics: list[Share] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    export: Literal["matches", "differs", "none", "unchecked"] = "unchecked"
    problems: list[Problem] = field(default_factory=list)

    def add(self, code: str, severity: Severity, message: str) -> None:
        """Add one thing to know."""
        self.problems.append(Problem(code, severity, message))


@dataclass(slots=True)
class RegistryReport:
    """The registry itself; `found` is False where there is none. `entries` counts its events."""

    found: bool = False
    ledger_id: str | None = None
    entries: int = 0
    size: int | None = None
    root: str | None = None
    signatures: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def exit_status(problems: Iterable[Problem]) -> int:
    """Return 4 if anything is broken, 1 if something failed, else 0."""
    return max((EXIT_STATUS[problem.severity] for problem in problems), default=0)


def document(report: RunReport | RegistryReport) -> dict[str, Any]:
    """A report as JSON values."""
    return asdict(report)
