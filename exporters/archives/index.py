"""`index.yaml`: one entry for each archive. Entries are only ever added.

Whoever wrote the other entries, they stay as they are, to the byte where that is possible: the new
one is put behind them as text. Only where that does not read back as the same list and one more
(the list stands in brackets, or something follows it) the file is written anew; then comments are
lost, and nothing else.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from exporters.archives.metadata import yaml_bytes
from ledger.errors import ExportRefused

NAME: Final = "index.yaml"
MOST_BYTES: Final = 256 * 1024 * 1024

_ITEM: Final = re.compile(rb"^( *)- ", re.MULTILINE)
_NUMBER: Final = re.compile(r"run_0*([0-9]{1,9})")
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Entry:
    """What an entry says of its archive, and of the run, as far as it says anything."""

    id: str | None
    run_id: str | None = None
    ledger_id: str | None = None
    root: str | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """The file as it was read; empty where there is none."""

    data: bytes
    document: Mapping[str, Any]

    @property
    def entries(self) -> list[Entry]:
        """The entries, in their order; those that somebody wrote by hand among them."""
        return [_entry(one) for one in self.document.get("runs") or []]

    def with_entry(self, entry: Mapping[str, Any]) -> bytes:
        """The text of the file with one entry more."""
        runs = [*(self.document.get("runs") or []), dict(entry)]
        wanted = {**self.document, "runs": runs}
        if self.document.get("runs"):
            text = self._extended(entry)
            if _is(text, wanted):
                return text
        return yaml_bytes(wanted)

    def _extended(self, entry: Mapping[str, Any]) -> bytes:
        items = _ITEM.findall(self.data)
        indent = items[-1] if items else b""
        lines = yaml_bytes(entry).splitlines(keepends=True)
        begin = self.data if self.data.endswith(b"\n") else self.data + b"\n"
        more = (indent + (b"- " if number == 0 else b"  ") for number in range(len(lines)))
        return begin + b"".join(map(bytes.__add__, more, lines))


def parse(data: bytes, where: str) -> Index:
    """Read the file; ExportRefused, with where it stands, for what is no index of archives.

    Repeated keys and references are refused too: what cannot be written again is not understood.
    """
    try:
        if len(data) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES} bytes")
        document = yaml.load(_text(data), Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _refused(where, " ".join(str(error).split())) from None
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise _refused(where, "it holds no mapping with the key 'runs'")
    runs = document.get("runs")
    if runs is not None and not (isinstance(runs, list) and all(isinstance(r, dict) for r in runs)):
        raise _refused(where, "'runs' is no list of entries")
    return Index(data, document)


def number_of(archive_id: str) -> int:
    """The number in the id of an archive, or in the name of its directory; 0 for any other text."""
    found = _NUMBER.fullmatch(archive_id)
    return int(found[1]) if found else 0


def _text(data: bytes) -> str:
    text = data.decode("utf-8-sig")
    for event in yaml.parse(text, Loader=_SafeLoader) if "*" in text else ():
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it refers to itself with *")
    return text


class _Loader(_SafeLoader):  # type: ignore[misc]  # the class is chosen at run time
    """Refuses a mapping that has a key twice: one of them would be lost."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """A mapping, of which every key counts."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if any(key in keys[:place] for place, key in enumerate(keys)):
            raise ValueError(f"a key stands there twice, {node.start_mark}")
        return super().construct_mapping(node, deep=deep)


def _entry(given: Mapping[str, Any]) -> Entry:
    acl = given.get("acl")
    told = acl if isinstance(acl, dict) else {}
    return Entry(
        _word(given.get("id")),
        _word(told.get("run_id")),
        _word(told.get("ledger_id")),
        _word(told.get("root")),
    )


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _is(text: bytes, wanted: Mapping[str, Any]) -> bool:
    try:
        return parse(text, "").document == wanted
    except ExportRefused:
        return False


def _refused(where: str, why: str) -> ExportRefused:
    return ExportRefused(
        f"{where} cannot be read ({why})",
        hint="repair it, or move it away; nothing was changed, and no archive is lost",
    )
