"""Real runs against a stub endpoint, as jobs: every request a line, and no key in any file."""

import json
from pathlib import Path
from typing import Any

import pytest

from acl.main import call
from tests.stub_endpoint import StubEndpoint

KEY = "not-shaped-like-a-key-1234567890"
SHAPED = "sk-proj-abcdefghij0123456789abcd"


def echo_keys(body: dict[str, Any]) -> str:
    """A model that repeats secrets in its answer, one of them split by a line break before it."""
    return f"your key is\n{KEY}, and another is {SHAPED}\n42"


def run(stub: StubEndpoint, *more: str) -> Path:
    """Run three tasks of acl-arith, and return the directory of the run."""
    status = call(
        [
            *("run", "--benchmark", "acl-arith", "--harness", "openai", "--model", "gpt-4o"),
            *("--base-url", stub.base_url, "--api-key-env", "JOBS_TEST_API_KEY", "--limit", "3"),
            *("--max-retries", "1", "--retry-min-delay", "0.001", "--concurrency", "1"),
            *more,
        ]
    )
    assert status in (0, 1)
    return max(Path("results/acl-arith/gpt-4o").iterdir())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOBS_TEST_API_KEY", KEY)


def job(directory: str) -> Path:
    (found,) = Path(directory, "jobs").iterdir()
    return found


def lines(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.glob("*/agent/litellm-trajectory.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_every_request_is_a_line_and_no_key_is_in_any_file() -> None:
    # A rate limit, an answer; a refusal that repeats the key, which ends the attempt; a stream
    # that breaks, and a timeout's kin after it.
    with StubEndpoint("429", "answer", "401", "die_midway", "503", answer=echo_keys) as stub:
        path = run(stub, "--harness-param", "stream=true")
    assert call(["export", "-f", "jobs", str(path), "artifacts"]) == 0
    directory = job("artifacts")
    found = lines(directory)
    assert len(found) == len(stub.requests) == 5
    assert [line["success"] for line in found] == [False, True, False, False, False]
    assert [line.get("failure", {}).get("error_type") for line in found] == [
        "ApiRateLimitError",
        None,
        "AgentAuthenticationError",
        "ApiConnectionClosedError",
        "ApiInternalServerError",
    ]
    for file in directory.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert KEY.encode() not in data, file
            assert SHAPED.encode() not in data, file
    refused = found[2]["failure"]["message"]
    assert "********" in refused
    assert "Incorrect API key provided" in refused
    (answer,) = [line["response_body"] for line in found if line["success"]]
    assert answer["choices"][0]["message"]["content"] == (
        "your key is\n********, and another is ********\n42"
    )


def test_the_numbers_of_a_real_run_add_up() -> None:
    with StubEndpoint("429", "answer", "no_usage") as stub:
        path = run(stub)
    assert call(["export", "-f", "jobs", str(path), "artifacts"]) == 0
    directory = job("artifacts")
    told = json.loads((directory / "result.json").read_text())["stats"]
    known = [line["usage"] for line in lines(directory) if line["success"]]
    tokens = [usage["prompt_tokens"] for usage in known]
    assert tokens.count(None) == 1
    assert told["n_input_tokens"] == sum(count for count in tokens if count is not None)
    assert told["cost_usd"] == pytest.approx(
        sum(usage["cost"] for usage in known if usage["cost"] is not None), abs=1e-10
    )
    assert told["n_retries"] == 1
    for trial in sorted(directory.glob("*/result.json")):
        found = json.loads(trial.read_text())
        parts = ("environment_setup", "agent_setup", "agent_execution", "verifier")
        times = [found["started_at"]]
        for part in parts:
            times += [found[part]["started_at"], found[part]["finished_at"]]
        assert times == sorted(times)
        assert times[-1] <= found["finished_at"]


def test_tasks_that_were_taken_over_have_their_calls_in_the_new_job_too() -> None:
    with StubEndpoint() as stub:
        first = run(stub)
        asked = len(stub.requests)
        second = run(stub, "--reuse-run-id", first.name, "--run-id", "zz-second")
        assert len(stub.requests) == asked
    assert second.name == "zz-second"
    assert call(["export", "-f", "jobs", str(first), "one"]) == 0
    assert call(["export", "-f", "jobs", str(second), "two"]) == 0

    def calls(directory: str) -> list[tuple[str, dict[str, Any]]]:
        return [(line["acl"]["call_id"], line["request_body"]) for line in lines(job(directory))]

    assert calls("one") == calls("two")
    assert len(calls("two")) == asked
    for trial in job("two").glob("*/result.json"):
        assert json.loads(trial.read_text())["acl"]["reused_from"]["run_id"] == first.name


def test_a_second_export_and_one_of_a_copy_are_the_same_bytes() -> None:
    with StubEndpoint("500", "answer") as stub:
        path = run(stub, "--k", "2")
    assert call(["copy", str(path), "copied"]) == 0
    assert call(["export", "-f", "jobs", str(path), "one"]) == 0
    assert call(["export", "-f", "jobs", "copied", "two"]) == 0

    def tree(directory: Path) -> dict[str, bytes]:
        files = (file for file in directory.rglob("*") if file.is_file())
        return {file.relative_to(directory).as_posix(): file.read_bytes() for file in files}

    assert job("one").name == job("two").name
    assert tree(job("one")) == tree(job("two"))
