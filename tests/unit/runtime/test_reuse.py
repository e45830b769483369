import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ledger import events as ev
from ledger.errors import NotALedger, RunNotFound, UsageError
from ledger.store import Ledger
from runtime.reuse import _newest_first, freeze_reuse_source
from tests import events_of as say
from tests.fake_plugins import Listed, Ran, evaluate, request
from tests.reuse_runs import TASKS, Agent, reusing, source


def test_the_decision_is_told_before_the_run_starts(tmp_path: Path) -> None:
    first = source(tmp_path)
    ran = reusing(tmp_path, Agent())
    (frozen,) = ran.of(ev.ReuseFrozen)
    assert (frozen.mode, frozen.run_id) == ("explicit", "first")
    assert (frozen.ledger_id, frozen.size) == (first.state.ledger_id, first.state.size)
    assert frozen.root == first.state.root.hex()


def test_without_reuse_nothing_is_looked_for(tmp_path: Path) -> None:
    source(tmp_path)
    ran = reusing(tmp_path, Agent(), runtime={})
    assert ran.of(ev.ReuseFrozen)[0].mode == "none"
    assert ran.state.counts().reused == 0


def test_an_id_that_does_not_exist_is_refused_before_any_output(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="'first'"):
        reusing(tmp_path, Agent())
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_a_ledger_is_no_source(tmp_path: Path) -> None:
    (tmp_path / "listed" / "none" / "first").mkdir(parents=True)
    with pytest.raises(NotALedger):
        reusing(tmp_path, Agent())


def test_a_link_is_no_source(tmp_path: Path) -> None:
    source(tmp_path)
    root = tmp_path / "listed" / "none"
    (root / "link").symlink_to(root / "first")
    with pytest.raises(UsageError, match="symbolic link"):
        reusing(tmp_path, Agent(), runtime={"reuse_run_id": "link"})


# -- implicit ---------------------------------------------------------------------------------


def run_info(ran: Ran, started_at: str) -> None:
    assert ran.outcome.path is not None
    document = json.dumps({"started_at": started_at})
    (ran.outcome.path / "run_info.json").write_text(document)


def test_the_newest_run_with_a_run_info_is_taken(tmp_path: Path) -> None:
    for name, started in (("old", "2026-01-01"), ("new", "2026-03-01"), ("mid", "2026-02-01")):
        run_info(evaluate(tmp_path, Agent(), TASKS, output={"run_id": name}), started)
    evaluate(tmp_path, Agent(), TASKS, output={"run_id": "without"})
    frozen = freeze_reuse_source(request(runtime={"reuse": True}), tmp_path)
    frozen.close()
    assert frozen.source is not None
    assert (frozen.source.mode, frozen.source.run_id) == ("implicit", "new")


def test_a_run_that_was_killed_before_it_took_over_hides_no_older_source(tmp_path: Path) -> None:
    run_info(source(tmp_path), "2026-01-01")
    (tmp_path / "listed" / "none" / "killed").mkdir()
    agent = Agent()
    ran = reusing(tmp_path, agent, runtime={"reuse": True})
    assert agent.asked == ["c"]
    assert ran.of(ev.ReuseFrozen)[0].run_id == "first"


def test_candidates_of_another_model_or_without_a_ledger_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_info(evaluate(tmp_path, Agent(), TASKS, model={"id": "a/b"}), "2026-02-01")
    empty = tmp_path / "listed" / "a_b" / "empty"
    empty.mkdir()
    (empty / "run_info.json").write_text("{")
    asked = request(runtime={"reuse": True}, model={"id": "a:b"})
    assert freeze_reuse_source(asked, tmp_path).source is None
    assert "is not reused: it is of another model, 'a/b'" in caplog.text
    assert "'empty' is not reused" in caplog.text


def test_without_any_candidate_the_run_is_a_new_one(tmp_path: Path) -> None:
    ran = reusing(tmp_path, Agent(), runtime={"reuse": True})
    assert ran.of(ev.ReuseFrozen)[0].mode == "none"
    assert ran.outcome.status == "completed"


# -- where ids and times lead ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "wanted", ["..", ".", "../first", "/first", "\\first", "a/../first", "a\\..\\first", "first/.."]
)
def test_an_id_that_leads_out_of_the_root_is_refused_before_any_output(
    tmp_path: Path, wanted: str
) -> None:
    source(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="leads out of"):
        reusing(tmp_path, Agent(), runtime={"reuse_run_id": wanted})
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("wanted", [".first", ".import-0123456789abcdef", ".hidden/first"])
def test_a_name_that_begins_with_a_dot_is_no_run(tmp_path: Path, wanted: str) -> None:
    first = source(tmp_path)
    assert first.outcome.path is not None
    shutil.copytree(first.outcome.path, first.outcome.path.with_name(".first"))
    with pytest.raises(UsageError, match="is no run"):
        reusing(tmp_path, Agent(), runtime={"reuse_run_id": wanted})


def test_an_id_is_normalised_as_it_was_when_its_run_was_made(tmp_path: Path) -> None:
    evaluate(tmp_path, Agent(), TASKS, output={"run_id": "a/b c"})
    agent = Agent()
    reusing(tmp_path, agent, runtime={"reuse_run_id": "a/b c"})
    assert agent.asked == []


def test_an_id_is_looked_for_under_the_run_name_of_the_request(tmp_path: Path) -> None:
    source(tmp_path)
    with pytest.raises(RunNotFound, match="nightly/listed/none"):
        reusing(tmp_path, Agent(), output={"run_name": "nightly"})


def test_a_run_of_another_model_in_the_same_directory_is_refused_by_id(tmp_path: Path) -> None:
    evaluate(tmp_path, Agent(), TASKS, model={"id": "a/b"}, output={"run_id": "first"})
    with pytest.raises(RunNotFound, match="another model, 'a/b'"):
        reusing(tmp_path, Agent(), model={"id": "a:b"})


def chosen(results: Path) -> str | None:
    frozen = freeze_reuse_source(request(runtime={"reuse": True}), results)
    frozen.close()
    return frozen.source and frozen.source.run_id


def made(results: Path, name: str, started_at: Any, *, written: int = 1) -> None:
    ran = evaluate(results, Agent(), TASKS[:1], output={"run_id": name})
    run_info(ran, started_at)
    assert ran.outcome.path is not None
    os.utime(ran.outcome.path / "run_info.json", (written, written))


def test_times_of_different_zones_are_compared_as_times(tmp_path: Path) -> None:
    made(tmp_path, "later", "2026-01-01T00:30:00-05:00")
    made(tmp_path, "earlier", "2026-01-01T04:00:00+01:00")
    assert chosen(tmp_path) == "later"


def test_of_runs_that_began_at_once_the_one_written_last_is_taken(tmp_path: Path) -> None:
    made(tmp_path, "b", "2026-01-01T00:00:00Z", written=5)
    made(tmp_path, "a", "2026-01-01T00:00:00Z", written=9)
    assert chosen(tmp_path) == "a"


@pytest.mark.parametrize("started_at", ["soon", "", None, 7])
def test_a_run_that_does_not_say_when_it_began_comes_last(tmp_path: Path, started_at: Any) -> None:
    made(tmp_path, "unknown", started_at, written=9)
    made(tmp_path, "known", "2020-01-01T00:00:00Z", written=5)
    assert chosen(tmp_path) == "known"


def test_directories_that_begin_with_a_dot_and_links_are_never_candidates(tmp_path: Path) -> None:
    made(tmp_path, "run", "2026-01-01T00:00:00Z")
    root = tmp_path / "listed" / "none"
    shutil.copytree(root / "run", root / ".staged")
    shutil.copytree(root / "run", tmp_path / "elsewhere")
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "linking").mkdir()
    (root / "linking" / "run_info.json").symlink_to(root / "run" / "run_info.json")
    (root / "a file").write_bytes(b"")
    assert [path.name for path in _newest_first(root)] == ["run"]


def test_that_there_is_nothing_to_reuse_is_told_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ran = reusing(tmp_path, Agent(), runtime={"reuse": True})
    line = "there is no run to reuse in listed/none: all tasks run"
    assert line in caplog.text
    assert line in Path(ran.outcome.paths["log_file"]).read_text()
    assert ran.of(ev.ReuseFrozen)[0].mode == "none"


def test_a_run_that_ended_before_any_task_began_hides_no_older_source(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_info(source(tmp_path), "2026-01-01")
    begun = tmp_path / "listed" / "none" / "begun"
    begun.mkdir()
    with Ledger.create(begun) as ledger:
        ledger.append(*unbegun())
    (begun / "run_info.json").write_text(json.dumps({"started_at": "2026-02-01"}))
    agent = Agent()
    reusing(tmp_path, agent, runtime={"reuse": True})
    assert agent.asked == ["c"]
    assert "'begun' is not reused: it ended before any task began" in caplog.text


def unbegun() -> list[ev.AnyEvent]:
    """What a run leaves that was stopped before it took over what it wanted to."""
    created = say.created("begun")
    asked = {**created.request, "benchmark": {"id": "listed"}, "model": {"id": "none"}}
    return [
        created.model_copy(update={"request": asked}),
        ev.ReuseFrozen(mode="implicit", run_id="first"),
        ev.RunStarted(),
        say.selected("a", "b"),
        ev.RunFinished(status="cancelled", exit_code=130),
    ]


# -- what differs ---------------------------------------------------------------------------------


def test_other_settings_of_the_source_are_told_before_anything_is_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source(tmp_path)
    ran = reusing(tmp_path, Agent(), model={"id": "none", "params": {"top_p": 2}})
    line = "run 'first' was run otherwise: model.params.top_p was null, is 2"
    assert line in caplog.text
    assert line in Path(ran.outcome.paths["log_file"]).read_text()
    (frozen,) = ran.of(ev.ReuseFrozen)
    (told,) = frozen.differences
    assert (told.path, told.before, told.now) == ("model.params.top_p", None, 2)
    assert ran.state.counts().reused == 3


def test_a_source_without_differences_tells_none(tmp_path: Path) -> None:
    source(tmp_path)
    assert reusing(tmp_path, Agent()).of(ev.ReuseFrozen)[0].differences is None


def test_another_version_of_the_benchmark_is_told_with_both_versions(tmp_path: Path) -> None:
    source(tmp_path)

    class Newer(Listed):
        version = "2"

    ran = reusing(tmp_path, Agent(), benchmark=Newer(TASKS))
    (told,) = ran.of(ev.ReuseFrozen)[0].differences
    assert (told.path, told.before, told.now) == ("benchmark.version", "1", "2")


def test_where_equality_is_required_another_setting_is_refused_before_any_output(
    tmp_path: Path,
) -> None:
    source(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    runtime = {"reuse_run_id": "first", "reuse_require_equal": True}
    with pytest.raises(UsageError, match=r"other settings: model\.params\.top_p") as caught:
        reusing(tmp_path, Agent(), runtime=runtime, model={"id": "none", "params": {"top_p": 2}})
    assert caught.value.exit_status == 2
    assert sorted(tmp_path.rglob("*")) == before
