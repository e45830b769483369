"""An agent without a model for acl-arith: it computes what it can read.

It reads expressions and percentages, and four kinds of word problem by their sentences; on the
others it gives no answer, so it does not score 100 %.
"""

# A protocol gives its methods more than each of them needs.
# ruff: noqa: ARG002

import ast
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

from runtime.benchmarks.arith.answers import write_number
from runtime.benchmarks.arith.benchmark import ArithBenchmark
from runtime.contracts import AttemptContext, BaseHarness, Benchmark, Task
from runtime.results import RunResult

_LARGEST_TREE = 200  # characters of an expression

_N = r"([0-9]+(?:\.[0-9]+)?)"
_SENTENCES: tuple[tuple[str, str], ...] = (
    # what is asked, and the expression that its numbers go into
    (rf"What is {_N}% of {_N}\?", "{1} * {0} / 100"),
    (rf"What is {_N} increased by {_N}%\?", "{0} + {0} * {1} / 100"),
    (rf"What is {_N} decreased by {_N}%\?", "{0} - {0} * {1} / 100"),
    (rf"buys {_N} \w+ at {_N} each and pays with {_N}\. How much change", "{2} - {0} * {1}"),
    (rf"{_N} boxes with {_N} \w+ each\. {_N} \w+ are bad\. How many good", "{0} * {1} - {2}"),
    (rf"covers {_N} km in {_N} hours\. How many km .* in {_N} hours", "{0} / {1} * {2}"),
    (rf"add up to {_N} and differ by {_N}\. What is the larger", "({0} + {1}) / 2"),
)


class CalculatorHarness(BaseHarness):
    """Turns a question into an expression and computes it exactly."""

    id: ClassVar[str] = "calculator"

    def supports(self, benchmark: Benchmark) -> bool:
        """True for acl-arith: it reads the sentences of its questions."""
        return isinstance(benchmark, ArithBenchmark)

    async def run_task(
        self, task: Task, config: Any, session: Any, context: AttemptContext
    ) -> RunResult:
        """Answer with the value, or with nothing."""
        expression = read_question(task.input["question"])
        value = None if expression is None else compute(expression)
        answer = "" if value is None else write_number(value)
        return RunResult(
            task.task_id,
            category=task.category,
            final_answer=answer,
            trajectory=[
                {"step": 1, "action": "read", "expression": expression},
                {"step": 2, "action": "compute", "value": answer or None},
            ],
        )


def read_question(question: str) -> str | None:
    """Give the expression that a question asks for, or None if it is not understood."""
    computed = re.match(r"Compute (.+?)\.(?: |$)", question)
    if computed:
        return computed[1]
    for pattern, expression in _SENTENCES:
        asked = re.search(pattern, question)
        if asked:
            return expression.format(*asked.groups())
    return None


_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


def compute(expression: str) -> Fraction | None:
    """Compute an expression of numbers, + - * / and brackets exactly; None for anything else."""
    if len(expression) > _LARGEST_TREE:
        return None
    try:
        return _value(ast.parse(expression, mode="eval").body, expression)
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


def _value(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left, text), _value(right, text))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, text)
        case ast.Constant():
            # From the text: 0.1 is one tenth, not the nearest binary fraction.
            return Fraction(ast.get_source_segment(text, node) or "")
        case _:
            raise ValueError("not an expression of numbers")
