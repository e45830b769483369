"""`summary.md`: a run for people, every number with what it was counted over and what it left out.

All of it is computed from the state; nothing is told that the ledger does not hold.
"""

from collections import Counter
from collections.abc import Iterator

from exporters import OutFile
from exporters.counts import (
    COUNTS,
    NO_METRICS,
    UNCATEGORIZED,
    MetricRow,
    category_rows,
    counts_by_category,
    metric_rows,
)
from exporters.identity import Salvaged
from exporters.markdown import DASH, escape, number, table
from ledger import canonical
from ledger.events import Claim
from ledger.state import Counts, Origin, RunState, Spend

SUMMARY = "summary.md"
_METRIC_COLUMNS = (
    "Metric",
    "Value",
    "Numerator / denominator",
    "Left out",
    "95 % interval",
    "Estimator",
    "Policy for errors",
)
_COST_COLUMNS = (
    "Model calls",
    "Calls",
    "Failed",
    "Lost",
    "Never ended",
    "Input tokens",
    "Output tokens",
    "Of unknown usage",
    "Cost USD",
    "Of unknown cost",
)
_FILTERS = ("task_ids", "category", "limit")
_SHOWN = 20


def summary(state: RunState) -> OutFile:
    """The file; sections without content are left out."""
    counts = state.counts()
    sections = (_head(state, counts), _metrics(state), _categories(state), _cost(state))
    lines = [*(line for section in sections for line in section), *_provenance(state, counts)]
    return OutFile(SUMMARY, ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))


def _head(state: RunState, counts: Counts) -> Iterator[str]:
    benchmark = state.benchmark or _requested(state, "benchmark")
    yield f"# {escape(benchmark.upper())} Evaluation Results"
    yield ""
    yield f"**Model:** {escape(_requested(state, 'model'))}  "
    yield f"**Harness:** {escape(_requested(state, 'harness'))}  "
    yield f"**Run:** {escape(state.run_id)}  "
    yield f"**Status:** {state.status}  "
    if isinstance(state, Salvaged):
        damage = f"its ledger is damaged at event {state.damaged_at}"
        yield f"**Salvaged:** {damage}, and what followed is not told  "
    yield f"**Started:** {state.started_at or DASH}  "
    yield f"**Finished:** {state.ended_at or DASH}  "
    yield f"**Attempts per task:** {state.k}, strategy {escape(state.strategy)}  "
    yield f"**Selection:** {_selection(state)}"
    yield ""
    for name in COUNTS:
        title = "Files with errors" if name == "files_error" else name.capitalize()
        yield f"**{title}:** {getattr(counts, name)}" + ("" if name == COUNTS[-1] else "  ")
    if counts.missing:
        yield ""
        yield f"{counts.missing} of {counts.total} tasks have neither a verdict nor an error."
    never_ended = sum(attempt.finished is None for _, attempt in state.attempts())
    if never_ended:
        yield ""
        yield f"{never_ended} of {counts.attempts} attempts never ended."


def _requested(state: RunState, section: str) -> str:
    given = state.request.get(section)
    return str(given.get("id") or DASH) if isinstance(given, dict) else DASH


def _selection(state: RunState) -> str:
    given = state.request.get("benchmark")
    params = given.get("params") if isinstance(given, dict) else None
    wanted = params if isinstance(params, dict) else {}
    used = [name for name in _FILTERS if wanted.get(name) is not None]
    return ", ".join(f"{name} = {escape(str(wanted[name]))}" for name in used) or "all tasks"


def _metrics(state: RunState) -> Iterator[str]:
    yield ""
    yield "## Metrics"
    yield ""
    rows = metric_rows(state)
    if not rows:
        yield f"None: {NO_METRICS}."
        return
    yield from table(_METRIC_COLUMNS, (_metric(name, row) for name, row in rows.items()))


def _metric(name: str, row: MetricRow) -> tuple[str, ...]:
    interval = DASH
    if row.interval is not None:
        bounds = f"{number(row.interval.low)} to {number(row.interval.high)}"
        interval = f"{bounds} ({escape(row.interval.name)})"
    policy = escape(row.policy or DASH)
    if row.counted_as_zero:
        policy += f": {_by_reason(row.counted_as_zero)}"
    return (*_value(name, row), interval, escape(row.estimator or DASH), policy)


def _value(name: str, row: MetricRow) -> tuple[str, ...]:
    """Name, value, what it was counted over, and what was left out."""
    value = number(row.value)
    if row.value is None and row.reason is not None:
        value = f"{DASH} ({escape(row.reason)})"
    over = number(row.denominator)
    if row.numerator is not None and row.denominator is not None:
        over = f"{number(row.numerator)} / {over}"
    return escape(name), value, over, _by_reason(row.excluded)


def _by_reason(counted: dict[str, int]) -> str:
    return ", ".join(f"{n} {escape(reason)}" for reason, n in sorted(counted.items()) if n) or "0"


def _categories(state: RunState) -> Iterator[str]:
    found = counts_by_category(state)
    if set(found) <= {UNCATEGORIZED}:
        return
    yield ""
    yield "## Categories"
    yield ""
    header = ("Category", *(name.capitalize() for name in COUNTS[:-1]), "Correct of judged")
    # Whatever has no category stands last.
    ordered = sorted(found, key=lambda name: (name == UNCATEGORIZED, name))
    yield from table(header, (_category(name, found[name]) for name in ordered))
    metrics = category_rows(state)
    for name in ordered:
        if metrics.get(name):
            yield from ("", f"### {escape(name)}", "")
            rows = (_value(metric, row) for metric, row in metrics[name].items())
            yield from table(_METRIC_COLUMNS[:4], rows)


def _category(name: str, counts: Counts) -> tuple[str, ...]:
    judged = counts.correct + counts.incorrect
    share = f"{counts.correct} / {judged} = {counts.correct / judged:.4f}" if judged else DASH
    return (escape(name), *(str(getattr(counts, field)) for field in COUNTS[:-1]), share)


def _cost(state: RunState) -> Iterator[str]:
    counted, discarded, everything, reused = Spend(), Spend(), Spend(), Spend()
    for _, attempt in state.attempts():
        own_counted, own_discarded = attempt.own_spend()
        counted.add(own_counted)
        discarded.add(own_discarded)
        reused.add(attempt.spend)
        reused.add(attempt.discarded)
    everything.add(counted)
    everything.add(discarded)
    yield ""
    yield "## Cost and tokens"
    yield ""
    if not reused.calls:
        yield "No model calls were recorded."
        return
    rows = (
        ("This run, counted tries", counted),
        ("This run, discarded tries", discarded),
        ("This run", everything),
        ("With reuse", reused),
    )
    yield from table(_COST_COLUMNS, (_spend(title, spend) for title, spend in rows))


def _spend(title: str, spend: Spend) -> tuple[str, ...]:
    # What a call costs that never ended nobody knows; an empty sum is known to be 0.
    no_usage = spend.unknown_usage + spend.open_calls
    no_cost = spend.unknown_cost + spend.open_calls
    known_usage = spend.calls > no_usage or not spend.calls
    known_cost = spend.calls > no_cost or not spend.calls
    return (
        title,
        str(spend.calls),
        str(spend.failed_calls),
        str(spend.lost_calls),
        str(spend.open_calls),
        str(spend.input_tokens) if known_usage else DASH,
        str(spend.output_tokens) if known_usage else DASH,
        str(no_usage),
        f"{spend.cost_usd:.6f}" if known_cost else DASH,
        str(no_cost),
    )


def _provenance(state: RunState, counts: Counts) -> Iterator[str]:
    yield ""
    yield "## Where this comes from"
    yield ""
    yield f"- Retries: {counts.retries} discarded tries, each in `retry_details/`"
    yield f"- Reused tasks: {counts.reused} of {counts.total}{_source(state)}"
    yield from _reused_otherwise(state, counts)
    if state.imported is not None:
        told = f"{escape(state.imported.format)}, identity `{state.imported.identity}`"
        yield f"- Imported from: {told}"
    yield from _evaluators(state)
    yield f"- Redactions: {state.redactions}"
    yield f"- Ledger: `{state.ledger_id}`"
    yield f"- Size: {state.size} events"
    yield f"- Root: `{state.root.hex()}`"


def _reused_otherwise(state: RunState, counts: Counts) -> Iterator[str]:
    """What else a reader of the numbers should know of what was reused."""
    if counts.reused_attempts:
        made = (one for task in state.tasks.values() for one in task.reused_attempts)
        runs = sorted({one.source_run for one in made if one.source_run is not None})
        source = ", ".join(f"run {escape(run_id)}" for run_id in runs)
        yield f"- Reused attempts: {counts.reused_attempts}, from {source}, evaluated in this run"
    reused = [task for task in state.tasks.values() if task.reused]
    others = [task for task in reused if not task.has_attempts_of(state.k, state.strategy)]
    if others:
        held = Counter(len(task.attempts) for task in others)
        told = ", ".join(f"{n} with {made}" for made, n in sorted(held.items()))
        yield (
            f"- Reused tasks with another number of attempts than this run makes"
            f" (k={state.k}, strategy {escape(state.strategy)}): {len(others)}, {told}"
        )
    changed = [task.id for task in reused if task.source_checksum is not None]
    if changed:
        names = ", ".join(map(escape, changed[:_SHOWN]))
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        yield f"- Reused although their input changed: {len(changed)} ({names}{more})"
    yield from _differences(state)


def _differences(state: RunState) -> Iterator[str]:
    """A line for each setting with which reused tasks ran otherwise than this run was asked for."""
    if state.frozen is None:
        return
    for one in state.frozen.differences or ():
        run_id = escape(one.run_id or state.frozen.run_id or DASH)
        there, here = (escape(canonical.encode(value).decode()) for value in (one.before, one.now))
        # Reused tasks may hold other attempts than their source was to make: see above.
        how = "Asked for" if one.path.startswith("execution.") else "Run"
        yield f"- {how} otherwise in run {run_id}: {escape(one.path)}, there {there}, here {here}"


def _evaluators(state: RunState) -> Iterator[str]:
    judges = Counter(attempt.evaluator for _, attempt in state.attempts() if attempt.evaluator)
    if judges:
        shown = (
            f"{escape(' '.join(judge))} ({n} attempt{'s' * (n != 1)})"
            for judge, n in sorted(judges.items())
        )
        yield f"- {'Mixed evaluators' if len(judges) > 1 else 'Evaluator'}: {', '.join(shown)}"


def _source(state: RunState) -> str:
    origins = set()
    for task in state.tasks.values():
        source: Origin | Claim | None = task.origin or task.claim
        if task.origin is not None and task.origin.claim is not None:
            # The ledger of their import was not kept: named is the one that the files name.
            source = task.origin.claim
        if source is not None:
            origins.add((source.run_id, source.ledger_id, source.size, source.root))
    told = (
        f"run {escape(run_id)} (ledger `{ledger_id}`, {size} events, root `{root}`)"
        for run_id, ledger_id, size, root in sorted(origins)
    )
    return "".join(f", from {source}" for source in told)
