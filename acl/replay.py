"""`acl replay RUN`: metrics again, from the events alone, compared with what was recorded.

With `--evaluate` the verdicts as well, by the benchmark's own evaluator.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from acl.output import Json, Run, document, line, number, table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def replay(
    run: Run,
    at: Annotated[
        int | None, typer.Option(min=0, metavar="SEQ", help="The state as of this event.")
    ] = None,
    reducer: Annotated[
        list[str] | None,
        typer.Option("--reducer", metavar="NAME", help="Add one, e.g. majority@3; repeatable."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="NAME", help="Add an error policy; repeatable."),
    ] = None,
    evaluate: Annotated[
        bool,
        typer.Option("--evaluate", help="Judge the stored answers again and compare verdicts."),
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, metavar="N", help="Evaluations at once, with --evaluate.")
    ] = 4,
    json: Json = False,
) -> int:
    """Recompute the metrics; exit 1 if they differ from the recorded ones, naming each."""
    from ledger import LedgerView
    from runtime.replay import replay as replay_metrics

    with LedgerView.open(run) as view:
        benchmark = _benchmark_of(view, required=evaluate)
        found = replay_metrics(
            view,
            at=at,
            reducers=tuple(reducer or ()),
            policies=tuple(policy or ()),
            benchmark=benchmark,
        )
        judged = None
        if evaluate:
            from acl.reevaluation import judge_again

            judged = judge_again(view, benchmark, at=at, concurrency=concurrency)
    equal = _together(found.equal, None if judged is None else judged.verdicts_equal)
    if json:
        told = found.document()
        if judged is not None:
            from acl.plain import plain

            told |= {"equal": equal, "evaluation": plain(judged.document())}
        document(told)
    else:
        _print(found)
        if judged is not None:
            from acl.reevaluation import report

            report(judged, found.metrics)
    return 1 if equal is False else 0


def _together(*equal: bool | None) -> bool | None:
    """False if anything differs, None if nothing was compared."""
    compared = [one for one in equal if one is not None]
    return all(compared) if compared else None


def _benchmark_of(view: Any, *, required: bool) -> Any:
    """The run's benchmark plug-in, if it is installed: it may add metrics of its own."""
    from ledger.errors import UsageError
    from ledger.events import RunCreated
    from runtime.plugins import Plugins

    first = view.event(0).event if view.size else None
    if not isinstance(first, RunCreated):
        return None
    try:
        return Plugins().benchmark(first.request["benchmark"]["id"])
    except UsageError:
        if required:
            raise
        return None


def _print(found: Any) -> None:
    metrics = found.metrics
    table(("METRIC", "VALUE", "RECORDED", "OF", "LEFT OUT", "RULES"), _rows(found))
    for name, reason in (metrics.extra.get("unavailable") or {}).items():
        line(f"{name}: no value, {reason}")
    counts = metrics.counts.model_dump()
    line("tasks: " + ", ".join(f"{name} {value}" for name, value in counts.items()))
    for difference in found.differences:
        line(
            f"differs: {difference.name}: recorded {difference.recorded},"
            f" replayed {difference.replayed}"
        )
    for name, reason in found.not_compared.items():
        line(f"not compared: {name}: {reason}")
    line(_sentence(found))


def _rows(found: Any) -> Iterator[tuple[object, ...]]:
    recorded = found.recorded.metrics if found.recorded else {}
    for name, value in found.metrics.metrics.items():
        detail = found.metrics.details.get(name) or {}
        left_out = ", ".join(f"{n} {why}" for why, n in (detail.get("excluded") or {}).items())
        of = detail.get("denominator")
        rules = " ".join(str(detail[key]) for key in ("estimator", "policy") if detail.get(key))
        known = number(recorded[name]) if name in recorded else ""
        yield name, number(value), known, "" if of is None else of, left_out, rules


def _sentence(found: Any) -> str:
    where = f"{found.size} events, root {found.root}"
    if found.equal is None:
        return f"nothing recorded to compare with; computed from {where}"
    verdict = "equal to the recorded metrics" if found.equal else "NOT equal to the recorded ones"
    return f"{verdict}; computed from {where}"
