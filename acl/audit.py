"""`acl audit RESULTS_DIR`: every run that was entered or is on disk, on one page."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acl.keys import Key, PolicyFile
from acl.output import DASH, Json, document, line, number, table

if TYPE_CHECKING:
    from ledger import LedgerView
    from ledger.verify import Finding
    from runtime.audit import Cost, RunReport, Share

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_WIDTH = 100
_RUNS = ("RUN", "STATE", "ENDED", "ENTERED", "SIGNED", "EXPORT", "PATH")
_ATTEMPTS = (
    "RUN",
    "PLANNED",
    "MADE",
    "REUSED",
    "NO END",
    "ERRORS",
    "TRIES DISCARDED",
    "JUDGED AGAIN",
    "SPENT",
    "OF IT DISCARDED",
)
# What no audit of this directory can see, whatever it finds.
_UNSEEN = (
    "A run in another results directory, or one whose entry was removed together with everything"
    " behind it in the registry, is seen only with a checkpoint of the registry kept elsewhere:"
    " --checkpoint."
)


@app.command()
def audit(
    results_dir: Annotated[Path, typer.Argument(metavar="[RESULTS_DIR]")] = Path("results"),
    key: Key = None,
    policy: PolicyFile = None,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A checkpoint of the registry, kept elsewhere."),
    ] = None,
    json: Json = False,
) -> int:
    """Say of every run what became of it, and what its numbers rest on; nothing is written.

    Exit 4 if anything is broken, 1 if runs or entries are missing, else 0.
    """
    from acl.files import read
    from acl.keys import policy_of, verifiers_of
    from acl.progress import counting
    from runtime.audit import Against, audit, exit_status
    from runtime.audit import document as plain

    against = Against(verifiers_of(key), policy_of(policy), _exported)
    found = audit(results_dir, against, [read(path) for path in checkpoint or ()])
    runs: list[RunReport] = []
    with counting("runs") as show:
        for run in found.runs:
            runs.append(run)
            if show is not None:
                show(len(runs), max(found.total, len(runs)))
    problems = [*found.registry.problems, *(one for run in runs for one in run.problems)]
    status = exit_status(problems)
    if json:
        page = {
            "results_dir": str(results_dir),
            "exit": status,
            "registry": plain(found.registry),
            "runs": [plain(run) for run in runs],
            "unseen": _UNSEEN,
        }
        document(page)
    else:
        _print(results_dir, found.registry, runs)
    return status


def _exported(directory: Path, view: "LedgerView") -> "Iterable[Finding] | None":
    from functools import partial

    from acl.verdict import state_at
    from exporters.check import check_tree
    from exporters.manifest import MANIFEST

    if not (directory / MANIFEST).is_file():
        return None
    at = partial(state_at, view)
    return check_tree(at, view, directory, ledger_id=view.ledger_id.hex(), size=view.size)


# -- the page ----------------------------------------------------------------------------------


def _print(results_dir: Path, registry: Any, runs: "list[RunReport]") -> None:
    _print_registry(results_dir, registry)
    _print_verdict(runs)
    _print_problems(registry, runs)
    if runs:
        _heading("Runs, in the order in which they were entered")
        table(_RUNS, [_run_cells(n, run) for n, run in enumerate(runs, 1)])
    if any(run.signatures for run in runs):
        _heading("Signed")
    for n, run in enumerate(runs, 1):
        for text in run.signatures:
            _say(f"  {n}: {text}")
    counted = [(n, run.attempts) for n, run in enumerate(runs, 1) if run.attempts]
    if counted:
        _heading("Attempts")
        table(_ATTEMPTS, [_attempt_cells(n, attempts) for n, attempts in counted])
    _print_sources(runs)
    _print_shares(runs)
    _heading("Not seen")
    _say(f"  {_UNSEEN}")


def _print_registry(results_dir: Path, registry: Any) -> None:
    line(f"Audit of {results_dir}")
    if not registry.found:
        line("Registry: none")
        return
    broken = any(problem.severity == "broken" for problem in registry.problems)
    root = f", root {registry.root}" if registry.root else ""
    line(f"Registry: {'BROKEN' if broken else 'intact'}, {registry.entries} entries{root}")
    for text in (*registry.signatures, *registry.unproven):
        _say(f"  {text}")


def _run_cells(n: int, run: "RunReport") -> tuple[object, ...]:
    broken = any(problem.severity == "broken" for problem in run.problems)
    signed = "yes" if run.signatures else "unproven" if run.unproven else DASH
    return (
        n,
        f"{run.kind}!" if broken and run.kind != "damaged" else run.kind,
        f"{run.status or DASH}{' (import)' * run.imported}",
        run.registered,
        signed,
        DASH if run.export == "unchecked" else run.export,
        run.path,
    )


def _attempt_cells(n: int, attempts: Any) -> tuple[object, ...]:
    return (
        n,
        "open" if attempts.planned is None else attempts.planned,
        attempts.made,
        attempts.reused,
        attempts.without_end,
        attempts.errors,
        attempts.discarded_tries,
        attempts.repeated_evaluations,
        _cost(attempts.spent),
        _cost(attempts.discarded),
    )


def _cost(cost: "Cost") -> str:
    """Tokens and USD; `+?` marks a sum that lacks calls of which it is not known."""
    if not cost.calls:
        return DASH
    known = cost.input_tokens is not None and cost.output_tokens is not None
    tokens = f"{(cost.input_tokens or 0) + (cost.output_tokens or 0)}" if known else "?"
    usd = "?" if cost.cost_usd is None else f"{cost.cost_usd:.4f}"
    more_tokens, more_usd = "+?" * bool(cost.unknown_usage), "+?" * bool(cost.unknown_cost)
    return f"{tokens}{more_tokens * known} tok ${usd}{more_usd * (usd != '?')}"


def _print_shares(runs: "list[RunReport]") -> None:
    """For each run its numbers, those together that rest on the same."""
    if any(run.metrics for run in runs):
        _heading("What each published number rests on")
    for n, run in enumerate(runs, 1):
        bases: dict[str, list[str]] = {}
        for share in run.metrics:
            value = f"none ({share.why})" if share.value is None else number(share.value)
            bases.setdefault(_basis(share), []).append(f"{share.metric}={value}")
        for basis, numbers in bases.items():
            _say(f"  {n}: {basis}: {', '.join(numbers)}")


def _basis(share: "Share") -> str:
    parts = []
    if share.attempts is not None:
        parts.append(f"attempts {_of(share.attempts, share.planned_attempts)}")
    if share.tasks is not None:
        parts.append(f"tasks {_of(share.tasks, share.planned_tasks)}")
    return "; ".join([*(parts or ["not told"]), *_left_out(share)])


def _of(part: int, whole: int | None) -> str:
    if not whole:
        return f"{part}"
    return f"{part} of {whole} ({100 * part / whole:.0f}%)"


def _left_out(share: "Share") -> Iterator[str]:
    """Attempts and tasks that a number lacks, and those that stand in it as zero."""
    for reasons, what in (
        (share.left_out_attempts, "attempts not in it: "),
        (share.left_out_tasks, "tasks not in it: "),
    ):
        if reasons:
            yield what + ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    if share.zeros:
        yield "counted as zero: " + ", ".join(f"{n} {reason}" for reason, n in share.zeros.items())


def _print_sources(runs: "list[RunReport]") -> None:
    if not any(run.sources for run in runs):
        return
    _heading("Reused")
    numbers = {run.ledger_id: n for n, run in reversed(list(enumerate(runs, 1))) if run.ledger_id}
    for n, run in enumerate(runs, 1):
        for source in run.sources:
            what = f"{source.tasks} tasks" + f", {source.attempts} attempts" * bool(source.attempts)
            there = numbers.get(source.ledger_id)
            where = f"run {there} of this page" if there else "not in this directory"
            _say(f"  {n}: {what} from run {source.run_id}, ledger {source.ledger_id} ({where})")


def _print_problems(registry: Any, runs: "list[RunReport]") -> None:
    told = [("registry", one) for one in registry.problems]
    told += [(str(n), one) for n, run in enumerate(runs, 1) for one in run.problems]
    if told:
        _heading("Findings")
    for severity in ("broken", "failed", "note"):
        for who, problem in told:
            if problem.severity == severity:
                _say(f"  {severity} {who}: {problem.message} [{problem.code}]")


def _print_verdict(runs: "list[RunReport]") -> None:
    kinds = Counter(run.kind for run in runs)
    total = f"{len(runs)} run{'s' * (len(runs) != 1)}"
    line(f"{total}: " + (", ".join(f"{n} {kind}" for kind, n in kinds.items()) or "none"))
    for text, times in Counter(text for run in runs for text in run.unproven).items():
        _say(f"  {times} of them: {text}")


def _heading(text: str) -> None:
    line()
    line(text)


def _say(text: str) -> None:
    """Print a sentence, broken into lines that fit a page."""
    from textwrap import wrap

    indent = " " * (len(text) - len(text.lstrip()))
    broken = wrap(text, _WIDTH, subsequent_indent=f"{indent}  ", break_on_hyphens=False)
    for part in broken or [text]:
        line(part)
