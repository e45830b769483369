"""The importers that are installed, by name, and the one that a source is for."""

from collections.abc import Callable, Iterable

from ledger.errors import UsageError
from runtime.importers.plan import Importer
from runtime.importers.source import Source
from runtime.plugins import EntryPoint, installed

GROUP = "acl.importers"

Points = Callable[[str], Iterable[EntryPoint]]


def choose(source: Source, name: str | None, points: Points = installed) -> Importer:
    """The importer called `name`, or the only one that recognises the source.

    Raises UsageError if there is no such importer, or not exactly one that would take it.
    """
    found = {point.name: point for point in points(GROUP)}
    known = ", ".join(sorted(found)) or "none is installed"
    if name is not None:
        if name not in found:
            raise UsageError(f"there is no import format {name!r}", hint=f"known: {known}")
        return _load(found[name])
    fitting = [
        importer
        for importer in (_load(found[key]) for key in sorted(found))
        if importer.recognises(source)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(importer.name for importer in fitting)
        raise UsageError(f"{source.root} could be {names}", hint="say which with -f")
    raise UsageError(
        f"no importer recognises {source.root}", hint=f"name a run's directory; known: {known}"
    )


def _load(point: EntryPoint) -> Importer:
    try:
        importer: Importer = point.load()()
    except Exception as error:  # a plug-in's import may raise anything
        raise UsageError(
            f"the importer {point.name!r} cannot be loaded: {type(error).__name__}: {error}",
            hint="repair or uninstall the package that provides it",
        ) from error
    return importer
