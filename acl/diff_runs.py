"""`acl diff RUN RUN`: which tasks changed their verdict, metrics side by side, what was set."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from acl.output import DASH, document, line, number, table
from acl.plain import plain
from ledger import LedgerView, RunState, fold
from runtime.comparison import (
    MetricPair,
    MetricSide,
    RunComparison,
    RunSide,
    TaskChange,
    TaskVerdict,
    compare_runs,
)

_NAMED = 20
_LONGEST = 60


def diff_runs(a: str | Path, b: str | Path, *, json: bool) -> int:
    """Compare two runs and print what differs; 0 if all verdicts are equal, else 1."""
    found = compare_runs(_state(a), _state(b))
    if json:
        document(plain(found.document()))
    else:
        _report(found)
    return 0 if found.equal else 1


def _state(run: str | Path) -> RunState:
    with LedgerView.open(run) as view:
        return fold(view.events())


def _report(found: RunComparison) -> None:
    sides = (found.before, found.after)
    table(("", "A", "B"), [(name, *values) for name, *values in _overview(*sides)])
    line()
    table(
        ("METRIC", "A", "95 % INTERVAL", "B", "95 % INTERVAL", "B - A", "NOTE"),
        map(_metric, found.metrics),
    )
    if found.settings:
        line()
        rows = [(s.path, _short(s.before), _short(s.after)) for s in found.settings]
        table(("SETTING", "A", "B"), rows)
    line()
    if found.changes:
        header = ("CHANGED", "TASK", "CATEGORY", "A", "B", "NOTE")
        table(header, map(_change, found.changes))
        line()
    for title, tasks in (
        ("only in A", found.only_before),
        ("only in B", found.only_after),
        ("not the same task in both, by its checksum", found.inputs_changed),
    ):
        if tasks:
            line(f"{title}: {_names(tasks)}")
    if found.shared:
        line(f"the very same attempts in both: {found.shared} tasks")
    line(_sentence(found))


def _overview(a: RunSide, b: RunSide) -> Iterator[tuple[object, ...]]:
    yield "run", a.run_id, b.run_id
    yield "status", a.status, b.status
    yield "ledger", a.ledger_id, b.ledger_id
    yield "events", a.size, b.size
    for name in ("total", "evaluated", "error", "missing", "skipped", "reused"):
        yield f"tasks {name}", getattr(a.counts, name), getattr(b.counts, name)
    yield "attempts", a.counts.attempts, b.counts.attempts
    yield "retries", a.counts.retries, b.counts.retries
    if a.spend_with_reuse.calls or b.spend_with_reuse.calls:
        for title, name in (("this run", "spent"), ("with reuse", "spend_with_reuse")):
            spends = (getattr(a, name), getattr(b, name))
            yield f"calls, {title}", *(spend.calls for spend in spends)
            yield f"tokens, {title}", *(_tokens(spend) for spend in spends)
            yield f"cost, {title}", *(_cost(spend) for spend in spends)


def _tokens(spend: Any) -> str:
    unknown = spend.unknown_usage + spend.open_calls
    more = f" ({unknown} calls unknown)" if unknown else ""
    return f"{spend.input_tokens} + {spend.output_tokens}{more}"


def _cost(spend: Any) -> str:
    unknown = spend.unknown_cost + spend.open_calls
    if unknown and unknown >= spend.calls:
        return "unknown"
    more = f" ({unknown} calls unknown)" if unknown else ""
    return f"{spend.cost_usd:.4f} USD{more}"


def _metric(pair: MetricPair) -> tuple[object, ...]:
    notes = [f"{rule} differs" for rule in pair.rules_differ]
    for name, side in (("A", pair.before), ("B", pair.after)):
        if side is None:
            notes.append(f"not in {name}")
        elif side.reason is not None:
            notes.append(f"{name}: {side.reason}")
    change = DASH if pair.change is None else _signed(pair.change)
    return (pair.name, *_side(pair.before), *_side(pair.after), change, ", ".join(notes))


def _signed(change: float) -> str:
    if change == 0:
        return "0"
    return f"{change:+d}" if isinstance(change, int) else f"{change:+.4f}"


def _side(side: MetricSide | None) -> tuple[str, str]:
    if side is None or side.interval is None:
        return number(None if side is None else side.value), ""
    low, high = number(side.interval.get("low")), number(side.interval.get("high"))
    return number(side.value), f"{low} to {high} ({side.interval.get('name')})"


def _change(change: TaskChange) -> tuple[object, ...]:
    note = "not the same task" if change.input_changed else ""
    told = (_verdict(change.before), _verdict(change.after))
    return change.direction, change.task, change.category or DASH, *told, note


def _verdict(verdict: TaskVerdict) -> str:
    score = "" if verdict.score is None else f", score {number(verdict.score)}"
    share = f", {verdict.solved} of {verdict.judged}" if verdict.judged > 1 else ""
    return f"{verdict.outcome}{score}{share}"


def _short(value: object) -> str:
    text = DASH if value is None or value == "" else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _names(tasks: Iterable[str]) -> str:
    named = list(tasks)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


def _sentence(found: RunComparison) -> str:
    if found.equal:
        return f"equal verdicts: {found.equal_tasks} tasks"
    counted = ", ".join(f"{n} {direction}" for direction, n in found.directions.items())
    parts = [f"{len(found.changes)} tasks changed ({counted})"] if found.changes else []
    parts += [f"{found.equal_tasks} equal"]
    parts += [f"{len(found.only_before)} only in A"] if found.only_before else []
    parts += [f"{len(found.only_after)} only in B"] if found.only_after else []
    return "verdicts differ: " + ", ".join(parts)
