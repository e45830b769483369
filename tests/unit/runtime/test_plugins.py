import pytest

from ledger.errors import UsageError
from runtime.plugins import Plugins
from tests.fake_plugins import Listed, Point, Rooms


def with_benchmark(plugin: object, name: str = "listed") -> Plugins:
    return Plugins(lambda group: [Point(name, plugin)] if group == "acl.benchmarks" else [])


def test_a_plugin_is_made_from_its_entry_point() -> None:
    assert isinstance(with_benchmark(Listed).benchmark("listed"), Listed)


def test_an_unknown_id_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no benchmark 'lsited'; known: listed"):
        with_benchmark(Listed).benchmark("lsited")


def test_without_any_it_says_so() -> None:
    with pytest.raises(UsageError, match="none is installed"):
        with_benchmark(Listed).harness("noop")


def test_a_plugin_that_cannot_be_imported_breaks_only_its_own_use() -> None:
    broken = Point("broken", ImportError("no module named x"))
    plugins = Plugins(lambda _: [Point("listed", Listed), broken])
    assert plugins.benchmark("listed").id == "listed"
    with pytest.raises(UsageError, match="'broken' cannot be loaded: ImportError: no module"):
        plugins.benchmark("broken")


def test_a_plugin_that_exits_when_it_is_imported_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot be loaded: StageError: .* SystemExit: 3"):
        with_benchmark(SystemExit(3)).benchmark("listed")


def test_a_plugin_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="no Benchmark"):
        with_benchmark(Rooms, "rooms").benchmark("rooms")


def test_a_plugin_that_calls_itself_otherwise_is_refused() -> None:
    with pytest.raises(UsageError, match="'alias' calls itself 'listed'"):
        with_benchmark(Listed, "alias").benchmark("alias")


def test_ids_are_sorted_and_named_once() -> None:
    plugins = Plugins(lambda _: [Point("b", Listed), Point("a", Listed), Point("b", Listed)])
    assert plugins.ids("acl.benchmarks") == ["a", "b"]
