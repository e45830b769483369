import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.events import SourceRecorded
from runtime import sources as module
from runtime.models import BenchmarkSpec, HarnessSpec, ModelSpec, RunRequest
from runtime.plugins import Plugins
from runtime.setup import Setup, prepare
from runtime.sources import source_events, sources
from tests.fake_plugins import Listed, Scripted, evaluate, plugins, request, task

ROOT = Path(__file__).resolve().parents[3]


def arith() -> Setup:
    wanted = RunRequest(
        benchmark=BenchmarkSpec(id="acl-arith"),
        harness=HarnessSpec(id="calculator"),
        model=ModelSpec(id="none"),
    )
    return prepare(wanted, Plugins())


def by_path(events: list[SourceRecorded]) -> dict[str, SourceRecorded]:
    return {event.path: event for event in events}


def test_the_files_are_those_of_the_plug_ins_and_of_what_they_import() -> None:
    found = {(source.role, source.path) for source in sources(arith())}
    assert found >= {
        ("benchmark", "runtime/benchmarks/arith/benchmark.py"),
        ("benchmark", "runtime/benchmarks/arith/problems.py"),
        ("harness", "runtime/harnesses/calculator.py"),
        ("analyzer", "runtime/analyzers/bad_case.py"),
    }
    assert not any("openai" in path or "contracts" in path for _, path in found)


def test_a_file_is_told_once_with_its_text_and_digest() -> None:
    events = source_events(sources(arith()))
    assert len(by_path(events)) == len(events)
    event = by_path(events)["runtime/benchmarks/arith/benchmark.py"]
    data = (ROOT / event.path).read_bytes()
    assert event.content == data.decode()
    assert (event.bytes, event.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (event.role, event.name) == ("benchmark", "acl-arith")


def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> Setup:
    """A benchmark of a package of its own."""
    for name, data in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "bench_of_test"]:
        monkeypatch.delitem(sys.modules, name)
    kind = __import__("bench_of_test.tasks.suite", fromlist=["Own"]).Own
    return prepare(request(), plugins(kind([task("t")]), Scripted(lambda *_: "right")))


FILES = {
    "bench_of_test/__init__.py": b"",
    "bench_of_test/tasks/__init__.py": b"",
    "bench_of_test/tasks/suite.py": b"from tests.fake_plugins import Listed\n"
    b"from ..common import N\nfrom . import data\n\nclass Own(Listed):\n    size = N + data.M\n",
    "bench_of_test/tasks/data.py": b"M = 1\n",
    "bench_of_test/common.py": b"import json\nfrom bench_of_test import deep\nN = 1\n",
    "bench_of_test/deep.py": b"# \xe4\n".replace(b"\xe4", "ä".encode()),
    "bench_of_test/unused.py": b"",
}


def test_a_package_of_its_own_is_followed_as_far_as_it_imports_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = by_path(source_events(sources(own(tmp_path, monkeypatch, FILES))))
    assert {path for path in events if path.startswith("bench_of_test/")} == {
        "bench_of_test/__init__.py",
        "bench_of_test/tasks/__init__.py",
        "bench_of_test/tasks/suite.py",
        "bench_of_test/tasks/data.py",
        "bench_of_test/common.py",
        "bench_of_test/deep.py",
    }
    assert events["bench_of_test/deep.py"].content == "# ä\n"
    # A digest of something this short could be guessed.
    assert events["bench_of_test/deep.py"].sha256 is None


def test_a_large_file_is_named_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 2000)
    long = b"M = 1\n" + b"#" * 3000
    setup = own(tmp_path, monkeypatch, {**FILES, "bench_of_test/tasks/data.py": long})
    event = by_path(source_events(sources(setup)))["bench_of_test/tasks/data.py"]
    assert event.content is None
    assert (event.bytes, event.sha256) == (len(long), hashlib.sha256(long).hexdigest())


def test_what_is_kept_of_all_files_together_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 100)
    events = source_events(sources(own(tmp_path, monkeypatch, FILES)))
    assert sum(event.bytes for event in events if event.content is not None) <= 100
    assert any(event.content is None for event in events)


def test_a_file_that_is_gone_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = own(tmp_path, monkeypatch, FILES)
    (tmp_path / "bench_of_test" / "deep.py").unlink()
    assert "bench_of_test/deep.py" not in by_path(source_events(sources(setup)))


def test_a_module_that_is_no_ordinary_one_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = own(tmp_path, monkeypatch, FILES)
    loaded = sys.modules["bench_of_test.tasks.suite"]

    def fails(_: str) -> None:
        raise SystemError("odd")

    monkeypatch.setattr(loaded.__spec__.loader, "get_code", fails)
    assert {source.role for source in sources(setup)} >= {"benchmark", "harness"}
    monkeypatch.setattr(loaded, "__spec__", None)
    assert {source.role for source in sources(setup)} >= {"benchmark", "harness"}


def test_many_runs_at_once_find_the_same(tmp_path: Path) -> None:
    setup = arith()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: sources(setup), range(200)))
    assert all(one == found[0] for one in found)


def test_a_recipe_of_a_directory_is_named_for_its_file_alone(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "from runtime.contracts import BaseRecipe\n\n\nclass Slow(BaseRecipe):\n"
        "    id = 'slow'\n    def matches(self, request, task):\n        return True\n"
        "    def apply(self, plan, task):\n        return plan\n"
    )
    wanted = request(enabled_recipes=["slow"], metadata={"recipe_dirs": [str(tmp_path)]})
    setup = prepare(wanted, plugins(Listed([task("t")]), Scripted(lambda *_: "right")))
    (recipe,) = [source for source in sources(setup) if source.role == "recipe"]
    assert (recipe.name, recipe.path) == ("slow", "slow.py")


def test_a_run_records_them_once_without_secrets_before_its_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2-hunter2-hunter2"
    files = {**FILES, "bench_of_test/deep.py": f"KEY = {secret!r}\n".encode()}
    setup = own(tmp_path, monkeypatch, files)
    ran = evaluate(
        tmp_path / "results",
        lambda *_: "right",
        benchmark=setup.benchmark,
        environ={"SERVICE_TOKEN": secret},
    )
    recorded = by_path(ran.of(SourceRecorded))
    assert len(recorded) == len(ran.of(SourceRecorded)) >= 7
    assert recorded["bench_of_test/deep.py"].content == "KEY = '********'\n"
    assert max(i for i, t in enumerate(ran.types) if t == "source.recorded") < ran.types.index(
        "tasks.selected"
    )
    assert len(ran.state.sources) == len(recorded)
    assert ran.state.creation.repos
