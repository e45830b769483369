"""Calls, tokens and cost as columns: null where anybody did not say, never 0 for unknown."""

from typing import Final

from exporters.tables.columns import Column, always
from ledger.state import Spend


def spend_columns(of: str, prefix: str = "") -> tuple[Column, ...]:
    """The columns of what `of` took, with a prefix to their names."""
    return (
        always(f"{prefix}calls", "int64", f"model calls of {of}"),
        always(f"{prefix}failed_calls", "int64", "those that came to nothing"),
        always(f"{prefix}lost_calls", "int64", "those whose end nobody saw"),
        always(f"{prefix}open_calls", "int64", "those that had not ended"),
        always(f"{prefix}calls_without_usage", "int64", "calls of unknown tokens"),
        always(f"{prefix}calls_without_cost", "int64", "calls of unknown cost"),
        Column(
            f"{prefix}input_tokens", "int64", "null without calls, or if any is unknown", "tokens"
        ),
        Column(
            f"{prefix}output_tokens", "int64", "null without calls, or if any is unknown", "tokens"
        ),
        Column(f"{prefix}cost_usd", "float64", "null without calls, or if any is unknown", "USD"),
        Column(f"{prefix}known_input_tokens", "int64", "sum of those that are known", "tokens"),
        Column(f"{prefix}known_output_tokens", "int64", "sum of those that are known", "tokens"),
        Column(f"{prefix}known_cost_usd", "float64", "sum of those that are known", "USD"),
    )


def spend_cells(spend: Spend, prefix: str = "") -> dict[str, object]:
    """The cells of `spend_columns`."""
    no_usage = spend.unknown_usage + spend.open_calls
    no_cost = spend.unknown_cost + spend.open_calls
    told: dict[str, object] = {name: getattr(spend, name) for name in _COUNTS}
    told |= {"calls_without_usage": no_usage, "calls_without_cost": no_cost}
    for name, unknown in (
        ("input_tokens", no_usage),
        ("output_tokens", no_usage),
        ("cost_usd", no_cost),
    ):
        value = getattr(spend, name)
        told[name] = value if spend.calls and not unknown else None
        told[f"known_{name}"] = value if spend.calls > unknown else None
    return {f"{prefix}{name}": value for name, value in told.items()}


_COUNTS: Final = ("calls", "failed_calls", "lost_calls", "open_calls")
