"""The files of a run being read, and what there is to tell of them."""

from dataclasses import dataclass, field
from typing import Final

from runtime.importers.details.layout import Layout
from runtime.importers.details.reading import Document, read_document
from runtime.importers.jsontext import NotARecord
from runtime.importers.plan import Remark
from runtime.importers.source import Source, SourceFile

EMPTY: Final = Document({})


@dataclass(slots=True)
class Files:
    """The source arranged. `homeless` are files of no task that can be told; they are kept too."""

    source: Source
    layout: Layout
    remarks: list[Remark] = field(default_factory=list)
    homeless: list[SourceFile] = field(default_factory=list)

    def read(self, name: str) -> Document:
        """One of the run's own files, empty where it is missing or none."""
        file = self.layout.run.get(name)
        document = None if file is None else self._document(file)
        return EMPTY if document is None else document

    def document(self, file: SourceFile) -> Document | None:
        """A file of a task; what is none is named and homeless."""
        document = self._document(file)
        if document is None:
            self.homeless.append(file)
        return document

    def lose(self, file: SourceFile, fault: NotARecord) -> None:
        """Name a file of which no task can be told."""
        self._damage(file, fault)
        self.homeless.append(file)

    def tell(self, path: str, reason: str, *, damage: bool = False) -> None:
        """Say something about a file that is placed all the same."""
        self.remarks.append(Remark(path, reason, placed=True, damage=damage))

    def _document(self, file: SourceFile) -> Document | None:
        try:
            document = read_document(self.source.read(file))
        except NotARecord as fault:
            self._damage(file, fault)
            return None
        if document.oddities:
            words = ", ".join(document.oddities)
            self.tell(file.path, f"holds {words}, which JSON has no word for")
        return document

    def _damage(self, file: SourceFile, fault: NotARecord) -> None:
        self.remarks.append(Remark(file.path, str(fault), damage=True))
