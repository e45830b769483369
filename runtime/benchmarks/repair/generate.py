"""Make the tasks of acl-repair: break each original by one or two seeded changes.

A set of changes is taken if the broken function fails a hidden case and an example, passes some
hidden case, ends in time, and no part of the set could be left out.  Run as a module it writes the
task file::

    python -m runtime.benchmarks.repair.generate
"""

import ast
import asyncio
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from runtime.benchmarks.repair.mutate import BugType, Mutation, apply, compatible, mutations
from runtime.benchmarks.repair.tasks import Case, Metadata, RepairTask, write_tasks
from runtime.sandbox import Limits, SandboxResult, run_checks, try_candidates

DOMAINS = ("strings", "lists", "numbers", "dates", "parsing")
_SEED = "acl-repair/1"
_TRIAL = Limits(cpu_seconds=0.02)
_BATCH = 4


@dataclass(frozen=True, slots=True)
class Original:
    """A correct function with its examples and hidden cases."""

    domain: str
    entry: str
    source: str
    examples: tuple[Case, ...]
    hidden: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to break a function, and how many examples and hidden cases it then passes."""

    changes: tuple[Mutation, ...]
    source: str
    examples: int
    hidden: int


def originals() -> list[Original]:
    """Read the originals: the first of each domain, then the second of each, and so on."""
    columns = [_read_domain(domain) for domain in DOMAINS]
    return [original for row in zip(*columns, strict=True) for original in row]


def _read_domain(domain: str) -> list[Original]:
    here = files(__package__) / "originals"
    text = (here / f"{domain}.py").read_text("utf-8")
    hidden: dict[str, list[Case]] = {}
    for line in (here / "hidden" / f"{domain}.txt").read_text("utf-8").splitlines():
        if line:
            case = _parse_case(line)
            hidden.setdefault(case.call.partition("(")[0], []).append(case)
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            source = ast.get_source_segment(text, node)
            assert source is not None
            examples = parse_examples(ast.get_docstring(node) or "")
            found.append(
                Original(domain, node.name, source + "\n", examples, tuple(hidden[node.name]))
            )
    return found


def _parse_case(line: str) -> Case:
    call, raising, error = line.partition(" raises ")
    if raising:
        return Case(call=call, raises=error)
    tree = ast.parse(line, mode="eval").body
    assert isinstance(tree, ast.Compare)
    call = ast.get_source_segment(line, tree.left) or ""
    return Case(call=call, expected=ast.get_source_segment(line, tree.comparators[0]))


def parse_examples(docstring: str) -> tuple[Case, ...]:
    """Read one-line doctest examples; an example without a result expects None."""
    lines = docstring.splitlines()
    examples = []
    for line, following in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if line.startswith(">>> "):
            shown = following if following and not following.startswith(">>> ") else "None"
            examples.append(Case(call=line.removeprefix(">>> "), expected=shown))
    return tuple(examples)


async def generate() -> list[RepairTask]:
    """Make every task; the same sources give the same tasks."""
    pending = []
    for number, original in enumerate(originals()):
        turn = number // len(DOMAINS)
        # The number of bugs alternates from turn to turn; the kinds are shifted by one each turn,
        # so that a domain meets all of them.
        pending.append(_break(original, 1 + turn % 2, _preference(number + turn)))
    return await asyncio.gather(*pending)


def _preference(number: int) -> tuple[BugType, ...]:
    kinds = tuple(BugType)
    first = number % len(kinds)
    return kinds[first:] + kinds[:first]


async def _break(original: Original, bugs: int, preference: Sequence[BugType]) -> RepairTask:
    checks = [case.check() for case in original.hidden]
    whole = await run_checks(original.source, original.entry, checks)
    assert whole.passed, f"{original.entry} fails {whole.verdicts}"
    for batch in _batches(_change_sets(original, bugs, preference)):
        for trial in await _try(original, batch):
            if _usable(trial, original) and await _minimal(trial, original):
                result = await run_checks(trial.source, original.entry, checks)
                if not result.timed_out:
                    return await _task(trial, original, preference, result)
    raise AssertionError(f"no way to break {original.entry} with {bugs} changes")


def _change_sets(
    original: Original, bugs: int, preference: Sequence[BugType]
) -> list[tuple[Mutation, ...]]:
    """Every set of `bugs` changes in seeded order, those of preferred kinds first."""
    sets = [
        chosen
        for chosen in itertools.combinations(mutations(original.source), bugs)
        if all(compatible(*pair) for pair in itertools.combinations(chosen, 2))
    ]
    random.Random(f"{_SEED}/{original.entry}").shuffle(sets)  # noqa: S311 (reproducible on purpose)
    return sorted(sets, key=lambda chosen: sum(preference.index(c.bug_type) for c in chosen))


def _batches(sets: list[tuple[Mutation, ...]]) -> Iterator[list[tuple[Mutation, ...]]]:
    for start in range(0, len(sets), _BATCH):
        yield sets[start : start + _BATCH]


async def _try(original: Original, sets: Sequence[tuple[Mutation, ...]]) -> list[Trial]:
    sources = [apply(original.source, chosen) for chosen in sets]
    checks = [case.check() for case in (*original.examples, *original.hidden)]
    size = len(original.examples)
    rows = await try_candidates(sources, original.entry, checks, _TRIAL)
    return [
        Trial(chosen, source, sum(row[:size]), sum(row[size:]))
        for chosen, source, row in zip(sets, sources, rows, strict=True)
    ]


def _usable(trial: Trial, original: Original) -> bool:
    fails = trial.examples < len(original.examples) and trial.hidden < len(original.hidden)
    return fails and trial.hidden > 0


async def _minimal(trial: Trial, original: Original) -> bool:
    """Tell whether each change matters: without any one of them, hidden cases still fail."""
    if len(trial.changes) == 1:
        return True
    parts = await _try(original, _without_one(trial))
    return all(part.hidden < len(original.hidden) for part in parts)


def _without_one(trial: Trial) -> list[tuple[Mutation, ...]]:
    return [tuple(c for c in trial.changes if c is not left_out) for left_out in trial.changes]


async def _difficulty(trial: Trial, original: Original) -> Literal["easy", "medium", "hard"]:
    """One change is easy; several are hard if no example shows progress when one is undone."""
    if len(trial.changes) == 1:
        return "easy"
    parts = await _try(original, _without_one(trial))
    return "medium" if any(part.examples > trial.examples for part in parts) else "hard"


async def _task(
    trial: Trial, original: Original, preference: Sequence[BugType], result: SandboxResult
) -> RepairTask:
    kind = min((change.bug_type for change in trial.changes), key=preference.index)
    difficulty = await _difficulty(trial, original)
    task = RepairTask(
        task_id=f"{original.domain}-{original.entry}",
        category=original.domain,
        entry=original.entry,
        source=trial.source,
        examples=original.examples,
        hidden=original.hidden,
        solution=original.source,
        fail_to_pass=tuple(verdict.name for verdict in result.verdicts if not verdict.passed),
        metadata=Metadata(
            difficulty=difficulty,
            domain=original.domain,
            bug_type=kind,
            bugs=len(trial.changes),
            tags=("python", original.domain, difficulty, kind),
        ),
        checksum="",
    )
    return task.model_copy(update={"checksum": task.digest()})


def main() -> None:
    """Write the task file and its digest beside this module."""
    data, digest = write_tasks(asyncio.run(generate()))
    here = Path(__file__).parent
    (here / "tasks.jsonl").write_bytes(data)
    (here / "tasks.jsonl.sha256").write_bytes(digest)


if __name__ == "__main__":
    main()
