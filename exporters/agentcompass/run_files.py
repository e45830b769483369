"""`run_info.json`, `params.json` and `summary.md` of a run that this program ran."""

from collections.abc import Iterator, Sequence
from typing import Final

from exporters import OutFile
from exporters.agentcompass.scoring import Scoring
from exporters.attempt_record import plan_view
from exporters.identity import Identity
from exporters.jsontext import JsonText, Members, json_bytes
from exporters.markdown import escape, number, table
from exporters.reading import Reading, error_text
from ledger.state import RunState
from ledger.view import Blobs

RUN_INFO: Final = "run_info.json"
PARAMS: Final = "params.json"
SUMMARY: Final = "summary.md"
SCHEMA: Final = "agentcompass.run_info.v3"
_MASK: Final = "********"
_Fields = dict[str, object]
# What its summary command takes from a request; whatever else was asked is told in `acl`.
_EXECUTION: Final = ("enable_analysis", "max_retries", "task_concurrency")
_PROTOCOLS: Final = {
    "openai": "openai-chat",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic": "anthropic",
}
_COLUMNS: Final = ("Metric", "Role", "Value", "Evaluated", "Error", "Unavailable", "Total")


def run_info(
    state: RunState, blobs: Blobs, scoring: Scoring, left_out: Sequence[_Fields]
) -> OutFile:
    """The run as a whole; `left_out` names the tasks that AgentCompass has no place for.

    A run that was interrupted has no status there.
    """
    document: _Fields = {
        "schema_version": SCHEMA,
        "run_id": state.run_id,
        "started_at": state.started_at,
        "request": _request(state, scoring),
        "resolved_execution_plans": Members(lambda: _plans(state, blobs)),
    }
    if state.metrics:
        document["metric_artifacts"] = {
            "generated_at": state.metrics[-1][1],
            "source": "evaluation",
            "report": {**scoring.plan(), "aggregation": "micro_weighted"},
        }
    if state.finished is not None:
        document |= {"status": state.finished.status, "finished_at": state.ended_at}
        if state.finished.error is not None:
            document["error"] = error_text(state.finished.error)
    if state.frozen is not None and state.frozen.run_id is not None:
        document["reused_from"] = {"run_id": state.frozen.run_id, "path": state.frozen.path or ""}
    more: _Fields = {"request": state.request}
    if left_out:
        more["left_out"] = list(left_out)
    whole = dict(sorted(document.items()))
    whole["acl"] = Identity.of(state).trailer(**more)
    return OutFile(RUN_INFO, JsonText(whole))


def params(state: RunState, scoring: Scoring) -> OutFile:
    """What identifies the run: benchmark, model, attempts and where it went."""
    request = _request(state, scoring)
    document = {name: request[name] for name in ("benchmark", "execution", "model", "output")}
    document["acl"] = Identity.of(state).trailer()
    return OutFile(PARAMS, json_bytes(document))


def summary(state: RunState, report: _Fields) -> OutFile:
    """The report for people; `metrics.json` has all of it."""
    benchmark, model = (_id(state, name) for name in ("benchmark", "model"))
    lines = [
        f"# {escape(benchmark.upper())} Evaluation Results",
        "",
        f"**Model:** {escape(model)}",
        "",
        f"**Attempt plan:** k={report['k']}, strategy {report['strategy']}",
        "",
        "## Metrics",
        "",
        *table(_COLUMNS, _rows(report)),
        "",
        "Full metric data: [metrics.json](metrics.json)",
    ]
    if report["evaluation_failed"]:
        lines += ["", "**Evaluation failed:** the values leave out every task with a fatal issue."]
    return OutFile(SUMMARY, ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))


def _rows(report: _Fields) -> Iterator[list[str]]:
    series = report["series"]
    assert isinstance(series, list)
    for one in series:
        value = one["reference_value"] if one["value"] is None else one["value"]
        counts = one["counts"]
        shown = number(value) + (" (reference)" if one["reference_value"] is not None else "")
        yield [
            escape(one["series_id"]),
            one["role"],
            shown,
            *(str(counts[name]) for name in ("evaluated", "error", "unavailable", "total")),
        ]


def _request(state: RunState, scoring: Scoring) -> _Fields:
    """The request in AgentCompass's words; each section with the fields it knows."""
    output = _section(state, "output")
    execution = _section(state, "execution")
    return {
        "benchmark": {"id": _id(state, "benchmark"), "params": _object(state, "benchmark")},
        "environment": {"id": _id(state, "environment")},
        "execution": {
            "attempts": scoring.plan(),
            **{name: execution[name] for name in _EXECUTION if execution.get(name) is not None},
        },
        "harness": {"id": _id(state, "harness"), "params": _object(state, "harness")},
        "metadata": {},
        "model": {
            "api_key": _MASK,
            "api_protocol": _PROTOCOLS.get(_text(state, "model", "api_protocol"), ""),
            "base_url": _text(state, "model", "base_url"),
            "id": _id(state, "model"),
            "params": _object(state, "model"),
        },
        "output": {"run_id": state.run_id, "run_name": output.get("run_name") or ""},
        "runtime": {"reuse": False},
    }


def _section(state: RunState, name: str) -> _Fields:
    section = state.request.get(name)
    return section if isinstance(section, dict) else {}


def _id(state: RunState, name: str) -> str:
    return _text(state, name, "id") or "unknown"


def _text(state: RunState, section: str, name: str) -> str:
    value = _section(state, section).get(name)
    return value if isinstance(value, str) else ""


def _object(state: RunState, section: str) -> _Fields:
    value = _section(state, section).get("params")
    return value if isinstance(value, dict) else {}


def _plans(state: RunState, blobs: Blobs) -> Iterator[tuple[str, object]]:
    """One task at a time: the plans of a large run are never all in memory."""
    reading = Reading(state, blobs)
    for task_id in sorted(state.tasks):
        attempts = state.tasks[task_id].attempts
        found = {str(n): plan_view(attempts[n], reading) for n in sorted(attempts)}
        plans = {number: plan for number, plan in found.items() if plan is not None}
        if plans:
            yield task_id, {"attempts": plans}
