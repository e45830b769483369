"""ATIF trajectories become runs without verdicts, in which copied context counts once."""

import json
import math
from pathlib import Path

import pytest

from ledger.errors import UsageError, VersionUnsupported
from runtime.importers import Source
from runtime.importers.agentcompass import AgentCompass
from runtime.importers.atif import Atif
from runtime.importers.details import Details
from runtime.importers.jobs import Jobs
from tests import importer_runs
from tests.harbor_jobs import ATIF, do_import, reasons, sample, write
from tests.importer_runs import events, originals, state_of

STEM = "terminus_2_hello-world-context-summarization-linear-history"
FIRST, NEXT = f"{STEM}.trajectory.json", f"{STEM}.trajectory.cont-1.json"


def agent(message="done", **fields):
    return {"step_id": 1, "source": "agent", "message": message, **fields}


def spent(prompt, completion=1, **fields):
    return {"prompt_tokens": prompt, "completion_tokens": completion, **fields}


def document(*steps, **fields):
    numbered = [{**step, "step_id": number} for number, step in enumerate(steps, 1)]
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": "s",
        "agent": {"name": "terminus-2", "version": "2", "model_name": "gpt-4o"},
        "steps": numbered,
        **fields,
    }


def planned(path: Path):
    return Atif().plan(Source.open(path))


def imported(tmp_path, **files):
    for name, value in files.items():
        write(tmp_path / "source" / f"{name}.json", value)
    return do_import(tmp_path / "source", tmp_path / "results")


def counted(report):
    return state_of(report).spend()[0]


# -- the real one --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    return do_import(ATIF, tmp_path_factory.mktemp("atif") / "results")


def test_a_trajectory_with_its_continuation_is_one_attempt(real):
    state = state_of(real)
    assert list(state.tasks) == [STEM]
    assert (real.format, real.records_in, real.records_out, real.damaged) == ("atif", 2, 2, False)
    assert set(originals(real)) == {FIRST, NEXT}
    assert state.finished.status == "completed"


def test_copied_context_counts_once(real):
    # 3 calls before the summary and 4 after it; the continuation repeats 4 steps, one of an agent.
    spend = counted(real)
    assert spend.calls == 7
    assert spend.input_tokens == 682 + 750 + 820 + 1700 + 850 + 850 + 850
    assert spend.output_tokens == 60 + 50 + 50 + 420 + 40 + 40 + 30
    assert spend.cost_usd == pytest.approx(0.00723 + 0.015925)
    (result,) = events(real, "result.recorded")
    assert result.metrics == {"turns": 7, "tool_calls": 0, "copied_steps": 4}
    assert len(result.trajectory["steps"]) == 5 + 4


def test_totals_that_the_steps_do_not_give_are_told(real):
    told = reasons(real)[NEXT]
    assert told[0] == (
        "total_prompt_tokens is 7802; its steps give 4250, "
        "with the files before it and sub-agents 6502"
    )
    assert len(told) == 3
    assert all("is not there" in one for one in reasons(real)[FIRST])
    (result,) = events(real, "result.recorded")
    assert result.extra["final_metrics"][NEXT]["total_prompt_tokens"] == 7802


def test_nobody_judged(real):
    attempt = state_of(real).tasks[STEM].attempts[1]
    assert (attempt.status, attempt.verdict) == ("completed", False)
    assert not state_of(real).metrics
    (result,) = events(real, "result.recorded")
    assert json.loads(result.final_answer)["plan"] == "Final confirmation."


def test_one_file_alone_is_imported_and_says_what_it_lacks(tmp_path):
    plan = planned(ATIF / NEXT)
    assert reasons(plan)[NEXT][0] == "it goes on from a file that is not there"
    plan = planned(ATIF / FIRST)
    assert "it goes on in trajectory.cont-1.json, which is not there" in reasons(plan)[FIRST]
    assert do_import(ATIF / FIRST, tmp_path / "results").run_id == "NORMALIZED_SESSION_ID"


def test_importing_it_again_adds_nothing(tmp_path):
    first = do_import(ATIF, tmp_path / "results")
    assert do_import(ATIF, tmp_path / "results").already
    assert first.run_id == "NORMALIZED_SESSION_ID"


def test_no_other_importer_takes_it():
    for path in (ATIF, ATIF / FIRST, ATIF / NEXT):
        takers = [
            one.name
            for one in (AgentCompass(), Atif(), Details(), Jobs())
            if one.recognises(Source.open(path))
        ]
        assert takers == ["atif"]


def test_it_takes_no_source_of_another_format(tmp_path):
    runs = [
        importer_runs.sample(tmp_path, "k3-avg"),
        sample(tmp_path, "sample-job"),
        sample(tmp_path, "binary-k5"),
    ]
    shared = Path(__file__).resolve().parents[4] / "shared" / "samples"
    others = [path for path in shared.glob("*") if path.name != "atif"]
    for path in [*runs, *others, *(one for other in others for one in other.glob("*"))]:
        assert not Atif().recognises(Source.open(path)), path


# -- copies --------------------------------------------------------------------------------------


def test_steps_that_repeat_the_file_before_unmarked_count_once_and_are_told(tmp_path):
    task = {"source": "user", "message": "do it"}
    early = agent("thinking", metrics=spent(10))
    late = agent("done", metrics=spent(20))
    report = imported(
        tmp_path,
        **{
            "trajectory": document(task, early, continued_trajectory_ref="trajectory.cont-1.json"),
            "trajectory.cont-1": document(task, early, late),
        },
    )
    spend = counted(report)
    assert (spend.calls, spend.input_tokens) == (2, 30)
    told = reasons(report)["trajectory.cont-1.json"]
    assert told == ["2 steps repeat those of the file before it, unmarked; they count once"]


def test_a_step_that_says_the_same_later_on_is_no_copy(tmp_path):
    wait = agent("wait", metrics=spent(10))
    report = imported(
        tmp_path,
        **{
            "trajectory": document(wait, wait, continued_trajectory_ref="trajectory.cont-1.json"),
            "trajectory.cont-1": document({"source": "user", "message": "summary"}, wait, wait),
        },
    )
    assert counted(report).calls == 4


def test_the_same_file_twice_counts_once(tmp_path):
    value = document(agent(metrics=spent(5)))
    report = imported(tmp_path, one=value, two=value)
    assert list(state_of(report).tasks) == ["one"]
    assert reasons(report) == {"two.json": ["the same as one.json, which stands for both"]}
    assert (report.records_in, report.records_out) == (2, 2)


# -- sub-agents ----------------------------------------------------------------------------------


def refers(**ref):
    results = [{"subagent_trajectory_ref": [ref]}]
    return agent("delegate", metrics=spent(10), observation={"results": results})


def test_a_sub_agent_beside_the_file_belongs_to_the_attempt_that_refers_to_it(tmp_path):
    report = imported(
        tmp_path,
        trajectory=document(refers(trajectory_path="trajectory.helper.json"), agent("end")),
        **{"trajectory.helper": document(agent("helped", metrics=spent(7)))},
    )
    assert len(state_of(report).tasks) == 1
    spend = counted(report)
    assert (spend.calls, spend.input_tokens) == (3, 17)
    flags = [list(one.flags) for one in events(report, "call.finished")]
    assert flags == [["from_trajectory"], ["from_trajectory", "of_subagent"], ["from_trajectory"]]
    (result,) = events(report, "result.recorded")
    assert result.final_answer == "end"
    assert len(result.trajectory["subagent_trajectories"]) == 1


def test_a_sub_agent_inside_the_file_counts_once_and_in_the_totals(tmp_path):
    helper = document(agent("helped", metrics=spent(7)), trajectory_id="t1")
    value = document(
        refers(trajectory_id="t1"),
        refers(trajectory_id="t1"),
        subagent_trajectories=[helper],
        final_metrics={"total_prompt_tokens": 27, "total_steps": 2},
    )
    report = imported(tmp_path, trajectory=value)
    assert (counted(report).calls, counted(report).input_tokens) == (3, 27)
    assert not reasons(report)


def test_files_that_refer_to_each_other_in_a_ring_are_read_once(tmp_path):
    report = imported(
        tmp_path,
        a=document(refers(trajectory_path="b.json")),
        b=document(refers(trajectory_path="a.json"), continued_trajectory_ref="a.json"),
    )
    assert counted(report).calls == 2


# -- steps ---------------------------------------------------------------------------------------


def test_tool_calls_and_what_was_observed_after_them(tmp_path):
    wanted = [
        {"tool_call_id": "c1", "function_name": "ls", "arguments": {"path": "/"}},
        {"tool_call_id": "c2", "function_name": "cat", "arguments": {}},
    ]
    seen = {"results": [{"source_call_id": "c1", "content": "bin etc"}]}
    step = agent("", reasoning_content="hm", tool_calls=wanted, observation=seen)
    report = imported(tmp_path, trajectory=document(step))
    (call,) = events(report, "call.finished")
    message = call.response["choices"][0]["message"]
    assert [one["function"]["name"] for one in message["tool_calls"]] == ["ls", "cat"]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"path": "/"}
    assert message["reasoning_content"] == "hm"
    (tool,) = events(report, "tool.finished")
    assert (tool.name, tool.call_id, tool.arguments, tool.output) == (
        "ls",
        "c1",
        {"path": "/"},
        "bin etc",
    )


def test_a_step_may_be_no_call_or_several(tmp_path):
    report = imported(
        tmp_path,
        trajectory=document(
            agent("one", llm_call_count=1),
            agent("none", llm_call_count=0),
            agent("many", llm_call_count=3, metrics=spent(30)),
        ),
    )
    flags = [list(one.flags) for one in events(report, "call.finished")]
    assert flags == [["from_trajectory"], ["from_trajectory", "sum_of_3_calls"]]
    (result,) = events(report, "result.recorded")
    assert result.metrics["turns"] == 3


def test_unknown_tokens_and_costs_stay_unknown(tmp_path):
    odd = {"prompt_tokens": -1, "completion_tokens": True, "cost_usd": "0.5", "cached_tokens": 2.5}
    report = imported(tmp_path, trajectory=document(agent("a"), agent("b", metrics=odd)))
    spend = counted(report)
    assert (spend.unknown_usage, spend.unknown_cost) == (2, 2)


def test_a_number_that_json_has_no_word_for_is_kept_and_named(tmp_path):
    text = json.dumps(document(agent("a", metrics={"cost_usd": float("nan")})))
    report = imported(tmp_path, trajectory=text)
    assert reasons(report) == {"trajectory.json": ["holds NaN, which JSON has no word for"]}
    (result,) = events(report, "result.recorded")
    cost = result.trajectory["steps"][0]["metrics"]["cost_usd"]
    assert math.isnan(cost)
    assert counted(report).unknown_cost == 1


def test_times_are_utc_and_those_without_a_zone_are_named(tmp_path):
    report = imported(
        tmp_path,
        trajectory=document(
            agent("a", timestamp="2026-01-02T03:04:05+02:00"),
            agent("b", timestamp="2026-01-02T03:04:05"),
        ),
    )
    times = [one.finished_at for one in events(report, "call.finished")]
    assert times == ["2026-01-02T01:04:05Z", None]
    assert reasons(report)["trajectory.json"] == [
        "1 timestamps have no zone, or are none; they stand in the trajectory"
    ]


def test_half_a_surrogate_pair_survives(tmp_path):
    text = json.dumps(document(agent("\ud835", metrics=spent(1))))
    report = imported(tmp_path, trajectory=text)
    (result,) = events(report, "result.recorded")
    assert result.final_answer == "\ud835"


# -- tasks, versions, damage ---------------------------------------------------------------------


def test_each_trajectory_is_a_task_named_for_its_file(tmp_path):
    report = imported(
        tmp_path,
        **{
            "x/trajectory": document(agent("1")),
            "y/run-7.trajectory": document(agent("2")),
            "z": document(agent("3"), agent={"name": "other", "version": "1"}),
        },
    )
    state = state_of(report)
    assert sorted(state.tasks) == ["x", "y/run-7", "z"]
    assert state.request["harness"]["id"] == "several"
    assert state.request["source"]["agents"] == ["other", "terminus-2"]


@pytest.mark.parametrize("version", [f"ATIF-v1.{minor}" for minor in range(9)])
def test_every_version_up_to_the_newest_is_read(tmp_path, version):
    path = write(tmp_path / "t.json", document(agent(), schema_version=version))
    assert Atif().recognises(Source.open(path))
    assert planned(path).format_version == version


@pytest.mark.parametrize("version", ["ATIF-v1.9", "ATIF-v2.0"])
def test_newer_versions_are_refused_by_name(tmp_path, version):
    path = write(tmp_path / "t.json", document(agent(), schema_version=version))
    assert Atif().recognises(Source.open(path))
    with pytest.raises(VersionUnsupported, match=version):
        planned(path)


def test_a_reference_of_before_version_1_7_is_one_object(tmp_path):
    results = [{"subagent_trajectory_ref": {"session_id": "h", "trajectory_path": "h.json"}}]
    step = agent("delegate", observation={"results": results})
    write(tmp_path / "t.json", document(step, schema_version="ATIF-v1.5"))
    assert reasons(planned(tmp_path))["t.json"] == ["a sub-agent's h.json is not there"]


@pytest.mark.parametrize(
    ("data", "damaged"),
    [
        ('{"schema_version": "ATIF-v1.8", "steps": [{"sou', False),
        ('{"schema_version": "ATIF-v1.8", "steps": {}}', True),
        ('{"schema_version": "ATIF-v1.8", "steps": [1]}', True),
        ('{"schema_version": "ATIF-v1.8", "steps": []}}', True),
        ("[]", False),
        ("", False),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_imported(tmp_path, data, damaged):
    write(tmp_path / "good.json", document(agent()))
    write(tmp_path / "bad.json", data)
    plan = planned(tmp_path)
    (remark,) = plan.remarks
    assert (remark.source, remark.placed, remark.damage) == ("bad.json", False, damaged)
    assert (plan.records_in, plan.records_out) == (2, 1)


def test_where_nothing_can_be_read_nothing_is_imported(tmp_path):
    write(tmp_path / "t.json", '{"schema_version": "ATIF-v1.8", "steps": [')
    with pytest.raises(UsageError, match="holds no atif trajectory"):
        planned(tmp_path)
