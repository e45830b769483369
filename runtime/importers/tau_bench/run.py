"""A results file as a run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from ledger import events as ev
from ledger.errors import UsageError
from runtime.importers.foreign import (
    UNKNOWN,
    ForeignAttempt,
    foreign_request,
    persistence_of,
    stranger,
    task_items,
)
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import ImportPlan, Item, Original, OwnMetrics, Remark, SourceEnd
from runtime.importers.source import Source, SourceFile
from runtime.importers.tau_bench.results import (
    FORMAT,
    SIMULATIONS,
    Results,
    looks_like_results,
    read_results,
)
from runtime.importers.tau_bench.trial import (
    Trial,
    attempt_of,
    contradiction,
    object_of,
    read_trial,
    simulation_of,
)

NEWER: Final = "tau2_bench"

# What the program calls its files, and what the authors called those that they published.
_NAMED: Final = re.compile(
    r"(?P<harness>tool-calling|act|react|few-shot)-(?P<model>.+)-[0-9.]+_range_.*"
)
_PUBLISHED: Final = re.compile(r"(?P<model>.+)-(?P<domain>airline|retail|telecom)")
_LISTED: Final = 5


@dataclass(slots=True)
class Outline:
    """Which trial is which attempt: the index of each in its file, by task and attempt."""

    source: Source
    file: SourceFile
    newer: bool
    head: dict[str, Any]
    tasks: dict[str, dict[int, int]] = field(default_factory=dict)
    metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    records: int = 0
    placed: int = 0
    whole: bool = True
    remarks: list[Remark] = field(default_factory=list)

    def lose(self, place: str, reason: str, *, damage: bool = True, torn: bool = False) -> None:
        """Name what has no place."""
        self.remarks.append(Remark(f"{self.file.path}{place}", reason, damage=damage, torn=torn))
        self.whole = False

    def tell(self, place: str, reason: str) -> None:
        """Name something odd about what has its place."""
        self.remarks.append(Remark(f"{self.file.path}{place}", reason, placed=True))


def result_files(source: Source) -> list[SourceFile]:
    """The JSON files of a source but single simulations; any file if it is the only one."""
    if not source.root.is_dir():
        return list(source.files)
    found = (file for file in source.files if file.path.endswith(".json"))
    return [file for file in found if f"/{SIMULATIONS}" not in f"/{file.path}"]


def plan_of(source: Source) -> ImportPlan:
    """The plan of the import; every trial is a record."""
    files = [file for file in result_files(source) if looks_like_results(source.read(file))]
    if len(files) != 1:
        names = ", ".join(file.path for file in files) or "none"
        raise UsageError(
            f"{source.root} must hold one file of results, and holds: {names}",
            hint="import each file by itself",
        )
    found = _outline(source, files[0])
    k = max(_planned(found) or 1, _most(found))
    benchmark, model, harness = _names(found)
    request = foreign_request(
        benchmark=benchmark,
        model=model,
        harness=harness,
        k=k,
        source={"format": FORMAT, "file": found.file.path, **_told_of_run(found.head)},
    )
    return ImportPlan(
        format=FORMAT,
        format_version="2" if found.newer else "1",
        run_name="",
        benchmark=benchmark,
        model=model,
        run_id=_stem(found.file),
        request=request,
        persistence_params=persistence_of(request),
        selected=ev.TasksSelected(
            benchmark=benchmark,
            tasks=tuple(
                ev.TaskRef(task_id=task, metadata=found.metadata.get(task, {}))
                for task in found.tasks
            ),
        ),
        items=lambda: _items(found, k),
        records_in=found.records,
        records_out=found.placed,
        remarks=tuple(found.remarks),
    )


def _outline(source: Source, file: SourceFile) -> Outline:
    try:
        results = read_results(source, file)
    except NotARecord as fault:
        raise UsageError(f"{file.path} cannot be read: {fault}") from None
    found = Outline(source, file, results.newer, results.head or {})
    found.remarks += [Remark(path, f"left alone: {why}") for path, why in source.skipped]
    beside = [stranger(one, "the results") for one in _beside(source, file, newer=results.newer)]
    found.remarks += beside
    found.placed = sum(one.placed for one in beside)
    found.records = len(beside) + len(results.trials) + len(results.faults) + len(results.cut)
    found.records += bool(results.torn)
    for place, why in results.cut:
        found.lose(place, f"no trial: {why}", damage=False, torn=True)
    for why in results.lacking:
        found.lose("", why, damage=False)
    for place, why in results.faults:
        found.lose(place, f"no trial: {why}")
    if results.torn is not None:
        found.lose("", results.torn, damage=False, torn=True)
    for index, (place, value) in enumerate(results.trials):
        try:
            trial = read_trial(value, newer=results.newer)
            _place(found, results, index, trial)
        except NotARecord as fault:
            found.lose(place, f"no trial: {fault}")
    for word, places in results.oddities.items():
        found.tell("", f"{', '.join(places[:_LISTED])} hold {word}, which is not JSON: kept")
    if not found.tasks:
        raise UsageError(f"{file.path} holds no trial that can be read")
    _count_missing(found, torn=results.torn is not None)
    return found


def _beside(source: Source, file: SourceFile, *, newer: bool) -> Iterator[SourceFile]:
    """The files that are neither the results nor simulations that belong to them."""
    folder = file.path.rpartition("/")[0]
    prefix = f"{folder}/{SIMULATIONS}" if folder else SIMULATIONS
    for one in source.files:
        if one is not file and not (newer and one.path.startswith(prefix)):
            yield one


def _place(found: Outline, results: Results, index: int, trial: Trial) -> None:
    place, value = results.trials[index]
    attempts = found.tasks.setdefault(trial.task_id, {})
    first = attempts.get(trial.attempt)
    if first is None:
        attempts[trial.attempt] = index
        found.placed += 1
        odd = contradiction(value, trial)
        if odd is not None:
            found.tell(place, odd)
        _describe(found, place, trial.task_id, value)
    elif results.trials[first][1] == value:
        found.placed += 1
        found.tell(place, f"the same as {results.trials[first][0]}: counted once")
    else:
        other = results.trials[first][0]
        found.lose(
            place, f"task {trial.task_id} has a trial {trial.attempt - 1} already, at {other}"
        )


def _describe(found: Outline, place: str, task_id: str, value: dict[str, Any]) -> None:
    """Keep what is told of the task itself; that it is another one each time is told."""
    task = object_of(object_of(value.get("info")).get("task"))
    if not task:
        return
    told = {name: item for name, item in task.items() if name not in ("actions", "outputs")}
    known = found.metadata.setdefault(task_id, told)
    if known != told:
        found.tell(place, "its task is told in other words than before")


def _count_missing(found: Outline, *, torn: bool) -> None:
    """Name trials that other tasks have, and planned tasks that no simulation is about."""
    wanted = _planned(found) or _most(found)
    short = [task for task, attempts in found.tasks.items() if len(attempts) < wanted]
    if short:
        names = ", ".join(short[:_LISTED]) + ("…" if len(short) > _LISTED else "")
        found.lose(
            "", f"{len(short)} tasks lack trials of {wanted}: {names}", damage=False, torn=torn
        )
    for task in _listed_tasks(found.head):
        if task not in found.tasks:
            found.tasks[task] = {}
            found.lose("", f"task {task} is listed and was not tried", damage=False)


def _planned(found: Outline) -> int | None:
    """How many trials of each task tau2-bench was to make."""
    told = object_of(found.head.get("info")).get("num_trials")
    return told if type(told) is int and told > 0 else None


def _most(found: Outline) -> int:
    return max(max(attempts, default=1) for attempts in found.tasks.values())


def _listed_tasks(head: dict[str, Any]) -> dict[str, dict[str, Any]]:
    tasks = head.get("tasks")
    items = [object_of(item) for item in tasks] if isinstance(tasks, list) else []
    return {str(item["id"]): item for item in items if type(item.get("id")) in (int, str)}


def _items(found: Outline, k: int) -> Iterator[Item]:
    results = read_results(found.source, found.file)
    tasks = _listed_tasks(found.head)
    for task_id, attempts in found.tasks.items():
        if attempts:
            indexes = [index for _, index in sorted(attempts.items())]
            told = (_attempt(results, index, tasks.get(task_id, {})) for index in indexes)
            yield from task_items(task_id, told)
    for file in found.source.files:
        yield Original(file)
    if found.whole:
        yield ev.SummaryStarted()
        yield OwnMetrics(tuple(f"pass^{j}" for j in range(1, k)))
        yield SourceEnd("completed", None, 0)


def _attempt(results: Results, index: int, task: dict[str, Any]) -> ForeignAttempt:
    value = results.trials[index][1]
    trial = read_trial(value, newer=results.newer)
    return simulation_of(value, trial, task) if results.newer else attempt_of(value, trial)


def _names(found: Outline) -> tuple[str, str, str]:
    """Benchmark, model and harness: from tau2-bench's own words, else from the file's name."""
    if found.newer:
        info = object_of(found.head.get("info"))
        agent = object_of(info.get("agent_info"))
        domain = object_of(info.get("environment_info")).get("domain_name")
        benchmark = f"{NEWER}_{domain}" if isinstance(domain, str) and domain else NEWER
        return benchmark, _text(agent.get("llm")), _text(agent.get("implementation"))
    stem = _stem(found.file)
    named, published = _NAMED.fullmatch(stem), _PUBLISHED.fullmatch(stem)
    match = named or published
    if match is None:
        return FORMAT, UNKNOWN, UNKNOWN
    words = match.groupdict()
    found.tell("", "only its name tells of " + " and ".join(name for name in words))
    benchmark = f"{FORMAT}_{words['domain']}" if "domain" in words else FORMAT
    return benchmark, words["model"], words.get("harness", UNKNOWN)


def _told_of_run(head: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in head.items() if name != "tasks"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else UNKNOWN


def _stem(file: SourceFile) -> str:
    return PurePosixPath(file.path).name.removesuffix(".json")
