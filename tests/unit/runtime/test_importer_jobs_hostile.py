"""Whatever stands in the files of a job, its import ends with a ledger or a refusal by name."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.errors import AclError
from runtime.importers import Source
from runtime.importers.atif import Atif
from runtime.importers.jobs import Jobs
from tests.harbor_jobs import do_import, job, planned, raised, sample, trial, write
from tests.importer_runs import state_of, stored_bytes

_VALUES = st.sampled_from(
    [
        *(None, True, 0, -1, 1.5, float("nan"), float("inf"), 10**400, "", "x", "\ud835", "\x00"),
        *([], {}, [None], {"a": 1}, [[]], {"rewards": {"reward": True}}, "2026-01-02T03:04:05"),
    ]
)


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def put(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(copy[path[0]], path[1:], new)
    return copy


@pytest.fixture(scope="module")
def solo(tmp_path_factory):
    return sample(tmp_path_factory.mktemp("hostile"), "solo")


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_any_value_in_any_field_is_imported_or_refused(solo, data):
    files = sorted(path for path in solo.rglob("*.json") if path.name != "manifest.json")
    path = data.draw(st.sampled_from(files))
    before = path.read_bytes()
    value = json.loads(before)
    changed = put(value, data.draw(st.sampled_from(list(places(value)))), data.draw(_VALUES))
    path.write_text(json.dumps(changed))
    try:
        plan = planned(solo)
        assert plan.records_in == 76
        assert plan.records_out >= 70
    except AclError:
        pass
    finally:
        path.write_bytes(before)


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(["result.json", "config.json", "lock.json", "t.json"]), data=st.binary()
)
def test_garbage_is_recognised_by_nobody_and_stops_nobody(tmp_path_factory, name, data):
    path = write(tmp_path_factory.mktemp("garbage") / name, data)
    for source in (Source.open(path), Source.open(path.parent)):
        assert not Jobs().recognises(source)
        assert not Atif().recognises(source)


@pytest.mark.parametrize(
    "fields",
    [
        {"task_name": "\ud835x"},
        {"task_name": "a\x00b"},
        {"task_name": "../../x"},
        {"verifier_result": {"rewards": {}}},
        {"verifier_result": {"rewards": {"reward": 10**400}}},
        {"verifier_result": {"rewards": {"correct": 1, "score": 0.5}}},
        {"verifier_result": {"rewards": {"k" * 70000: 1.0}}},
        {"acl": {"status": "completed", "correct": "yes", "score": [], "attempt": 10**12}},
        {"acl": {"status": "eval_error", "correct": True, "retries": 10**9, "attempt": 2}},
        {"acl": {"status": "skipped", "correct": None, "retries": -3}},
        {"step_results": [1, None, {"exception_info": 7}]},
        {"exception_info": {"exception_type": 5, "exception_message": None}},
    ],
)
def test_odd_trials_become_attempts_that_the_ledger_takes(tmp_path, fields):
    report = do_import(job(tmp_path / "job", [trial("a__1", **fields)]), tmp_path / "results")
    (task,) = state_of(report).tasks.values()
    (attempt,) = task.attempts.values()
    assert attempt.finished is not None


def test_a_name_that_no_event_can_hold_is_refused_and_nothing_is_left(tmp_path):
    source = job(tmp_path / "job", [trial("a__1", task_name="n" * 70_000)])
    with pytest.raises(AclError, match="a task id has at most"):
        do_import(source, tmp_path / "results")
    assert not list((tmp_path / "results").rglob("ledger.sqlite"))


def test_no_key_that_stands_anywhere_in_a_job_gets_into_the_ledger(tmp_path):
    key = "sk-live-0123456789abcdef"
    source = job(
        tmp_path / "job",
        [trial("a__1", exception_info=raised("OddError", f"refused: Bearer {key}"))],
    )
    config = json.loads((source / "config.json").read_text())
    config["agents"][0]["env"] = {"OPENAI_API_KEY": key}
    write(source / "config.json", config)
    write(source / "a__1" / "verifier" / "test-stdout.txt", f"export KEY={key}\n")
    line = {
        "success": True,
        "request_body": {"messages": [{"role": "user", "content": key}], "api_key": key},
    }
    write(source / "a__1" / "agent" / "litellm-trajectory.jsonl", json.dumps(line) + "\n")
    step = {"step_id": 1, "source": "agent", "message": f"the key is {key}"}
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "a"}, "steps": [step]}
    write(source / "a__1" / "agent" / "trajectory.json", document)
    report = do_import(source, tmp_path / "results")
    assert all(key.encode() not in data for data in stored_bytes(report.path))


def test_links_are_named_and_not_followed(tmp_path):
    source = job(tmp_path / "job", [trial("a__1")])
    (source / "a__1" / "agent").symlink_to(Path("/etc"))
    plan = planned(source)
    assert ("a__1/agent", "left alone: a symbolic link") in [
        (one.source, one.reason) for one in plan.remarks
    ]


def test_what_an_agent_left_among_its_artifacts_is_no_job(tmp_path):
    source = job(tmp_path / "job", [trial("a__1")])
    inner = {"n_total_trials": 1, "stats": {}}
    write(source / "a__1" / "artifacts" / "result.json", inner)
    write(source / "a__1" / "artifacts" / "x__1" / "result.json", trial("x__1"))
    for name in ("result.json", "config.json"):
        (source / name).unlink()
    plan = planned(source)
    assert [task.task_id for task in plan.selected.tasks] == ["a"]
