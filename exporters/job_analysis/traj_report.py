"""`traj_analysis/score_comparison.json`: how resolved and unresolved attempts were gone about."""

from collections.abc import Sequence
from typing import Final

from exporters import OutFile
from exporters.identity import Identity
from exporters.job_analysis.comparing import Series, comparisons, correlations
from exporters.job_analysis.components import COMPOSITE
from exporters.job_analysis.config import AnalysisConfig
from exporters.job_analysis.groups import Document, Groups, described, digits_of, numbers
from exporters.job_analysis.instances import Instance
from exporters.jsontext import json_bytes

REPORT: Final = "traj_analysis/score_comparison.json"

_Definition = tuple[str, str, str]
_FEATURES: Final[dict[str, _Definition]] = {
    "assistant_turns": ("Turns", "turns", "replies of the model, or steps of the agent"),
    "total_tool_calls": ("Tool calls", "calls", "tools that were used, over all tries"),
    "llm_calls": ("Model calls", "calls", "physical model calls, over all tries"),
    "llm_calls_failed": ("Failed model calls", "calls", "model calls that gave no answer"),
    "prompt_tokens": ("Prompt tokens", "tokens", "sent, cached ones included"),
    "completion_tokens": ("Completion tokens", "tokens", "received"),
    "total_tokens": ("Tokens", "tokens", "sent and received"),
    "peak_context_tokens": ("Largest context", "tokens", "most of one call, sent and received"),
    "cost_usd": ("Cost", "USD", "of all successful calls; unknown if that of one is"),
    "run_seconds": ("Run time", "s", "of the agent in the counted try"),
    "model_seconds": ("Model time", "s", "in which at least one model call ran"),
    "evaluation_seconds": ("Evaluation time", "s", "of the verifier in the counted try"),
    "retries": ("Retries", "tries", "tries that were discarded"),
}
_SCORES: Final[dict[str, _Definition]] = {
    "sub_score": ("Submission", "0..1", "an answer, without late errors, verified last"),
    "stp_score": ("Steps", "0..1", "a fitting number of turns"),
    "tvr_score": ("Testing", "0..1", "tests that were written and run, and how the last one ended"),
    "fec_score": ("Edits", "0..1", "few edits for each file"),
    "dpi_score": ("Discipline", "0..1", "no loop, no storm of tool errors, no truncation"),
    COMPOSITE: ("Composite", "0..1", "weighted mean of the scores that there are"),
}
METRICS: Final = (*_FEATURES, *_SCORES)
_BUCKETS: Final = ((0.8, ">=0.8"), (0.6, "0.6-0.8"), (0.4, "0.4-0.6"), (0.2, "0.2-0.4"))
_LOWEST: Final = "<0.2"


def traj_report(groups: Groups, config: AnalysisConfig, identity: Identity) -> OutFile:
    """The file. Left out, and counted, are instances without a verdict and those not observed."""
    resolved = [one for one in groups.resolved if one.is_observed]
    unresolved = [one for one in groups.unresolved if one.is_observed]
    unobserved = len(groups.judged) - len(resolved) - len(unresolved)
    asked = config.statistics
    series = {name: Series(_values(resolved, name), _values(unresolved, name)) for name in METRICS}
    known = {name: one for name, one in series.items() if one.n}
    document: Document = {
        "resolved": _group(resolved, asked.rounding),
        "unresolved": _group(unresolved, asked.rounding),
        "correlations": correlations(known, asked),
        "excluded": {
            "error": len(groups.errors),
            "cancelled": len(groups.cancelled),
            "no_calls": unobserved,
        },
        "comparisons": comparisons(known, asked),
        "definitions": _definitions(config),
        "acl": identity.trailer(),
    }
    return OutFile(REPORT, json_bytes(document))


def _value(one: Instance, name: str) -> object:
    return one.scores[name] if name in _SCORES else one.features[name]


def _values(members: Sequence[Instance], name: str) -> list[float]:
    return numbers(members, lambda one: _value(one, name))


def _group(members: Sequence[Instance], rounding: int) -> Document:
    told = {name: described(_values(members, name), digits_of(name, rounding)) for name in METRICS}
    return {
        "n": len(members),
        "buckets": _buckets(_values(members, COMPOSITE)),
        "metrics": {name: one for name, one in told.items() if one is not None},
    }


def _buckets(values: Sequence[float]) -> dict[str, int]:
    counts = dict.fromkeys([*(name for _, name in _BUCKETS), _LOWEST], 0)
    for value in values:
        counts[next((name for least, name in _BUCKETS if value >= least), _LOWEST)] += 1
    return counts


def _definitions(config: AnalysisConfig) -> Document:
    weights = config.traj_analysis.weights.model_dump()
    return {
        name: {
            "label": label,
            "unit": unit,
            "description": description,
            "weight": weights.get(name),
        }
        for name, (label, unit, description) in (_FEATURES | _SCORES).items()
    }
