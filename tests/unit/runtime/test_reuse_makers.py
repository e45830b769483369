"""Who ran the tasks of a source, and with which settings."""

from pathlib import Path
from typing import Any

import pytest

from ledger.events import Differing
from ledger.view import LedgerView
from runtime.reuse_makers import Makers, find_makers, put_back
from tests.fake_plugins import Ran
from tests.reuse_runs import TASKS, Agent, reusing, source

HOT: dict[str, Any] = {"model": {"params": {"heat": 1}}}
COLD: dict[str, Any] = {"model": {"params": {"heat": 0}}}


def makers_of(ran: Ran) -> Makers:
    assert ran.outcome.path is not None
    with LedgerView.open(ran.outcome.path) as view:
        return find_makers(ran.state, view)


def then(results: Path, before: str, run_id: str, settings: dict[str, Any], tasks: Any) -> Ran:
    return reusing(
        results,
        Agent(),
        tasks,
        runtime={"reuse_run_id": before},
        output={"run_id": run_id},
        **settings,
    )


def heats(makers: Makers) -> dict[str, list[Any]]:
    return {
        run_id: [one.before for one in differences if one.path == "model.params.heat"]
        for run_id, differences in makers.others.items()
    }


def test_a_run_that_reused_nothing_ran_all_itself(tmp_path: Path) -> None:
    assert makers_of(source(tmp_path, **HOT)) == Makers()


def test_a_run_that_only_reused_ran_nothing_itself(tmp_path: Path) -> None:
    source(tmp_path, **HOT)
    found = makers_of(then(tmp_path, "first", "second", COLD, TASKS[:2]))
    assert not found.itself
    assert heats(found) == {"first": [1]}


def test_what_it_ran_besides_counts_as_its_own(tmp_path: Path) -> None:
    source(tmp_path, **HOT)
    found = makers_of(then(tmp_path, "first", "second", COLD, TASKS))
    assert found.itself
    assert heats(found) == {"first": [1]}


def test_the_maker_far_back_is_found_although_its_settings_are_those_of_now(
    tmp_path: Path,
) -> None:
    source(tmp_path, **HOT)
    then(tmp_path, "first", "second", COLD, TASKS)
    found = makers_of(then(tmp_path, "second", "third", HOT, TASKS))
    # `first` ran with the settings of `third`; what `second` ran itself, with others.
    assert found.itself
    assert heats(found) == {"second": [0]}


@pytest.mark.parametrize(
    ("differing", "before"),
    [
        (
            Differing(path="model.id", before="x", now="m"),
            {"model": {"id": "x", "params": {"a": 1}}},
        ),
        (Differing(path="model.params.a", now=1), {"model": {"id": "m", "params": {}}}),
        (
            Differing(path="model.params.b.c", before=[2]),
            {"model": {"id": "m", "params": {"a": 1, "b": {"c": [2]}}}},
        ),
    ],
)
def test_settings_are_put_back_and_what_was_given_stays(differing: Differing, before: Any) -> None:
    now = {"model": {"id": "m", "params": {"a": 1}}}
    assert put_back(now, (differing,)) == before
    assert now == {"model": {"id": "m", "params": {"a": 1}}}
