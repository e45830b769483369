"""acl-repair: calibrated, unchanged since it was generated, and exact about each hidden case."""

import asyncio
import doctest
import hashlib
import json
from collections import Counter
from importlib import import_module
from importlib.resources import files
from typing import Any, cast

import pytest

from ledger.errors import IntegrityError, UsageError
from runtime.benchmarks.repair.benchmark import RepairBenchmark, extract_source
from runtime.benchmarks.repair.generate import DOMAINS, generate, originals, parse_examples
from runtime.benchmarks.repair.tasks import Case, read_tasks, shipped_tasks, write_tasks
from runtime.contracts import AttemptContext, StageError, Task
from runtime.harnesses.noop import NoopHarness
from runtime.harnesses.oracle import OracleHarness
from runtime.results import Evaluation, RunResult
from runtime.sandbox import SandboxFailed, run_checks, try_candidates

BENCHMARK = RepairBenchmark()
CONTEXT = cast("AttemptContext", None)  # neither these harnesses nor the verifier look at it
DATA = (files("runtime.benchmarks.repair") / "tasks.jsonl").read_bytes()
DIGEST = (files("runtime.benchmarks.repair") / "tasks.jsonl.sha256").read_bytes()


def judge(task: Task, answer: Any) -> Evaluation:
    result = RunResult(task.task_id, final_answer=answer)
    return asyncio.run(BENCHMARK.evaluate(task, result, CONTEXT))


def calibrate(harness: NoopHarness | OracleHarness) -> list[Evaluation]:
    async def one(task: Task) -> Evaluation:
        result = await harness.run_task(task, None, None, CONTEXT)
        return await BENCHMARK.evaluate(task, result, CONTEXT)

    async def every() -> list[Evaluation]:
        return await asyncio.gather(*map(one, BENCHMARK.load_tasks({})))

    return asyncio.run(every())


def test_the_oracle_scores_100_percent() -> None:
    verdicts = calibrate(OracleHarness())
    assert len(verdicts) == 60
    assert {(v.correct, v.score, v.metrics["hidden_pass_rate"]) for v in verdicts} == {
        (True, 1.0, 1.0)
    }


def test_doing_nothing_scores_0_percent_and_fails_just_the_recorded_cases() -> None:
    verdicts = calibrate(NoopHarness())
    assert {(v.correct, v.score) for v in verdicts} == {(False, 0.0)}
    for task, verdict in zip(shipped_tasks(), verdicts, strict=True):
        assert verdict.tests_status["FAIL_TO_PASS"] == {
            "success": [],
            "failure": list(task.fail_to_pass),
        }
        assert verdict.tests_status["PASS_TO_PASS"]["failure"] == []


def test_every_task_shows_its_bug_in_an_example() -> None:
    async def failing(number: int) -> bool:
        task = shipped_tasks()[number]
        checks = [case.check() for case in task.examples]
        broken = await run_checks(task.source, task.entry, checks)
        whole = await run_checks(task.solution, task.entry, checks)
        return whole.passed and not broken.passed

    async def every() -> list[bool]:
        return await asyncio.gather(*map(failing, range(60)))

    assert all(asyncio.run(every()))


def test_generating_again_gives_the_same_bytes() -> None:
    assert write_tasks(asyncio.run(generate())) == (DATA, DIGEST)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_originals_do_what_their_docstrings_say(domain: str) -> None:
    module = import_module(f"runtime.benchmarks.repair.originals.{domain}")
    results = doctest.testmod(module)
    assert (results.failed, results.attempted) == (0, 36)


def test_the_tasks_are_sixty_different_functions_of_five_domains() -> None:
    tasks = shipped_tasks()
    assert len({task.entry for task in tasks}) == len(tasks) == 60
    assert Counter(task.category for task in tasks) == dict.fromkeys(DOMAINS, 12)
    assert {task.metadata.domain for task in tasks[:5]} == set(DOMAINS)


def test_the_difficulty_comes_from_the_number_of_bugs() -> None:
    bugs = {task.metadata.difficulty: set[int]() for task in shipped_tasks()}
    for task in shipped_tasks():
        bugs[task.metadata.difficulty].add(task.metadata.bugs)
    assert bugs == {"easy": {1}, "medium": {2}, "hard": {2}}


def test_all_kinds_of_bug_occur() -> None:
    kinds = Counter(task.metadata.bug_type for task in shipped_tasks())
    assert set(kinds) == {"arithmetic", "boolean", "comparison", "negation", "off_by_one"}
    assert min(kinds.values()) >= 4


def test_the_hidden_cases_go_beyond_the_examples() -> None:
    for original in originals():
        examples = {case.call for case in original.examples}
        hidden = [case.call for case in original.hidden]
        assert len(hidden) == len(set(hidden)) >= 7, original.entry
        assert not examples & set(hidden), original.entry


def test_the_agent_sees_no_hidden_case_and_no_solution() -> None:
    for task, shipped in zip(BENCHMARK.load_tasks({}), shipped_tasks(), strict=True):
        seen = json.dumps(dict(task.input))
        assert json.dumps(shipped.solution)[1:-1] not in seen
        assert not [case.call for case in shipped.hidden if case.call in seen]


def test_examples_are_read_as_doctest_reads_them() -> None:
    text = "Say it.\n\n>>> f(1)\n2\n>>> f(0)\n>>> f('a')\n'b'\n"
    read = [(case.call, case.expected) for case in parse_examples(text)]
    assert read == [("f(1)", "2"), ("f(0)", "None"), ("f('a')", "'b'")]
    found = doctest.DocTestParser().get_examples(text)
    assert [example.source.strip() for example in found] == [call for call, _ in read]


def test_a_changed_byte_of_the_task_file_is_found() -> None:
    for at in (0, len(DATA) // 2, len(DATA) - 2):
        changed = DATA[:at] + bytes([DATA[at] ^ 1]) + DATA[at + 1 :]
        with pytest.raises(IntegrityError, match="not the file that was released"):
            read_tasks(changed, DIGEST)


def test_a_changed_task_is_found_even_with_a_new_digest_of_the_file() -> None:
    changed = DATA.replace(b"count_runs('a')", b"count_runs('b')", 1)
    assert changed != DATA
    digest = f"{hashlib.sha256(changed).hexdigest()}  tasks.jsonl\n".encode()
    with pytest.raises(IntegrityError, match="strings-count_runs"):
        read_tasks(changed, digest)


def test_the_checksum_is_that_of_the_stored_line() -> None:
    for line, task in zip(DATA.splitlines(), BENCHMARK.load_tasks({}), strict=True):
        row = json.loads(line)
        checksum = row.pop("checksum")
        compact = json.dumps(row, sort_keys=True, separators=(",", ":")).encode()
        assert hashlib.sha256(compact).hexdigest() == checksum == task.checksum


def test_the_verdict_names_each_hidden_case() -> None:
    task = BENCHMARK.load_tasks({})[0]
    assert task.task_id == "strings-count_runs"
    verdict = judge(task, "def count_runs(text):\n    return len(set(text))\n")
    failure = ["count_runs('abab')", "count_runs('  a  ')"]
    status = verdict.tests_status
    assert status["FAIL_TO_PASS"]["failure"] + status["PASS_TO_PASS"]["failure"] == failure
    assert verdict.metrics == {"hidden_pass_rate": 5 / 7}
    assert (verdict.correct, verdict.score) == (False, 0.0)
    assert verdict.reason == "2 of 7 hidden cases fail; count_runs('abab') gave 2"


@pytest.mark.parametrize("answer", [None, "", "  \n", 42, ["def"], "x" * 300_000])
def test_an_answer_without_a_source_is_wrong(answer: Any) -> None:
    verdict = judge(BENCHMARK.load_tasks({})[0], answer)
    assert (verdict.correct, verdict.score, verdict.reason) == (False, 0.0, "no answer")
    assert verdict.error is None


def test_an_answer_that_never_ends_is_wrong() -> None:
    verdict = judge(BENCHMARK.load_tasks({})[0], "while True:\n    pass\n")
    assert (verdict.correct, verdict.reason) == (False, "stopped: out of time")


def test_an_answer_that_ends_the_process_is_wrong() -> None:
    task = BENCHMARK.load_tasks({})[0]
    source = f"{task.ground_truth}\nimport atexit, os\natexit.register(os._exit, 3)\n"
    verdict = judge(task, source)
    assert (verdict.correct, verdict.reason) == (False, "the process ended with 3")


def test_what_an_answer_prints_is_kept() -> None:
    task = BENCHMARK.load_tasks({})[0]
    verdict = judge(task, f"print('loaded')\n{task.ground_truth}")
    assert (verdict.correct, verdict.stdout, verdict.stderr) == (True, "loaded\n", None)


def test_a_sandbox_that_fails_is_an_error_and_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*args: object) -> None:
        raise SandboxFailed("out of processes")

    monkeypatch.setattr("runtime.benchmarks.repair.benchmark.run_checks", broken)
    with pytest.raises(StageError, match="out of processes") as caught:
        judge(BENCHMARK.load_tasks({})[0], "def count_runs(text): return 0")
    assert caught.value.code == "sandbox_failed"


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("def f(): pass", "def f(): pass"),
        ("Here:\n```python\ndef f(): pass\n```\nDone.", "def f(): pass\n"),
        ("```\ndef f(): 1\n```\nno:\n```py\ndef f(): 2\n```", "def f(): 2\n"),
        ("```python\ndef f(): 1\n```\n```\nf() == 1\n```", "def f(): 1\n"),
        ("```python\ndef f(): 1", "```python\ndef f(): 1"),
    ],
)
def test_the_source_is_the_last_block_that_defines_the_function(answer: str, source: str) -> None:
    assert extract_source(answer, "f") == source


def test_fewer_tasks_are_the_first_ones() -> None:
    every = BENCHMARK.load_tasks({})
    assert BENCHMARK.load_tasks({"tasks": 7, "limit": 3}) == every[:7]
    assert BENCHMARK.select_tasks(every, {"limit": 3}) == every[:3]


@pytest.mark.parametrize("params", [{"task": 3}, {"tasks": -1}, {"tasks": "many"}, {"seed": 3}])
def test_a_wrong_parameter_is_named(params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(params))):
        BENCHMARK.load_tasks(params)


def test_a_case_that_expects_an_error_is_data() -> None:
    check = Case(call="f('x', 2)", raises="ValueError").check()
    assert (check.name, check.args, check.raises) == ("f('x', 2)", ("x", 2), "ValueError")


def test_the_trials_of_an_agent_agree_with_the_verifier() -> None:
    task = shipped_tasks()[0]
    checks = [case.check() for case in task.hidden]
    rows = asyncio.run(try_candidates([task.source, task.solution], task.entry, checks))
    alone = asyncio.run(run_checks(task.source, task.entry, checks))
    assert rows == [tuple(v.passed for v in alone.verdicts), (True,) * len(checks)]
