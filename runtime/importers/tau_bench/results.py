"""A results file: of tau-bench a list of trials, of tau2-bench an object with simulations.

tau2-bench may also keep each simulation in a file of its own, in `simulations/` beside the object.
Field names are those of `EnvRunResult` of tau-bench (tau_bench/types.py) and of `Results` and
`SimulationRun` of tau2-bench (tau2/data_model/simulation.py).
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.importers.jsontext import NotARecord, read_record
from runtime.importers.source import Source, SourceFile

FORMAT: Final = "tau_bench"

_HEAD: Final = 65536
SIMULATIONS: Final = "simulations/"

Trial = tuple[str, dict[str, Any]]
"""Where a trial stands, and what it says."""

_KEYS: Final = ("task_id", "reward", "info", "traj", "trial")
_LIST_HEAD: Final = re.compile(r"\[\s*\{\s*\"(?:task_id|reward|info|traj|trial)\"\s*:")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SIMULATIONS: Final = re.compile(rb'"simulations"\s*:\s*\[')
_INDEX: Final = re.compile(rb'"simulation_index"\s*:')
_INFO: Final = re.compile(rb'"(?:agent_info|environment_info|num_trials|user_info)"\s*:')


class Slices(Sequence[Trial]):
    """Trials as pieces of a text, each read when it is asked for.

    As values they would take many times the room.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: list[tuple[int, int, int]] = []

    def add(self, number: int, start: int, end: int) -> None:
        """Take the piece that is element `number`."""
        self._places.append((number, start, end))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: Any) -> Any:
        number, start, end = self._places[index]
        text = self._text[start:end].encode("utf-8", "surrogatepass")
        return f"[{number}]", read_record(text).value


class Files(Sequence[Trial]):
    """Simulations as files, each read when it is asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._files: list[SourceFile] = []

    def add(self, file: SourceFile) -> None:
        """Take a file that can be read."""
        self._files.append(file)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: Any) -> Any:
        file = self._files[index]
        return f":{file.path}", read_record(self._source.read(file)).value


@dataclass(slots=True)
class Results:
    """The trials of a file, each with its place; `faults` are what stands between them.

    `torn` says how the file breaks off, `cut` names files that do, `lacking` those that are not
    there. `head` is all of tau2-bench's object but its trials.
    """

    trials: Sequence[Trial] = ()
    faults: list[tuple[str, str]] = field(default_factory=list)
    torn: str | None = None
    cut: list[tuple[str, str]] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    head: dict[str, Any] | None = None
    oddities: dict[str, list[str]] = field(default_factory=dict)

    @property
    def newer(self) -> bool:
        """True for tau2-bench."""
        return self.head is not None


def looks_like_results(data: bytes) -> bool:
    """True if a file begins as results do, be it cut short."""
    head = data[:_HEAD].decode("utf-8", "ignore").lstrip()
    if head.startswith("["):
        return _LIST_HEAD.match(head) is not None and _first_is_trial(data, head)
    if not head.startswith("{") or _INFO.search(data) is None:
        return False
    return _SIMULATIONS.search(data) is not None or _INDEX.search(data) is not None


def read_results(source: Source, file: SourceFile) -> Results:
    """Read a file; NotARecord if nothing in it can be told."""
    data = source.read(file)
    if data.lstrip()[:1] == b"{":
        return _read_object(source, file, data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        # The front of a letter at the end is what a crash leaves.
        if error.end < len(data) or error.reason != "unexpected end of data":
            raise NotARecord(f"not UTF-8 at byte {error.start}") from None
        text = data[: error.start].decode("utf-8")
    return _read_list(text)


def _first_is_trial(data: bytes, head: str) -> bool:
    """Whether the first object has what trials have; of one cut short its beginning counts."""
    text = head if len(data) <= _HEAD else data.decode("utf-8", "ignore").lstrip()
    try:
        first, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return sum(f'"{key}"' in head for key in _KEYS) >= 3
    return "task_id" in first and "reward" in first and ("traj" in first or "trial" in first)


def _read_list(text: str) -> Results:
    found = Results()
    trials = Slices(text)
    for number, told in enumerate(_elements(text)):
        place = f"[{number}]"
        try:
            if isinstance(told, NotARecord):
                raise told
            start, end = told
            record = read_record(text[start:end].encode("utf-8", "surrogatepass"))
        except NotARecord as fault:
            if fault.cut:
                found.torn = f"the file is torn within trial {number}: {fault}"
            else:
                found.faults.append((place, str(fault)))
            continue
        trials.add(number, start, end)
        for word in record.oddities:
            found.oddities.setdefault(word, []).append(place)
    found.trials = trials
    return found


def _elements(text: str) -> Iterator[tuple[int, int] | NotARecord]:
    """Where each element of a list stands, and what ends it but its bracket."""
    decoder = json.JSONDecoder()
    at = _skip(text, 0) + 1
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            if text[_skip(text, at + 1) :]:
                yield NotARecord("something follows the end of the list")
            return
        if at >= len(text):
            yield NotARecord("the list has no end", cut=True)
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield at, len(text)
            return
        yield at, end
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] not in ("]", ""):
            yield NotARecord("no comma between two trials")
            return


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _read_object(source: Source, file: SourceFile, data: bytes) -> Results:
    record = read_record(data)
    given = record.value.get("simulations")
    if given is None:
        return _read_files(source, file, record.value)
    if not isinstance(given, list):
        raise NotARecord("simulations is no list")
    head = {name: item for name, item in record.value.items() if name != "simulations"}
    found = Results(head=head)
    trials = []
    for number, item in enumerate(given):
        place = f"simulations[{number}]"
        if isinstance(item, dict):
            trials.append((place, item))
        else:
            found.faults.append((place, "it is no object"))
    found.trials = trials
    found.oddities = {word: ["the file"] for word in record.oddities}
    return found


def _read_files(source: Source, file: SourceFile, head: dict[str, Any]) -> Results:
    """The simulations beside a file that lists them; the list holds nothing that they lack."""
    folder = file.path.rpartition("/")[0]
    prefix = f"{folder}/{SIMULATIONS}" if folder else SIMULATIONS
    found = Results(head=head)
    trials = Files(source)
    ids = set()
    for one in source.files:
        if not one.path.startswith(prefix) or not one.path.endswith(".json"):
            continue
        ids.add(one.path.removeprefix(prefix).removesuffix(".json"))
        try:
            record = read_record(source.read(one))
        except NotARecord as fault:
            (found.cut if fault.cut else found.faults).append((f":{one.path}", str(fault)))
            continue
        trials.add(one)
        for word in record.oddities:
            found.oddities.setdefault(word, []).append(one.path)
    index = head.pop("simulation_index", None)
    for entry in index if isinstance(index, list) else ():
        name = entry.get("id") if isinstance(entry, dict) else None
        if name not in ids:
            found.lacking.append(f"simulation {name} is listed, and its file is not there")
    found.trials = trials
    return found
