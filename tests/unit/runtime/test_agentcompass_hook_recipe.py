"""The package that AgentCompass loads, loaded as it does."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from runtime.agentcompass_hook import RECIPE_DIR, seams
from tests.agentcompass_stand_in import install

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> type:
    stand_in = ModuleType("agentcompass.runtime.base")
    stand_in.BaseRecipe = type("BaseRecipe", (), {})
    for name in ("agentcompass", "agentcompass.runtime"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "agentcompass.runtime.base", stand_in)
    return stand_in.BaseRecipe


def load() -> ModuleType:
    name = "_agentcompass_external_recipes_test"
    spec = importlib.util.spec_from_file_location(
        name, RECIPE_DIR / "__init__.py", submodule_search_locations=[str(RECIPE_DIR)]
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_holds_one_recipe_that_matches_no_task_and_changes_no_plan(base, monkeypatch):
    install(monkeypatch)
    (recipe,) = load().RECIPE_CLASSES
    assert issubclass(recipe, base)
    plan = object()
    assert recipe().matches(None, None, plan) is False
    assert recipe().apply(plan, None, None) is plan


def test_loading_it_follows_the_store(base, monkeypatch):
    kinds = install(monkeypatch)
    load()
    assert hasattr(kinds["RunStore"].save_results, "_acl_follows")


def test_a_fault_while_it_is_loaded_is_told_and_the_recipe_is_there(base, monkeypatch, caplog):
    def failing(directory: Path) -> bool:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(seams, "attach", failing)
    assert load().RECIPE_CLASSES
    assert [one.getMessage() for one in caplog.records] == [
        "acl: no ledger is written: RuntimeError: no such thing"
    ]


def test_nothing_of_ours_imports_it():
    sources = (
        path
        for name in ("acl", "exporters", "ledger", "runtime")
        for path in (ROOT / name).rglob("*.py")
    )
    assert not [path for path in sources if "agentcompass_hook.recipe" in path.read_text()]
