"""`acl replay RUN`: metrics again, from the events alone, compared with what was recorded.

With `--evaluate` the verdicts as well, by the benchmark's own evaluator.
"""

from typing import Annotated, Any

import typer

from acl.metric_rows import HEADERS, metric_rows
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
    from acl.verdict import benchmark_of
    from ledger import LedgerView
    from runtime.replay import replay as replay_metrics

    with LedgerView.open(run) as view:
        benchmark = benchmark_of(view, required=evaluate)
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


def _print(found: Any) -> None:
    metrics = found.metrics
    recorded = found.recorded.metrics if found.recorded else {}
    table(
        (*HEADERS, "RECORDED"),
        [
            (*row, number(recorded[row[0]]) if row[0] in recorded else "")
            for row in metric_rows(metrics.metrics, metrics.details, metrics.extra)
        ],
    )
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


def _sentence(found: Any) -> str:
    where = f"{found.size} event{'s' * (found.size != 1)}, root {found.root}"
    if found.equal is None and found.recorded is not None:
        return f"the recorded metrics cannot be compared; computed from {where}"
    if found.equal is None:
        return f"nothing recorded to compare with; computed from {where}"
    verdict = "equal to the recorded metrics" if found.equal else "NOT equal to the recorded ones"
    return f"{verdict}; computed from {where}"
