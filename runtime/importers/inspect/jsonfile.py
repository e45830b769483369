"""`.json` logs: one object, which is read sample by sample, never as a whole."""

from functools import partial
from typing import Any, Final

from ledger.errors import UsageError
from runtime.importers.inspect.bytesource import ByteSource
from runtime.importers.inspect.fields import listed, section
from runtime.importers.inspect.log import Log, Piece, SampleRef, check_header, read_value
from runtime.importers.inspect.spans import NoObject, Parts, Span, find_parts
from runtime.importers.jsontext import NotARecord, Record, read_record
from runtime.importers.plan import Remark

SAMPLES: Final = "samples"
KEPT_WHOLE: Final = 8 << 20
"""Files of up to this size are kept as one original, which is read as a whole."""


def read_json(data: ByteSource) -> Log:
    """Find the header and the samples; UsageError for what is no log or ends before it says so."""
    name = data.file.path
    try:
        parts = find_parts(data, (SAMPLES,))
    except NoObject as fault:
        raise UsageError(f"{name} is no Inspect log: {fault}") from None
    header, remarks = _header(data, parts)
    check_header(name, header)
    spans = parts.elements.get(SAMPLES, [])
    log = Log(
        data,
        header,
        samples=[_sample(data, at, span) for at, span in enumerate(spans)],
        names={name, *(_name(data, at) for at in range(len(spans)))},
        keep_file=data.file.size <= KEPT_WHOLE,
        reductions=_reductions(header),
        remarks=remarks,
    )
    if not log.keep_file:
        values = [span for key, span in parts.values.items() if key != SAMPLES]
        log.pieces = _others(data, spans, values)
    _tell(log, parts)
    return log


def _header(data: ByteSource, parts: Parts) -> tuple[dict[str, Any], list[Remark]]:
    header: dict[str, Any] = {}
    remarks = []
    for key, span in parts.values.items():
        if key == SAMPLES:
            continue
        try:
            header[key] = read_value(data.read(*span))
        except NotARecord as fault:
            remarks.append(Remark(f"{data.file.path}, {key}", str(fault), damage=True))
    if parts.cut and "eval" not in header:
        raise UsageError(
            f"{data.file.path} is cut off after {data.file.size} bytes, before it says what was"
            " evaluated"
        )
    return header, remarks


def _name(data: ByteSource, at: int) -> str:
    return f"{data.file.path}, sample {at + 1}"


def _sample(data: ByteSource, at: int, span: Span) -> SampleRef:
    # A small file is one original.
    pieces = () if data.file.size <= KEPT_WHOLE else (_piece(data, span),)
    return SampleRef(_name(data, at), pieces, partial(_load, data, span))


def _load(data: ByteSource, span: Span) -> Record:
    return read_record(data.read(*span))


def _others(data: ByteSource, samples: list[Span], values: list[Span]) -> list[Piece]:
    """All that is no sample, so that with the samples it is the file.

    A value is a piece of its own, which is redacted as JSON: by the names of its keys, too.
    """
    whole = sorted([*samples, *values])
    ends = [0, *(end for _, end in whole)]
    starts = [*(start for start, _ in whole), data.file.size]
    between = [span for span in zip(ends, starts, strict=True) if span[0] < span[1]]
    return [_piece(data, span) for span in sorted([*values, *between])]


def _piece(data: ByteSource, span: Span) -> Piece:
    name = f"{data.file.path}#bytes={span[0]}-{span[1] - 1}"
    return Piece(name, partial(data.read, *span))


def _reductions(header: dict[str, Any]) -> list[Any] | None:
    told = header.pop("reductions", None)
    if told is None:
        told = section(header, "results").get("sample_reductions")
    return listed(told) or None


def _tell(log: Log, parts: Parts) -> None:
    if parts.trailing:
        log.tell("something follows the log", placed=False, damage=True)
    if not parts.cut:
        return
    log.crashed = "status" not in log.header
    where = f"in its key {parts.open!r}" if parts.open else "between two keys"
    if parts.open == SAMPLES:
        torn = _name(log.data, len(log.samples))
        log.names.add(torn)
        log.remarks.append(Remark(torn, "the file ends in it or before it", torn=True))
    log.tell(f"it is cut off after {log.data.file.size} bytes, {where}")
