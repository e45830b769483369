"""Importers turn foreign files into events; `import_path` is the one door they come through."""

from runtime.importers.door import ImportReport, import_path
from runtime.importers.plan import (
    Importer,
    ImportPlan,
    Item,
    Original,
    OwnMetrics,
    Remark,
    SourceEnd,
    SourceMetrics,
)
from runtime.importers.reusable import import_for_reuse, needs_import
from runtime.importers.source import Source, SourceFile

__all__ = [
    "ImportPlan",
    "ImportReport",
    "Importer",
    "Item",
    "Original",
    "OwnMetrics",
    "Remark",
    "Source",
    "SourceEnd",
    "SourceFile",
    "SourceMetrics",
    "import_for_reuse",
    "import_path",
    "needs_import",
]
