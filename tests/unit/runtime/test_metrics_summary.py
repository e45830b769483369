"""What finalization hands back."""

from ledger.state import Spend
from runtime.metrics import aggregate, summarize_results
from tests.metric_states import failed, judged, run, task


def test_results_are_summarized_with_counts_categories_and_spend() -> None:
    paid = judged(True, spend=Spend(calls=2, cost_usd=0.5), discarded=Spend(calls=1, cost_usd=0.25))
    state = run(task("a", [paid], category="x"), task("b", [failed()]))
    metrics, _ = aggregate(state)

    found = summarize_results(
        state, metrics, paths={"summary": "summary.md"}, applied_recipes=["r"]
    )

    assert found.metrics is metrics
    assert found.metadata["run_id"] == "r1"
    assert (found.metadata["benchmark"], found.metadata["k"]) == ("bench", 1)
    assert found.summary["counts"]["total"] == 2
    assert found.summary["by_category"]["x"]["correct"] == 1
    assert found.summary["by_category"]["__uncategorized__"]["error"] == 1
    assert found.summary["spend"]["counted"]["cost_usd"] == 0.5
    assert found.summary["spend"]["discarded"]["calls"] == 1
    assert (found.paths, found.applied_recipes) == ({"summary": "summary.md"}, ["r"])
