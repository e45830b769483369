"""Inspect logs for tests: real ones, and small made-up ones in both forms."""

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import zstandard

from runtime.importers import ImportReport
from runtime.importers.inspect import Inspect
from runtime.importers.originals import original_bytes
from tests.importer_runs import do_import, events

DATA = Path(__file__).parent / "data" / "inspect"
SHARED = Path(__file__).resolve().parents[2] / "shared" / "samples"


def points(_: str) -> list[Any]:
    return [SimpleNamespace(name="inspect", load=lambda: Inspect)]


def take_in(path: Path, results: Path, **options: Any) -> ImportReport:
    return do_import(path, results, points=points, **options)


def kept(report: ImportReport) -> dict[str, Any]:
    """The originals by path, with their content as bytes, or None where it is kept in parts."""
    return {
        one.path: one.model_copy(
            update={"content": None if one.content is None else original_bytes(one.content)}
        )
        for one in events(report, "original.recorded")
    }


def reasons(report: ImportReport, *, placed: bool | None = None) -> list[str]:
    return [
        f"{one.source}: {one.reason}"
        for one in report.unplaced
        if placed is None or one.placed is placed
    ]


def sample(number: int | str = 1, epoch: int = 1, value: Any = "C", **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": epoch,
        "input": "What is it?",
        "target": "it",
        "messages": [
            {"role": "user", "content": "What is it?"},
            {"role": "assistant", "content": "it"},
        ],
        "output": {"model": "m", "choices": [], "completion": "it"},
        "scores": {"match": {"value": value, "answer": "it"}},
        "metadata": {},
        "events": [],
        "attachments": {},
        **more,
    }


def header(accuracy: float | None = None, status: str = "success", **more: Any) -> dict[str, Any]:
    metrics = {"accuracy": {"name": "accuracy", "value": accuracy}}
    scores = [{"name": "match", "scorer": "match", "metrics": metrics}]
    return {
        "version": 2,
        "status": status,
        "eval": {
            "eval_id": "e1",
            "run_id": "r1",
            "created": "2025-01-02T03:04:05+00:00",
            "task": "puzzle",
            "task_id": "t1",
            "dataset": {"name": "d"},
            "model": "maker/model",
            "config": {},
            "packages": {"inspect_ai": "0.3.100"},
        },
        "plan": {"name": "plan", "steps": []},
        "results": {"scores": scores} if accuracy is not None else None,
        "stats": {"started_at": "2025-01-02T03:04:05+00:00", "completed_at": ""},
        **more,
    }


def write_json(path: Path, head: dict[str, Any], samples: list[dict[str, Any]]) -> Path:
    """As Inspect writes it: the samples last, but for the reductions."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**head, "samples": samples}, indent=2))
    return path


def members(head: dict[str, Any], samples: list[dict[str, Any]]) -> dict[str, Any]:
    start = {name: head[name] for name in ("version", "eval", "plan")}
    named = {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in samples}
    return {"_journal/start.json": start, **named, "header.json": head}


def write_eval(path: Path, files: dict[str, Any], *, zstd: bool = False) -> Path:
    """A zip of members; values are written as JSON, bytes as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            if zstd:
                _store_zstd(archive, name, data)
            else:
                archive.writestr(name, data)
    return path


def _store_zstd(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Packed by method 93, which the standard library writes from 3.14 on only."""
    packed = zstandard.ZstdCompressor().compress(data)
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_STORED
    at = archive.fp.tell()
    archive.writestr(info, packed)
    info.compress_type = 93
    info.CRC, info.file_size = zipfile.crc32(data), len(data)
    end = archive.fp.tell()
    archive.fp.seek(at)
    archive.fp.write(info.FileHeader(False))
    archive.fp.seek(end)
