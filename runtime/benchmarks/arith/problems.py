"""Seeded arithmetic and word problems with their exact answers.

The same seed gives the same problems in every release that has the same `VERSION`.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Literal

from runtime.benchmarks.arith.answers import write_number

VERSION = "1"
CATEGORIES = ("expression", "fraction", "decimal", "percent", "word")

_SYMBOLS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One question; `operations` counts the steps of its solution."""

    task_id: str
    category: str
    question: str
    answer: Fraction
    operations: int

    @property
    def difficulty(self) -> Literal["easy", "medium", "hard"]:
        """One step is easy, two are medium, more are hard."""
        if self.operations <= 1:
            return "easy"
        return "medium" if self.operations == 2 else "hard"

    @property
    def checksum(self) -> str:
        """SHA-256 hex of what decides the task."""
        return _digest([self.task_id, self.question, write_number(self.answer)])


def problems(count: int = 60, seed: int = 1) -> tuple[Problem, ...]:
    """Give `count` problems, categories taking turns; a shorter list begins a longer one."""
    return tuple(_problem(number, seed) for number in range(count))


def list_checksum(chosen: Sequence[Problem]) -> str:
    """Give the SHA-256 hex over a list of problems."""
    return _digest([problem.checksum for problem in chosen])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def _problem(number: int, seed: int) -> Problem:
    random = Random(f"acl-arith/{VERSION}/{seed}/{number}")  # noqa: S311 (reproducible on purpose)
    category = CATEGORIES[number % len(CATEGORIES)]
    make = {
        "expression": _expression,
        "fraction": _fraction,
        "decimal": _decimal,
        "percent": _percent,
        "word": _word,
    }[category]
    question, answer, operations = make(random)
    return Problem(f"arith-{number + 1:03d}-{category}", category, question, answer, operations)


Made = tuple[str, Fraction, int]


def _expression(random: Random) -> Made:
    operations = random.randint(1, 4)
    text, value = _tree(random, operations)
    return f"Compute {text}.", value, operations


def _tree(random: Random, operations: int) -> tuple[str, Fraction]:
    """Build a random expression over whole numbers; every inner one stands in brackets."""
    if operations == 0:
        number = random.randint(2, 99)
        return str(number), Fraction(number)
    symbol = random.choice("+-*")
    left_operations = random.randint(0, operations - 1)
    left, a = _tree(random, left_operations)
    right, b = _tree(random, operations - 1 - left_operations)
    left = f"({left})" if " " in left else left
    right = f"({right})" if " " in right else right
    return f"{left} {symbol} {right}", _SYMBOLS[symbol](a, b)


def _fraction(random: Random) -> Made:
    parts = random.randint(2, 3)
    value = Fraction(random.randint(1, 9), random.randint(2, 12))
    text = f"{value.numerator}/{value.denominator}"
    for _ in range(parts - 1):
        symbol = random.choice("+-*/")
        other = Fraction(random.randint(1, 9), random.randint(2, 12))
        text = f"({text}) {symbol} ({other.numerator}/{other.denominator})"
        value = _SYMBOLS[symbol](value, other)
    return f"Compute {text}. Give the exact value.", value, parts - 1


def _decimal(random: Random) -> Made:
    numbers = [Fraction(random.randint(1, 2000), random.choice((10, 100))) for _ in range(3)]
    first, second = random.choice("+-*"), random.choice("+-")
    a, b, c = numbers
    value = _SYMBOLS[second](_SYMBOLS[first](a, b), c)
    texts = [write_number(number) for number in numbers]
    return f"Compute {texts[0]} {first} {texts[1]} {second} {texts[2]}.", value, 2


def _percent(random: Random) -> Made:
    rate, base = Fraction(random.randint(1, 19) * 5), Fraction(random.randint(4, 250) * 2)
    kind = random.choice(("of", "increased", "decreased"))
    share = base * rate / 100
    if kind == "of":
        return f"What is {rate}% of {base}?", share, 1
    value = base + share if kind == "increased" else base - share
    return f"What is {base} {kind} by {rate}%?", value, 2


def _word(random: Random) -> Made:
    story = random.choice((_change, _boxes, _speed, _left_over, _two_numbers, _tank, _two_rates))
    return story(random)


def _change(random: Random) -> Made:
    count, price = random.randint(2, 9), Fraction(random.randint(25, 975), 100)
    paid = Fraction(random.randint(90, 120))
    question = (
        f"A customer buys {count} notebooks at {write_number(price)} each and pays with {paid}. "
        "How much change is due?"
    )
    return question, paid - count * price, 2


def _boxes(random: Random) -> Made:
    boxes, each, bad = random.randint(3, 40), random.randint(6, 48), random.randint(1, 17)
    question = (
        f"There are {boxes} boxes with {each} apples each. {bad} apples are bad. "
        "How many good apples are there?"
    )
    return question, Fraction(boxes * each - bad), 2


def _speed(random: Random) -> Made:
    hours, speed, later = random.randint(2, 6), random.randint(40, 130), random.randint(3, 14)
    question = (
        f"A train covers {hours * speed} km in {hours} hours. "
        f"How many km does it cover in {later} hours at the same speed?"
    )
    return question, Fraction(speed * later), 2


def _left_over(random: Random) -> Made:
    sheets, classes = random.randint(100, 999), random.randint(6, 29)
    question = (
        f"{sheets} sheets of paper are shared equally among {classes} classes, "
        "as many whole sheets as possible. How many sheets are left over?"
    )
    return question, Fraction(sheets % classes), 1


def _two_numbers(random: Random) -> Made:
    smaller, difference = random.randint(3, 80), random.randint(1, 40)
    question = (
        f"Two numbers add up to {2 * smaller + difference} and differ by {difference}. "
        "What is the larger number?"
    )
    return question, Fraction(smaller + difference), 2


def _tank(random: Random) -> Made:
    litres, leak = random.randint(50, 900), random.randint(1, 9)
    inflow = leak + random.randint(2, 20)
    question = (
        f"An empty tank of {litres} litres is filled with {inflow} litres a minute "
        f"while {leak} litres a minute leak out. After how many minutes is it full? "
        "Give the exact value."
    )
    return question, Fraction(litres, inflow - leak), 2


def _two_rates(random: Random) -> Made:
    price = Fraction(random.randint(20, 400))
    up, down = random.randint(1, 10) * 5, random.randint(1, 10) * 5
    question = (
        f"A price of {price} rises by {up} percent and then falls by {down} percent. "
        "What is the price now?"
    )
    return question, price * (100 + up) * (100 - down) / 10_000, 4
