"""Files of the layout as values: envelopes opened, and what `acl` says kept apart.

Only a file that ends with our `acl` object has envelopes; in any other `$acl` is a key like others.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from ledger import canonical
from ledger.canonical.escape import RESERVED, unescape_key
from ledger.errors import LedgerDamaged, VersionUnsupported
from runtime.importers.jsontext import NotARecord, read_record

TRAILER: Final = "acl"
SCHEMA: Final = "acl.export.v1"

_VERSION: Final = re.compile(r"acl\.export\.v([0-9]+)")
_REFERENCES: Final = (canonical.SpilledText, canonical.SpilledList, canonical.SpilledBinary)


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON object; `words` is its `acl` object, empty if it has none of ours."""

    value: dict[str, Any]
    words: dict[str, Any] = field(default_factory=dict)
    oddities: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """True if the file says that an export of ours wrote it."""
        return bool(self.words)


def read_document(data: bytes) -> Document:
    """Read a file; NotARecord if it is none, VersionUnsupported if a newer release wrote it."""
    record = read_record(data)
    words = record.value.get(TRAILER)
    schema = words.get("schema") if isinstance(words, dict) else None
    version = _VERSION.fullmatch(schema) if isinstance(schema, str) else None
    if version is None:
        return Document(record.value, {}, record.oddities)
    if schema != SCHEMA:
        raise VersionUnsupported(f"a file has schema {schema}, newer than {SCHEMA}")
    value = record.value
    if RESERVED.encode() in data:
        try:
            value = _opened(value)
        except LedgerDamaged as error:
            raise NotARecord(f"an envelope is none: {error.message}") from None
    return Document(value, value.pop(TRAILER), record.oddities)


def _opened(tree: Any) -> Any:
    """The value that a parsed text stands for; its depth is bounded by `read_record`."""
    if isinstance(tree, dict):
        if RESERVED in tree:
            return _envelope(tree)
        return {unescape_key(key): _opened(item) for key, item in tree.items()}
    return [_opened(item) for item in tree] if isinstance(tree, list) else tree


def _envelope(tree: dict[str, Any]) -> Any:
    value = canonical.decode(json.dumps(tree).encode())
    if isinstance(value, _REFERENCES):
        raise LedgerDamaged("it refers to pieces that no exported file has")
    return value
