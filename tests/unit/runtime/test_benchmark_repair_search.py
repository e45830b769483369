"""The search agent: what it tries, in which order, and what it may spend."""

import asyncio
from collections.abc import Sequence

import pytest

from runtime.benchmarks.repair.mutate import mutations
from runtime.benchmarks.repair.search import Found, search

SOURCE = "def f(a, b):\n    if a < b and a != 0:\n        return a + 1\n    return b - 2\n"


class Examples:
    """Counts how many of the wanted pieces of text stand in a candidate, and keeps all seen."""

    def __init__(self, *wanted: str) -> None:
        self.wanted = wanted
        self.seen: list[str] = []

    async def __call__(self, sources: Sequence[str]) -> list[int]:
        self.seen += sources
        return [sum(text in source for text in self.wanted) for source in sources]


def find(examples: Examples, budget: int, seed: str = "seed") -> Found:
    return asyncio.run(
        search(SOURCE, examples=len(examples.wanted), budget=budget, seed=seed, score=examples)
    )


def test_without_a_budget_nothing_is_tried() -> None:
    examples = Examples("a > b")
    assert find(examples, 0) == Found(SOURCE, 0, 0, ())
    assert examples.seen == []


def test_one_change_that_passes_all_examples_is_found() -> None:
    found = find(Examples("a <= b"), 200)
    assert found.source == SOURCE.replace("a < b", "a <= b")
    assert (found.passed, found.tried <= len(mutations(SOURCE))) == (1, True)
    assert found.steps[-1].changes == ("line 2: '<' becomes '<='",)
    assert found.steps[-1].tried == found.tried


def test_two_changes_are_found_on_top_of_one_that_got_further() -> None:
    found = find(Examples("a <= b", "b + 2"), 200)
    assert found.source == SOURCE.replace("a < b", "a <= b").replace("b - 2", "b + 2")
    assert [step.passed for step in found.steps] == [1, 2]


def test_a_pair_is_tried_only_once_and_no_more_than_two_changes_are_made() -> None:
    examples = Examples("nowhere")
    found = find(examples, 100_000)
    assert len(examples.seen) == len(set(examples.seen)) == found.tried + 1
    assert found.source == SOURCE


@pytest.mark.parametrize("budget", [1, 5, 23, 60])
def test_the_budget_is_spent_exactly_when_nothing_is_found(budget: int) -> None:
    examples = Examples("nowhere")
    assert find(examples, budget).tried == budget
    assert examples.seen[0] == SOURCE
    assert len(examples.seen) == budget + 1


def test_the_best_is_kept_when_no_candidate_passes_all() -> None:
    found = find(Examples("a <= b", "nowhere"), 200)
    assert found.source == SOURCE.replace("a < b", "a <= b")
    assert found.passed == 1


def test_a_source_that_passes_is_left_as_it_is() -> None:
    assert find(Examples("a < b"), 10) == Found(SOURCE, 0, 1, ())


def test_the_seed_decides_the_order() -> None:
    def order(seed: str) -> list[str]:
        examples = Examples("nowhere")
        find(examples, 10, seed)
        return examples.seen

    assert order("one") == order("one")
    assert order("one") != order("two")


def test_a_larger_budget_goes_on_where_the_smaller_one_ended() -> None:
    small, large = Examples("nowhere"), Examples("nowhere")
    find(small, 7)
    find(large, 40)
    assert large.seen[:8] == small.seen
