"""Golden trees of the layout `jobs`: the same ledger gives the same bytes, and the right ones.

What the layout says of every file is asserted from the committed trees themselves.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from exporters.check import check_tree
from exporters.jobs.job import job_files
from ledger.fold import fold
from ledger.view import LedgerView
from tests.golden.regenerate import JOB_RUNS, JOBS

CASES = sorted(JOB_RUNS)
WITHOUT_TRAILER = {"report.json", "reward.json", "trajectory.json", "MANIFEST.json"}


def files(case: str) -> dict[str, bytes]:
    found = (path for path in (JOBS / case).rglob("*") if path.is_file())
    return {path.relative_to(JOBS / case).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("case", CASES)
def test_a_ledger_gives_its_golden_job_byte_for_byte(case: str, tmp_path: Path) -> None:
    JOB_RUNS[case](tmp_path)
    with LedgerView.open(tmp_path) as view:
        state = fold(view.events())
        made = {
            file.path: file.data if isinstance(file.data, bytes) else b"".join(file.data)
            for file in job_files(state, view)
        }
        findings = check_tree(
            lambda size: fold(view.events(until=size)),
            view,
            JOBS / case,
            ledger_id=view.ledger_id.hex(),
            size=view.size,
        )
        assert list(findings) == []
    golden = files(case)
    del golden["MANIFEST.json"]
    assert set(made) == set(golden)
    for path, data in made.items():
        assert golden[path] == data, path


def floats(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in floats(item)]
    if isinstance(value, list):
        return [number for item in value for number in floats(item)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("case", CASES)
def test_every_file_is_as_the_layout_says(case: str) -> None:
    trailers = set()
    for path, data in files(case).items():
        name = path.rpartition("/")[2]
        assert not re.search(rb"\b(NaN|Infinity)\b|-0\.0\b", data), path
        if name == "config.yaml":
            assert yaml.safe_dump(yaml.safe_load(data), sort_keys=False, allow_unicode=True) == (
                data.decode()
            )
        if not name.endswith(".json"):
            continue
        tree = json.loads(data)
        text = json.dumps(tree, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        assert text.encode() == data, path
        assert all(round(number, 10) == number for number in floats(tree)), path
        if name not in WITHOUT_TRAILER:
            assert list(tree)[-1] == "acl", path
            trailers.add(json.dumps([tree["acl"][key] for key in ("ledger_id", "size", "root")]))
            assert list(tree["acl"])[:5] == ["schema", "run_id", "ledger_id", "size", "root"]
    assert len(trailers) == 1


@pytest.mark.parametrize("case", CASES)
def test_every_trial_that_the_job_names_has_its_directory(case: str) -> None:
    found = files(case)
    trials = {path.split("/")[0] for path in found if "/" in path}
    (told,) = json.loads(found["result.json"])["stats"]["evals"].values()
    groups = (*told["reward_stats"].values(), told["exception_stats"])
    assert {name for group in groups for names in group.values() for name in names} <= trials
    for trial in trials:
        assert {f"{trial}/result.json", f"{trial}/agent/litellm-trajectory.jsonl"} <= found.keys()
        assert {f"{trial}/agent/trajectory.json", f"{trial}/verifier/report.json"} <= found.keys()
        assert json.loads(found[f"{trial}/result.json"])["trial_name"] == trial


def test_the_agents_are_told_as_what_happened() -> None:
    found = files("agents")
    job = json.loads(found["result.json"])
    assert job["n_total_trials"] == 4
    # `fix` declares that half is enough, its first attempt has half; `late/one` has 1 in its second
    assert (job["acl"]["n_resolved"], job["acl"]["resolve_rate"]) == (2, 100.0)
    (told,) = job["stats"]["evals"].values()
    assert told["metrics"] == [{"mean": 0.375}]
    assert told["pass_at_k"] == {}
    assert told["exception_stats"] == {"AgentTimeoutError": ["late_one__1"]}
    assert json.loads(found["fix__1/verifier/report.json"])["fix"]["resolved"] is True
    lines = found["fix__2/agent/litellm-trajectory.jsonl"].splitlines()
    assert [json.loads(line)["success"] for line in lines] == [False, False, True]
    trial = json.loads(found["fix__1/result.json"])["agent_result"]
    assert trial["metadata"] == {"n_llm_calls": 2, "n_turns": 2, "n_tool_calls": 1}
    assert trial["cost_usd"] == 0.5
