"""Names of metrics, in and out."""

from importlib import metadata

import pytest

from ledger.errors import UsageError
from ledger.events import ReducerUse
from runtime.metrics import BUILT_IN, find_reducer, parse_use
from runtime.metrics.uses import GROUP, make_use, names, steps
from tests.metric_states import run_of


def use(text: str) -> tuple[str, str, int | None, str]:
    found = parse_use(text, policy="count_as_zero", k=4)
    return found.metric, found.name, found.k, found.policy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("accuracy", ("correct", "accuracy", None, "count_as_zero")),
        ("majority@3", ("correct", "majority@k", 3, "count_as_zero")),
        ("avg@k", ("correct", "avg@k", 4, "count_as_zero")),
        ("pass^2", ("correct", "pass^k", 2, "count_as_zero")),
        ("score.best@2", ("score", "best@k", 2, "count_as_zero")),
        ("a.b.avg@2[exclude]", ("a.b", "avg@k", 2, "exclude")),
    ],
)
def test_a_text_names_a_use(text: str, expected: tuple[object, ...]) -> None:
    assert use(text) == expected


@pytest.mark.parametrize(
    "text", ["", "avg@0", "avg@-1", "median@3", "avg@2[ignore]", "avg@2[", "pass@2@2", "avg@k]"]
)
def test_what_is_no_use_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        use(text)


def test_a_name_reads_back_as_its_use() -> None:
    wanted = [use_ for r in BUILT_IN[:7] for use_ in (make_use("m.x", r, k=2, policy="exclude"),)]
    for name, expected in zip(names(wanted, policy="count_as_zero"), wanted, strict=True):
        assert parse_use(name, policy="count_as_zero", k=9) == expected


def test_the_policy_of_the_result_is_left_out_of_names() -> None:
    uses = [parse_use(t, policy="exclude", k=1) for t in ("accuracy", "accuracy[count_as_zero]")]
    assert names(uses, policy="exclude") == ["correct.accuracy", "correct.accuracy[count_as_zero]"]


def test_two_reducers_of_one_name_are_told_apart() -> None:
    ours = parse_use("pass@3[unavailable]", policy="unavailable", k=3)
    theirs = ReducerUse(metric="correct", name="pass", version=1, k=3, policy="unavailable")
    assert names([theirs, ours], policy="unavailable") == [
        "correct.pass@3",
        "correct.pass@3[pass@k v1]",
    ]


def test_a_reducer_refuses_a_policy_that_it_does_not_have() -> None:
    with pytest.raises(UsageError, match="exclude"):
        make_use("correct", find_reducer("pass"), k=3, policy="exclude")


def test_an_unknown_version_is_refused_by_number() -> None:
    with pytest.raises(UsageError, match="version 9"):
        find_reducer("avg@k", 9)


def test_a_long_run_is_not_asked_for_every_j() -> None:
    assert steps(3) == [1, 2, 3]
    assert steps(10) == list(range(1, 11))
    assert steps(16) == [*range(1, 11), 16]
    assert steps(100) == [*range(1, 11), 16, 32, 64, 100]
    assert steps(2**64) == [*range(1, 11), *(2**e for e in range(4, 65))]


class Point:
    """An entry point of somebody's plug-in."""

    def __init__(self, name: str, loaded: object) -> None:
        self.name = name
        self.loaded = loaded

    def load(self) -> object:
        return self.loaded


def test_a_plug_in_is_a_reducer_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    from runtime.metrics import Estimate, Reducer, Sample, aggregate

    def worst(sample: Sample, _: int) -> Estimate:
        """The worst value."""
        return Estimate(float(min(sample.values)))

    reducer = Reducer("worst@k", 3, "minimum", worst)
    points = [Point("worst@k", reducer), Point("lying@k", reducer), Point("avg@k", reducer)]
    monkeypatch.setattr(metadata, "entry_points", lambda *, group: points if group == GROUP else [])

    result, uses = aggregate(run_of([0.5, 0.25]), reducers=["score.worst@2"])
    assert result.metrics["score.worst@2"] == 0.25
    assert uses[0].version == 3
    # Its name is its own, and a built-in keeps its name.
    with pytest.raises(UsageError):
        find_reducer("lying@k")
    assert find_reducer("avg@k").estimator == "mean"
    with pytest.raises(UsageError, match="version 3, not 1"):
        find_reducer("worst@k", 1)
