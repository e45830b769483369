"""Results of lm-evaluation-harness become runs, and aggregates are held against samples."""

import hashlib
import json
import math

import pytest

from ledger import LedgerView
from ledger.errors import UsageError
from runtime.replay import replay
from tests.foreign_sources import SHARED, lost, recognised, take, told, write_json, write_lines
from tests.importer_runs import events, originals, state_of

REAL = SHARED / "lm_eval"
TIME = "2026-01-21T03-44-18.458309"


def sample(doc_id, value=1.0, key="none", metric="exact_match", **fields):
    return {
        "doc_id": doc_id,
        "doc": {"question": f"q{doc_id}"},
        "target": str(doc_id),
        "arguments": {"gen_args_0": {"arg_0": f"Q: q{doc_id}", "arg_1": {"until": ["\n"]}}},
        "resps": [[f" answer {doc_id}"]],
        "filtered_resps": [f"answer {doc_id}"],
        "filter": key,
        "metrics": [metric],
        "doc_hash": f"{doc_id:064x}",
        "prompt_hash": "p",
        "target_hash": "t",
        metric: value,
        **fields,
    }


def aggregates(counts=None, **tables):
    return {
        "results": {task: {"alias": task, **table} for task, table in tables.items()},
        "group_subtasks": {task: [] for task in tables},
        "configs": {
            task: {"metric_list": [{"metric": "exact_match", "aggregation": "mean"}]}
            for task in tables
        },
        "versions": dict.fromkeys(tables, 1.0),
        "n-samples": {
            task: {"original": count, "effective": count} for task, count in (counts or {}).items()
        },
        "config": {"model": "hf", "model_args": "pretrained=org/m-1,dtype=float"},
        "date": 1768964383.5,
    }


def evaluation(source, value, **samples):
    if value is not None:
        write_json(source / f"results_{TIME}.json", value)
    for task, lines in samples.items():
        write_lines(source / f"samples_{task}_{TIME}.jsonl", *lines)
    return source


def replayed(report):
    with LedgerView.open(report.path) as view:
        return replay(view)


def test_the_sample_names_what_of_it_is_not_there(tmp_path):
    if not REAL.exists():
        pytest.skip("the samples are not at hand")
    report = take(REAL, tmp_path / "results")
    path = f"results_{TIME}.json"
    assert lost(report) == [
        f"{path}: math_rephrased_full: no samples of it are there",
        f"{path}: math_perturbed_full: it is over 5000 samples, and 10 are there",
    ]
    state = state_of(report)
    assert (len(state.tasks), state.finished) == (10, None)
    found = replayed(report)
    assert found.metrics.metrics["correct.accuracy"] == 0.0
    assert found.recorded.metrics["math_rephrased_full/exact_match,none"] == 0.0004


def test_documents_become_tasks_and_the_means_are_those_of_the_source(tmp_path):
    lines = [sample(0), sample(1, 0.0), sample(2), sample(3)]
    value = aggregates(
        {"t": 4}, t={"exact_match,none": 0.75, "exact_match_stderr,none": 0.25, "x,none": "N/A"}
    )
    hashes = "".join(line["doc_hash"] + "p" + "t" for line in lines)
    value["task_hashes"] = {"t": hashlib.sha256(hashes.encode()).hexdigest()}
    report = take(evaluation(tmp_path / "s", value, t=lines), tmp_path / "results")
    assert report.unplaced == ()
    assert (report.records_in, report.records_out) == (5, 5)
    state = state_of(report)
    assert list(state.tasks) == ["t/0", "t/1", "t/2", "t/3"]
    assert state.tasks["t/1"].category == "t"
    assert state.finished.status == "completed"
    assert state.request["model"]["id"] == "org/m-1"
    assert state.imported.started_at == "2026-01-21T02:59:43.500000Z"
    result = events(report, "result.recorded")[1]
    assert result.final_answer == "answer 1"
    assert result.ground_truth == "1"
    assert result.trajectory["messages"] == [
        {"role": "user", "content": "Q: q1"},
        {"role": "assistant", "content": " answer 1"},
    ]
    assert result.meta == {"doc": {"question": "q1"}}
    found = replayed(report)
    assert found.equal is True
    assert found.recorded.metrics["exact_match,none.avg@1[exclude]"] == 0.75
    assert found.metrics.metrics["correct.accuracy"] == 0.75
    assert "t/x,none" in found.recorded.extra["unavailable"]


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"exact_match,none": 0.5}, "exact_match,none is 0.5, and its samples give 0.75"),
        ({"exact_match_stderr,none": 0.5}, "exact_match_stderr,none is 0.5"),
    ],
)
def test_an_aggregate_that_its_samples_deny_is_told(tmp_path, table, named):
    lines = [sample(0), sample(1, 0.0), sample(2), sample(3)]
    value = aggregates({"t": 4}, t=table)
    report = take(evaluation(tmp_path / "s", value, t=lines), tmp_path / "results")
    assert len(told(report)) == 1
    assert named in told(report)[0]
    assert lost(report) == []


def test_samples_of_another_hash_are_told(tmp_path):
    value = {**aggregates({"t": 1}, t={}), "task_hashes": {"t": "0" * 64}}
    report = take(evaluation(tmp_path / "s", value, t=[sample(0)]), tmp_path / "results")
    assert any("hash" in one for one in told(report))


def test_the_first_filter_gives_the_verdict_and_all_give_measures(tmp_path):
    lines = [
        *(sample(n, 0.0, "strict-match") for n in range(2)),
        *(sample(n, 1.0, "flexible-extract", filtered_resps=[f"f{n}"]) for n in range(2)),
    ]
    value = aggregates(
        {"t": 2}, t={"exact_match,strict-match": 0.0, "exact_match,flexible-extract": 1.0}
    )
    report = take(evaluation(tmp_path / "s", value, t=lines), tmp_path / "results")
    assert report.unplaced == ()
    assert len(state_of(report).tasks) == 2
    verdict = events(report, "evaluation.finished")[0]
    assert (verdict.correct, verdict.reason) == (False, "exact_match,strict-match")
    assert verdict.metrics == {"exact_match,strict-match": 0.0, "exact_match,flexible-extract": 1.0}
    result = events(report, "result.recorded")[0]
    assert result.final_answer == "answer 0"
    assert result.extra["filters"]["flexible-extract"]["filtered_resps"] == ["f0"]
    assert replayed(report).metrics.metrics["exact_match,flexible-extract.avg@1[exclude]"] == 1.0


def test_several_tasks_are_categories_of_one_run(tmp_path):
    value = aggregates({"a": 1, "b_c": 1}, a={"exact_match,none": 1.0}, b_c={})
    value["results"]["group"] = {"exact_match,none": 1.0}
    value["group_subtasks"]["group"] = ["a", "b_c"]
    source = evaluation(tmp_path / "s", value, a=[sample(0)], b_c=[sample(0, 0.0)])
    report = take(source, tmp_path / "results")
    assert report.unplaced == ()
    state = state_of(report)
    assert {task.id: task.category for task in state.tasks.values()} == {"a/0": "a", "b_c/0": "b_c"}
    assert state.request["benchmark"]["id"] == "lm_eval"
    assert replayed(report).recorded.metrics["group/exact_match,none"] == 1.0


def test_a_task_whose_name_was_written_otherwise_is_found_by_its_results(tmp_path):
    value = aggregates({"a:b-c": 1}, **{"a:b-c": {}})
    report = take(evaluation(tmp_path / "s", value, a_b_c=[sample(0)]), tmp_path / "results")
    assert list(state_of(report).tasks) == ["a:b-c/0"]
    assert report.unplaced == ()


def test_partial_scores_are_scores_and_neither_right_nor_wrong(tmp_path):
    lines = [sample(0, 1.0, metric="bleu"), sample(1, 0.4, metric="bleu")]
    report = take(evaluation(tmp_path / "s", None, t=lines), tmp_path / "results")
    verdicts = events(report, "evaluation.finished")
    assert [(one.correct, one.score) for one in verdicts] == [(None, 1.0), (None, 0.4)]
    assert any("no aggregates" in one for one in told(report))


@pytest.mark.parametrize("value", ["bypass", [1, 2], {"a": 1}, math.nan])
def test_what_is_no_measure_is_kept_and_judges_nobody(tmp_path, value):
    report = take(
        evaluation(tmp_path / "s", None, t=[sample(0, value, metric="m")]), tmp_path / "results"
    )
    assert events(report, "evaluation.finished") == []
    kept = events(report, "result.recorded")[0].extra["filters"]["none"]["m"]
    assert repr(kept) == repr(value)
    assert lost(report) == []
    assert any("no finite numbers" in one for one in told(report))


def test_a_bypass_is_no_score(tmp_path):
    line = sample(0, 999, metric="bypass")
    report = take(evaluation(tmp_path / "s", None, t=[line]), tmp_path / "results")
    assert events(report, "evaluation.finished") == []


def test_choices_keep_their_requests(tmp_path):
    arguments = {f"gen_args_{n}": {"arg_0": "Q", "arg_1": f" {n}"} for n in range(2)}
    resps = [[["-1.5", "False"]], [["-0.5", "True"]]]
    line = sample(0, 1.0, metric="acc", arguments=arguments, resps=resps)
    report = take(evaluation(tmp_path / "s", None, t=[line]), tmp_path / "results")
    trajectory = events(report, "result.recorded")[0].trajectory
    assert trajectory == {"requests": [["Q", " 0"], ["Q", " 1"]], "responses": resps}


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        "{}",
        '{"doc_id": "0", "metrics": []}',
        '{"doc_id": true, "metrics": []}',
        '{"doc_id": 5, "metrics": ["acc"]}',
        '{"doc_id": 5, "metrics": "acc"}',
        '{"doc_id": 5, "filter": 1, "metrics": []}',
    ],
)
def test_a_line_that_is_no_sample_is_damage(tmp_path, line):
    report = take(evaluation(tmp_path / "s", None, t=[sample(0), line]), tmp_path / "results")
    assert report.damaged
    assert lost(report)[0].startswith(f"samples_t_{TIME}.jsonl:2: no ")
    assert state_of(report).finished is None


def test_a_torn_tail_is_named_and_no_failure(tmp_path):
    source = evaluation(tmp_path / "s", aggregates({"t": 2}, t={}), t=[sample(0)])
    with (source / f"samples_t_{TIME}.jsonl").open("a") as file:
        file.write(json.dumps(sample(1))[:50])
    report = take(source, tmp_path / "results")
    assert all(one.torn for one in report.unplaced)
    assert len(lost(report)) == 2
    assert state_of(report).finished is None


def test_a_sample_that_is_there_twice_counts_once_and_another_never(tmp_path):
    report = take(evaluation(tmp_path / "s", None, t=[sample(0), sample(0)]), tmp_path / "results")
    assert lost(report) == []
    assert any("counted once" in one for one in told(report))
    other = take(
        evaluation(tmp_path / "o", None, t=[sample(0), sample(0, 0.0)]), tmp_path / "results"
    )
    assert other.damaged


def test_a_file_of_no_known_kind_is_named_and_kept(tmp_path):
    value = aggregates(counts={"t": 1}, t={"exact_match,none": 1.0})
    source = evaluation(tmp_path / "s", value, t=[sample(0)])
    (source / "notes.txt").write_text("mine")
    write_json(source / "airline.json", [{"task_id": 1, "reward": 1.0}])
    report = take(source, tmp_path / "results")
    why = "it is no part of the evaluation, and only kept"
    assert lost(report) == [f"airline.json: {why}"]
    assert f"notes.txt: {why}" in told(report)
    assert (report.records_in, report.records_out) == (4, 3)
    assert state_of(report).finished is not None
    assert set(originals(report)) >= {"airline.json", "notes.txt"}


def test_aggregates_alone_are_refused(tmp_path):
    source = evaluation(tmp_path / "s", aggregates({"t": 2}, t={"exact_match,none": 0.5}))
    with pytest.raises(UsageError, match="no samples"):
        take(source, tmp_path / "results")


def test_several_evaluations_are_refused_and_samples_of_another_are_named(tmp_path):
    source = evaluation(tmp_path / "s", aggregates({"t": 1}, t={}), t=[sample(0)])
    later = "2026-02-01T00-00-00.000001"
    write_lines(source / f"samples_t_{later}.jsonl", sample(0, 0.0))
    report = take(source, tmp_path / "results")
    assert lost(report) == [
        f"samples_t_{later}.jsonl: samples of another evaluation than the results"
    ]
    assert state_of(report).finished is None
    write_json(source / f"results_{later}.json", aggregates(t={}))
    with pytest.raises(UsageError, match="several evaluations"):
        take(source, tmp_path / "results")


@pytest.mark.parametrize(
    "value", [{"results": {}}, {"results": [], "config": {}}, {"results": {"a": 1}, "config": {}}]
)
def test_other_json_is_not_taken(tmp_path, value):
    assert recognised(write_json(tmp_path / "x.json", value)) == []
