"""The source files of the plug-ins that a run works with, as its ledger keeps them."""

import dis
import hashlib
import logging
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.abc import InspectLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from ledger.canonical import Binary
from ledger.events import SourceRecorded, SourceRole
from runtime.containment import named
from runtime.importers.originals import MIN_DIGESTED
from runtime.setup import Setup

MOST_BYTES: Final = 1024 * 1024
"""Bytes of a file from which on only its size and digest are told."""
MOST_KEPT: Final = 8 * 1024 * 1024
"""Bytes of all files together that are kept."""
MOST_FILES: Final = 200

# Of the plug-ins that come with the program only their own directory is theirs.
_OURS: Final = frozenset({"acl", "exporters", "ledger", "runtime"})
_CONSTANTS: Final = frozenset({"LOAD_CONST", "LOAD_SMALL_INT"})
_log = logging.getLogger(__name__)
_RECIPE: Final = re.compile(r"acl_recipes_[0-9a-f]{12}_")


@dataclass(frozen=True, slots=True)
class Source:
    """A file that code of a plug-in was loaded from, and its place below its package."""

    role: SourceRole
    name: str
    path: str
    file: Path


def sources(setup: Setup) -> list[Source]:
    """The files of the benchmark, harness, recipes and analyzers of a run, each once.

    They are those that define the plug-ins, and what these import of their own package, or, of the
    plug-ins that come with the program, of their own directory. Never raises.
    """
    found: dict[Path, Source] = {}
    for role, name, plugin in _plugins(setup):
        try:
            for module in _modules(type(plugin).__module__):
                file = _file(module)
                if file is not None and len(found) < MOST_FILES:
                    found.setdefault(file, Source(role, name, _path(module, file), file))
        except Exception as error:  # noqa: BLE001 - the modules of plug-ins may be anything
            _log.warning("not all sources of %s %s are known: %s", role, name, named(error))
    return list(found.values())


def source_events(found: Iterable[Source]) -> list[SourceRecorded]:
    """What the ledger keeps of these files; one that cannot be read any more is left out."""
    events: list[SourceRecorded] = []
    left = MOST_KEPT
    for source in found:
        with suppress(OSError):
            event = _event(source, left)
            events.append(event)
            left -= event.bytes if event.content is not None else 0
    return events


def _event(source: Source, left: int) -> SourceRecorded:
    data = source.file.read_bytes()
    keep = len(data) <= min(MOST_BYTES, left)
    return SourceRecorded(
        role=source.role,
        name=source.name,
        path=source.path,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest() if len(data) >= MIN_DIGESTED else None,
        content=_text_or_binary(data) if keep else None,
    )


def _text_or_binary(data: bytes) -> str | Binary:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return Binary(data)


def _plugins(setup: Setup) -> Iterator[tuple[SourceRole, str, object]]:
    yield "benchmark", setup.benchmark.id, setup.benchmark
    if setup.harness is not None:
        yield "harness", setup.harness.id, setup.harness
    for recipe in setup.recipes:
        yield "recipe", recipe.id, recipe
    for analyzer in setup.analyzers:
        yield "analyzer", analyzer.id, analyzer


def _modules(name: str) -> Iterator[ModuleType]:
    """The module of this name, then those of its own that it imports, and so on."""
    first = sys.modules.get(name)
    if first is None or _file(first) is None:
        return
    seen = {name}
    waiting = deque([first])
    while waiting:
        module = waiting.popleft()
        yield module
        for imported in _imported(module):
            if imported not in seen and _is_own(first, imported):
                seen.add(imported)
                waiting.append(sys.modules[imported])


def _is_own(first: ModuleType, name: str) -> bool:
    """Whether a module belongs to the plug-in that the first one defines."""
    file, begin = _file(sys.modules[name]), _file(first)
    top, _, below = first.__name__.partition(".")
    if file is None or begin is None:
        return False
    if top in _OURS or not below:
        return file.parent == begin.parent
    return name.partition(".")[0] == top


def _imported(module: ModuleType) -> Iterator[str]:
    """The loaded modules that a module imports anywhere, in the order in which it does.

    Read from its compiled code: making syntax trees in several threads at once can fail.
    """
    loader = getattr(module.__spec__, "loader", None)
    if not isinstance(loader, InspectLoader):
        return
    code = loader.get_code(module.__name__)
    for level, name, parts in _imports(code) if code is not None else ():
        package = (module.__package__ or "").split(".")
        above = package[: len(package) - level + 1] if level else []
        base = ".".join([*above, *([name] if name else [])])
        # What is imported from a package may be one of its modules.
        for one in (base, *(f"{base}.{part}" for part in parts)):
            if one in sys.modules:
                yield one


def _imports(code: CodeType) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """(dots before the name, name, what is taken from it) of each import statement."""
    loaded: list[object] = []
    for step in dis.get_instructions(code):
        if step.opname in _CONSTANTS:
            loaded.append(step.argval)
        elif step.opname == "IMPORT_NAME":
            level, parts = loaded[-2:]
            yield (
                level if isinstance(level, int) else 0,
                str(step.argval),
                parts if isinstance(parts, tuple) else (),
            )
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)


def _file(module: ModuleType) -> Path | None:
    given = getattr(module, "__file__", None)
    if not isinstance(given, str) or not given.endswith(".py"):
        return None
    return Path(given).absolute()


def _path(module: ModuleType, file: Path) -> str:
    """The file's place below what the module is imported from: nothing of the machine."""
    if _RECIPE.match(module.__name__) or module.__name__ == "__main__":
        return file.name
    parts = module.__name__.split(".")
    return "/".join(
        [*parts, "__init__.py"] if file.name == "__init__.py" else [*parts[:-1], file.name]
    )
