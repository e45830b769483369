"""summary.md."""

from pathlib import Path

from exporters.summary import summary
from ledger import events as ev
from ledger.fold import fold
from ledger.view import LedgerView
from tests.golden.runs import (
    attempt,
    call,
    create,
    empty,
    full,
    interrupted,
    opening,
    ref,
    reused,
    task,
)


def text(path: Path) -> str:
    with LedgerView.open(path) as view:
        return summary(fold(view.events())).data.decode()


def section(shown: str, title: str) -> str:
    """What stands below a heading, up to the next."""
    return shown.partition(f"# {title}\n")[2].partition("\n#")[0]


def row(shown: str, title: str) -> list[str]:
    (line,) = [line for line in shown.splitlines() if line.startswith(f"| {title} |")]
    return [cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")][1:]


def test_the_head_names_benchmark_model_plan_and_selection(tmp_path: Path) -> None:
    full(tmp_path)
    lines = text(tmp_path).splitlines()
    assert lines[0] == "# DEMO-BENCH Evaluation Results"
    assert "**Model:** model-1  " in lines
    assert "**Status:** completed  " in lines
    assert "**Attempts per task:** 1, strategy all  " in lines
    assert "**Selection:** limit = 6" in lines


def test_counts_stand_line_by_line(tmp_path: Path) -> None:
    full(tmp_path)
    lines = [line.strip() for line in text(tmp_path).splitlines()]
    for line in ("**Total:** 6", "**Evaluated:** 4", "**Error:** 1", "**Skipped:** 1"):
        assert line in lines
    assert "**Files with errors:** 1" in lines


def test_every_metric_shows_what_it_was_counted_over_and_what_was_left_out(tmp_path: Path) -> None:
    full(tmp_path)
    shown = section(text(tmp_path), "Metrics")
    assert row(shown, "correct.accuracy") == [
        "0.6667",
        "2 / 3",
        "1 no ¦ verdict, 1 run_error",
        "0.2000 to 0.9400 (wilson)",
        "mean",
        "count_as_zero: 1 eval_error",
    ]
    assert row(shown, "correct.pass@5")[0] == "- (needs k attempts)"
    assert row(shown, "tokens.avg@1")[:3] == ["110.0000", "3", "0"]


def test_categories_have_a_row_each_and_none_stands_last(tmp_path: Path) -> None:
    full(tmp_path)
    shown = text(tmp_path)
    assert row(shown, "math")[-1] == "2 / 3 = 0.6667"
    assert row(shown, "code")[-1] == "-"
    assert shown.index("| math |") < shown.index(r"| \_\_uncategorized\_\_ |")


def test_each_category_has_its_metrics_where_they_were_recorded(tmp_path: Path) -> None:
    full(tmp_path)
    shown = section(text(tmp_path), "math")
    assert row(shown, "correct.accuracy") == ["0.6667", "2 / 3", "0"]
    assert row(shown, "correct.pass@5") == ["- (needs k attempts)", "0", "3 needs k attempts"]


def test_several_evaluators_are_told(tmp_path: Path) -> None:
    with create(tmp_path, "judges") as ledger:
        events = [*task("a", attempt("a")), *task("b", attempt("b"))]
        other = ev.Evaluator(id="judge", version="3")
        last = max(n for n, e in enumerate(events) if isinstance(e, ev.EvaluationFinished))
        events[last] = events[last].model_copy(update={"evaluator": other})
        ledger.append(*opening("r", ref("a"), ref("b")), *events)
    assert "- Mixed evaluators: judge 2 (1 attempt), judge 3 (1 attempt)" in text(tmp_path)


def test_cost_is_summed_over_all_tries_and_apart_for_those_that_count(tmp_path: Path) -> None:
    full(tmp_path)
    shown = text(tmp_path)
    # Calls, failed, lost, never ended, input, output, of unknown usage, cost, of unknown cost.
    assert " ".join(row(shown, "This run, counted tries")) == "2 0 0 0 100 10 1 1.000000 1"
    assert " ".join(row(shown, "This run, discarded tries")) == "1 0 0 0 100 10 0 1.000000 0"
    assert " ".join(row(shown, "This run")) == "3 0 0 0 200 20 1 2.000000 1"


def test_reused_cost_is_not_that_of_this_run(tmp_path: Path) -> None:
    reused(tmp_path)
    shown = text(tmp_path)
    assert row(shown, "This run")[7] == "0.500000"
    assert row(shown, "With reuse")[7] == "2.500000"
    assert "- Reused tasks: 1 of 2, from run source-1 (ledger `" in shown


def test_an_unknown_cost_is_not_zero(tmp_path: Path) -> None:
    with create(tmp_path, "cost") as ledger:
        begin, *rest = attempt("t")
        unpriced = call("t", 1, 0, None, usage=None)
        ledger.append(*opening("r", ref("t")), *task("t", [begin, *unpriced, *rest]))
    assert " ".join(row(text(tmp_path), "This run")) == "1 0 0 0 - - 1 - 1"


def test_an_interrupted_run_tells_what_is_missing_and_what_never_ended(tmp_path: Path) -> None:
    interrupted(tmp_path)
    shown = text(tmp_path)
    assert "**Status:** interrupted" in shown
    assert "1 of 3 tasks have neither a verdict nor an error." in shown
    assert "1 of 4 attempts never ended." in shown
    assert "None: no metrics were computed." in shown
    assert " ".join(row(shown, "This run")) == "1 0 0 1 - - 1 - 1"


def test_a_run_without_calls_or_categories_has_no_tables_of_them(tmp_path: Path) -> None:
    empty(tmp_path)
    shown = text(tmp_path)
    assert "No model calls were recorded." in shown
    assert "## Categories" not in shown


def test_ledger_size_and_root_are_named(tmp_path: Path) -> None:
    full(tmp_path)
    with LedgerView.open(tmp_path) as view:
        wanted = (view.ledger_id.hex(), view.size, view.root().hex())
    shown = text(tmp_path)
    assert "- Ledger: `{}`\n- Size: {} events\n- Root: `{}`\n".format(*wanted) in shown


def test_names_from_outside_cannot_break_a_table(tmp_path: Path) -> None:
    with create(tmp_path, "hostile") as ledger:
        evil = "a | b\n# [x](http://x) <b> \ud835"
        ledger.append(*opening("r", ref("t", evil)), *task("t", attempt("t")))
    shown = text(tmp_path)
    assert r"| a \| b\\u000a# \[x\](http://x) \<b\> \ud835 |" in shown


def test_an_import_names_its_format_and_identity(tmp_path: Path) -> None:
    imported = ev.RunImported(
        format="agentcompass", identity="ef" * 32, records_in=0, records_out=0
    )
    with create(tmp_path, "imported") as ledger:
        first, *rest = opening("r")
        ledger.append(first, imported, *rest)
    assert f"- Imported from: agentcompass, identity `{'ef' * 32}`" in text(tmp_path)
