"""Recipes by id, from packages and from directories."""

from pathlib import Path
from typing import ClassVar

import pytest

from ledger import events as ev
from ledger.errors import UsageError
from runtime.contracts import BaseRecipe, ExecutionPlan, Task
from runtime.models import RunRequest
from runtime.plugins import Plugins
from runtime.recipes import find_recipes
from tests.fake_plugins import Point, evaluate, task

SOURCE = '''
from dataclasses import dataclass

from runtime.contracts import BaseRecipe


class Base(BaseRecipe):
    """No recipe itself: it has no id."""

    def matches(self, request, task):
        return task.category == "slow"


@dataclass
class Patient(Base):
    id = "patient"

    def apply(self, plan, task):
        plan.run_timeout_seconds = 9.0
        plan.environment.resources["cpus"] = plan.environment.resources.get("cpus", 0) + 1
        return plan
'''


class Installed(BaseRecipe):
    id: ClassVar[str] = "installed"

    def matches(self, request: RunRequest, task: Task) -> bool:
        return True

    def apply(self, plan: ExecutionPlan, task: Task) -> ExecutionPlan:
        return plan


PLUGINS = Plugins(lambda group: [Point("installed", Installed())] if group == "acl.recipes" else [])


def written(directory: Path, **files: str) -> str:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    return str(directory)


def test_recipes_are_found_in_packages_and_directories_in_the_order_asked_for(
    tmp_path: Path,
) -> None:
    here = written(tmp_path / "recipes", slow=SOURCE, _private="raise RuntimeError")
    for names in (["patient", "installed"], ["installed", "patient"]):
        assert [recipe.id for recipe in find_recipes(names, [here], PLUGINS)] == names
    assert find_recipes([], [here], PLUGINS) == ()


def test_a_recipe_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    here = written(tmp_path / "recipes", slow=SOURCE)
    with pytest.raises(UsageError, match="no recipe 'x'; known: installed, patient"):
        find_recipes(["x"], [here], PLUGINS)
    with pytest.raises(UsageError, match="known: none is installed"):
        find_recipes(["x"], [], Plugins(lambda group: []))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"broken": "1 / 0"}, "broken.py cannot be loaded: ZeroDivisionError"),
        ({"syntax": "def"}, "syntax.py cannot be loaded: SyntaxError"),
        ({"one": SOURCE, "two": SOURCE}, "'patient' is in .*one.py and in .*two.py"),
        ({"taken": SOURCE.replace("patient", "installed")}, "'installed' is installed and in"),
        (
            {"unmade": SOURCE + "\n    def __init__(self):\n        raise OSError('no')\n"},
            "Patient of .*unmade.py cannot be made: OSError: no",
        ),
    ],
)
def test_a_directory_that_cannot_be_used_whole_is_refused(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        find_recipes([], [written(tmp_path / "recipes", **files)], PLUGINS)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no directory of recipes"):
        find_recipes([], [str(tmp_path / "nowhere")], PLUGINS)


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    first = written(tmp_path / "a", same=SOURCE)
    second = written(tmp_path / "b", same=SOURCE.replace("patient", "hasty"))
    found = find_recipes(["patient", "hasty"], [first, second, first], PLUGINS)
    assert [recipe.id for recipe in found] == ["patient", "hasty"]


def test_what_was_applied_is_recorded_and_the_place_of_the_directory_is_not(
    tmp_path: Path,
) -> None:
    here = written(tmp_path / "recipes", slow=SOURCE)
    tasks = [task("a", category="slow"), task("b", category="quick")]
    ran = evaluate(
        tmp_path / "results",
        lambda t, context: "right",
        tasks,
        k=2,
        enabled_recipes=["patient"],
        metadata={"recipe_dirs": [here]},
    )
    slow = ran.of(ev.PlanResolved, "a")
    assert [list(plan.applied_recipes) for plan in slow] == [["patient"]] * 2
    # One try's plan is no other's: the recipe adds to the resources that were asked for.
    assert [plan.plan["environment"]["resources"] for plan in slow] == [{"cpus": 1}] * 2
    assert [plan.timeouts for plan in slow] == [{"run": 9.0}] * 2
    assert [list(plan.applied_recipes) for plan in ran.of(ev.PlanResolved, "b")] == [[]] * 2
    assert ran.outcome.result is not None
    assert ran.outcome.result.applied_recipes == ["patient"]
    assert ran.state.request["metadata"]["recipe_dirs"] == ["recipes"]
    assert str(tmp_path) not in repr([recorded.event for recorded in ran.events])
