"""Values that must be what they seem before an event takes them: measures, files, analyses."""

from typing import Any, Final

from pydantic import ValidationError

from ledger import events as ev
from runtime.importers.details.errors import error_of, known_error

_FILE: Final = frozenset({"path", "bytes", "sha256", "content"})
_ANALYSIS: Final = frozenset({"family", "is_badcase", "score", "details", "error", "error_info"})

_NONE: Final = object()


def collected_of(value: Any, task: str, attempt: int) -> ev.ArtifactsCollected | None:
    """The files that an export tells as collected; None if these are none."""
    if not isinstance(value, dict) or value.keys() != {"files", "truncated"}:
        return None
    files = value["files"]
    if type(value["truncated"]) is not bool or not isinstance(files, list):
        return None
    if not all(map(_is_file, files)):
        return None
    bare = [{name: file[name] for name in file if name != "content"} for file in files]
    try:
        artifacts = tuple(map(ev.Artifact.model_validate, bare))
    except ValidationError:
        return None
    contents = {file["path"]: file["content"] for file in files if "content" in file}
    again = [contents.get(file["path"], _NONE) is file.get("content", _NONE) for file in files]
    if not all(map(is_told_as, bare, artifacts)) or not all(again):
        return None
    return ev.ArtifactsCollected(
        task=task,
        attempt=attempt,
        artifacts=artifacts,
        contents=contents or None,
        truncated=value["truncated"],
    )


def is_told_as(given: dict[str, Any], part: ev.Part) -> bool:
    """True if an export tells `part` as `given`, in this order of fields."""
    return list(given.items()) == list(part.model_dump(exclude_none=True).items())


def _is_file(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() <= _FILE and isinstance(value.get("path"), str)


def analyses_of(
    value: Any, task: str, attempt: int
) -> tuple[list[ev.AnalysisFinished], dict[str, Any]]:
    """The analyses by analyzer, and whatever is none."""
    if not isinstance(value, dict):
        return [], {} if value is None else {"analysis_result": value}
    found: list[ev.AnalysisFinished] = []
    rest: dict[str, Any] = {}
    for analyzer, fields in sorted(value.items()):
        analysis = _analysis(analyzer, fields, task, attempt)
        if analysis is None:
            rest[analyzer] = fields
        else:
            found.append(analysis)
    return found, rest


def _analysis(analyzer: str, fields: Any, task: str, attempt: int) -> ev.AnalysisFinished | None:
    if not isinstance(fields, dict) or not fields.keys() <= _ANALYSIS:
        return None
    text, info = fields.get("error"), fields.get("error_info")
    if info is not None and known_error(text, info) is None:
        return None
    try:
        return ev.AnalysisFinished(
            task=task,
            attempt=attempt,
            analyzer=analyzer,
            family=fields.get("family", analyzer),
            is_badcase=fields.get("is_badcase"),
            score=fields.get("score"),
            details=fields.get("details"),
            error=error_of(text, info),
        )
    except ValidationError:
        return None
