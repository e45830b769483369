"""Tables as plain text: columns are as wide as they need to be."""

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    """A table with a line under its header; the first column to the left, numbers to the right."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [_line(row, widths) for row in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return " ".join(str(value).split()) or "-"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(row, widths, strict=True)
    return "  ".join(
        [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
    ).rstrip()
