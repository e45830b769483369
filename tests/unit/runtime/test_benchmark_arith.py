"""acl-arith: calibrated, pinned, exact."""

import asyncio
from fractions import Fraction
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import UsageError
from runtime.benchmarks.arith.answers import read_number, write_number
from runtime.benchmarks.arith.benchmark import ArithBenchmark
from runtime.benchmarks.arith.problems import CATEGORIES, list_checksum, problems
from runtime.contracts import AttemptContext, Task
from runtime.harnesses.noop import NoopHarness
from runtime.harnesses.oracle import OracleHarness
from runtime.results import Evaluation, RunResult

BENCHMARK = ArithBenchmark()
CONTEXT = cast("AttemptContext", None)  # neither these harnesses nor the verifier look at it


def judge(task: Task, answer: Any) -> Evaluation:
    result = RunResult(task.task_id, final_answer=answer)
    return asyncio.run(BENCHMARK.evaluate(task, result, CONTEXT))


def verdicts(harness: NoopHarness | OracleHarness) -> set[tuple[bool | None, float | None]]:
    async def every() -> list[Evaluation]:
        found = []
        for task in BENCHMARK.load_tasks({}):
            result = await harness.run_task(task, None, None, CONTEXT)
            found.append(await BENCHMARK.evaluate(task, result, CONTEXT))
        return found

    return {(verdict.correct, verdict.score) for verdict in asyncio.run(every())}


def test_the_oracle_scores_100_percent() -> None:
    assert verdicts(OracleHarness()) == {(True, 1.0)}


def test_doing_nothing_scores_0_percent() -> None:
    assert verdicts(NoopHarness()) == {(False, 0.0)}


def test_the_generated_list_is_the_pinned_one() -> None:
    # A change here is a new version of the benchmark: results would not be comparable.
    pinned = "0338d68e050d2b6ddce645ca17fa9bf681a376f303e5203f8f64e9781d75dd7e"
    assert list_checksum(problems()) == pinned


def test_a_shorter_list_begins_a_longer_one_and_another_seed_is_another_list() -> None:
    assert problems(7) == problems()[:7]
    assert problems(7, seed=2) != problems(7)


def test_the_categories_take_turns_and_ids_are_unique() -> None:
    every = problems()
    assert tuple(problem.category for problem in every[:5]) == CATEGORIES
    assert len({problem.task_id for problem in every}) == len(every) == 60


def test_every_difficulty_occurs() -> None:
    assert {problem.difficulty for problem in problems()} == {"easy", "medium", "hard"}


def test_expressions_have_the_value_that_python_gives_them() -> None:
    for problem in problems(300, seed=11):
        if problem.category == "expression":
            text = problem.question.removeprefix("Compute ").removesuffix(".")
            assert eval(text) == problem.answer


def test_fractions_and_decimals_have_the_value_that_floats_come_near_to() -> None:
    for problem in problems(300, seed=12):
        if problem.category in ("fraction", "decimal"):
            text = problem.question.removeprefix("Compute ").removesuffix("Give the exact value.")
            assert eval(text.strip().removesuffix(".")) == pytest.approx(float(problem.answer))


@given(st.integers(0, 10**6), st.integers(0, 400))
@settings(max_examples=100)
def test_the_truth_is_read_back_from_its_own_text(seed: int, number: int) -> None:
    problem = problems(number % 20 + 1, seed)[-1]
    assert read_number(write_number(problem.answer)) == problem.answer


@given(st.fractions(-(10**30), 10**30, max_denominator=10**6))
@settings(max_examples=200)
def test_every_number_is_read_back(value: Fraction) -> None:
    assert read_number(write_number(value)) == value
    assert read_number(f"So the answer is {write_number(value)}.") == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(12), "12"),
        (Fraction(-7, 2), "-3.5"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-1, 1000), "-0.001"),
        (Fraction(0), "0"),
    ],
)
def test_numbers_are_written_in_the_shortest_exact_form(value: Fraction, text: str) -> None:
    assert write_number(value) == text


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("12", 12),
        ("The result is -3.", -3),
        ("first 4, then 5", 5),
        ("5-3", 3),
        ("7 - 2 = 5", 5),
        ("(2)-3", 3),
        ("\u22125", -5),
        ("$1,234.50", Fraction("1234.5")),
        ("1,234,567", 1234567),
        ("12,34", 34),
        ("3/4", Fraction(3, 4)),
        ("3 / 4", Fraction(3, 4)),
        ("-1 3/4", Fraction(-7, 4)),
        (r"\frac{3}{4}", Fraction(3, 4)),
        (r"$\boxed{-7}$", -7),
        ("**42**", 42),
        ("12%", Fraction(3, 25)),
        (".5", Fraction(1, 2)),
        ("4km", 4),
        (12, 12),
        (10**5000, 10**5000),
        (0.1, Fraction(1, 10)),
        (1e-7, Fraction(1, 10**7)),
    ],
    ids=lambda value: repr(value)[:20] if not isinstance(value, int) else "number",
)
def test_the_last_number_of_an_answer_is_read(answer: object, value: Fraction | int) -> None:
    assert read_number(answer) == value


@pytest.mark.parametrize(
    "answer",
    ["", "no idea", "x2", None, True, [3], float("nan"), float("inf"), "3/0", "9" * 100],
)
def test_what_is_no_number_is_not_read(answer: object) -> None:
    assert read_number(answer) is None


def test_a_huge_answer_is_read_from_its_end() -> None:
    assert read_number("1 " * 10_000_000 + "= 17") == 17
    assert read_number("7" * 10_000_000) is None


def test_the_verdict_says_what_was_read() -> None:
    task = BENCHMARK.load_tasks({})[0]
    verdict = judge(task, "I think it is 12")
    assert (verdict.correct, verdict.reason) == (False, "read 12, right is -1571")
    assert judge(task, "dunno").reason == "read no number, right is -1571"


def test_the_question_does_not_hold_the_answer_by_accident() -> None:
    for task in BENCHMARK.load_tasks({}):
        assert not judge(task, task.input["prompt"]).correct, task.task_id


@pytest.mark.parametrize("params", [{"task": 3}, {"tasks": -1}, {"seed": "x"}])
def test_a_wrong_parameter_is_named(params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(params))):
        BENCHMARK.load_tasks(params)
