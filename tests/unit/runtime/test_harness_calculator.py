"""The calculator: exact where it understands the question, silent where it does not."""

import asyncio
from fractions import Fraction
from typing import cast

import pytest

from runtime.benchmarks.arith.benchmark import ArithBenchmark
from runtime.benchmarks.arith.problems import problems
from runtime.benchmarks.repair.benchmark import RepairBenchmark
from runtime.contracts import AttemptContext, Task
from runtime.harnesses.calculator import CalculatorHarness, compute, read_question

HARNESS = CalculatorHarness()
CONTEXT = cast("AttemptContext", None)  # it needs none


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-4 - -1", -3),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("(1/3) / (2/9)", Fraction(3, 2)),
        ("100000000000000000000000.5 * 2", 200000000000000000000001),
    ],
)
def test_expressions_are_computed_exactly(expression: str, value: int | Fraction) -> None:
    assert compute(expression) == value


@pytest.mark.parametrize(
    "expression", ["", "1 +", "1 / 0", "2 ** 9", "x + 1", "f(1)", "'a'", "(" * 150, "1 + " * 300]
)
def test_what_is_no_expression_has_no_value(expression: str) -> None:
    assert compute(expression) is None


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        ("Compute 3 + 4 * (2 - 1).", "3 + 4 * (2 - 1)"),
        ("Compute 1.5 * 0.2. Give the exact value.", "1.5 * 0.2"),
        ("What is 15% of 240?", "240 * 15 / 100"),
        ("What is 80 decreased by 25%?", "80 - 80 * 25 / 100"),
        ("What is the meaning of it all?", None),
    ],
)
def test_questions_become_expressions(question: str, expression: str | None) -> None:
    assert read_question(question) == expression


def test_what_it_answers_is_right_and_word_problems_are_where_it_gives_up() -> None:
    for problem in problems(600, seed=5):
        expression = read_question(problem.question)
        if expression is None:
            assert problem.category == "word"
        else:
            assert compute(expression) == problem.answer, problem.question


def test_it_scores_well_but_not_100_percent() -> None:
    benchmark = ArithBenchmark()

    async def right(task: Task) -> bool | None:
        result = await HARNESS.run_task(task, None, None, CONTEXT)
        return (await benchmark.evaluate(task, result, CONTEXT)).correct

    async def every() -> list[bool | None]:
        return [await right(task) for task in benchmark.load_tasks({})]

    correct = sum(map(bool, asyncio.run(every())))
    assert 48 < correct < 60


def test_the_trajectory_shows_the_expression() -> None:
    task = Task("t", input={"question": "Compute 6 * 7."})
    result = asyncio.run(HARNESS.run_task(task, None, None, CONTEXT))
    assert result.final_answer == "42"
    assert result.trajectory == [
        {"step": 1, "action": "read", "expression": "6 * 7"},
        {"step": 2, "action": "compute", "value": "42"},
    ]


def test_a_question_it_does_not_understand_gets_an_empty_answer_and_no_error() -> None:
    task = Task("t", input={"question": "Why?"})
    result = asyncio.run(HARNESS.run_task(task, None, None, CONTEXT))
    assert (result.final_answer, result.status, result.error) == ("", "completed", None)


def test_only_arithmetic_is_supported() -> None:
    assert HARNESS.supports(ArithBenchmark())
    assert not HARNESS.supports(RepairBenchmark())
