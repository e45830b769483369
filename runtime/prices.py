"""List prices of well-known models, and what a call costs by them.

`prices.json` is the table: US dollars per million tokens, for text, at the standard tier, with the
date on which the prices held as its version. `cached` is the price of input tokens that the
provider read from its cache, null where there is none. A run records the digest of the table, so a
cost can be computed again later by the same prices.
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import Field

from ledger.events import Usage
from runtime.models import Model

Price = Annotated[float, Field(ge=0)]

SOURCE = "price_table"
UNKNOWN = "unknown"
_PER_TOKENS = 1_000_000
# Sums of products of floats: beyond this, digits are noise.
_DECIMALS = 12


class ModelPrice(Model):
    """Dollars per million tokens of one model."""

    input: Price
    cached: Price | None
    output: Price


class PriceTable(Model):
    """Prices by the exact id of a model: a dated snapshot may cost something else."""

    format: Literal["acl.prices.v1"] = Field(alias="schema")
    version: str
    unit: Literal["USD per million tokens"]
    models: dict[str, ModelPrice]


@cache
def price_table() -> PriceTable:
    """The table that ships with this release."""
    return PriceTable.model_validate_json(_stored())


@cache
def price_table_sha256() -> str:
    """SHA-256 of the table's file, hex: what `run.created` records."""
    return hashlib.sha256(_stored()).hexdigest()


def cost(model: str, usage: Usage | None) -> tuple[float | None, str]:
    """What `usage` of `model` costs in dollars, and where that comes from.

    `(None, "unknown")` without a price or without counts: unknown is never 0. Cached tokens are
    part of the input tokens; reasoning tokens are part of the output tokens.
    """
    price = price_table().models.get(model)
    if price is None or usage is None:
        return None, UNKNOWN
    if usage.input_tokens is None or usage.output_tokens is None:
        return None, UNKNOWN
    cached = usage.cached_tokens or 0
    if cached > usage.input_tokens or (cached and price.cached is None):
        return None, UNKNOWN
    dollars = (
        (usage.input_tokens - cached) * price.input
        + cached * (price.cached or 0.0)
        + usage.output_tokens * price.output
    ) / _PER_TOKENS
    return round(dollars, _DECIMALS), SOURCE


def _stored() -> bytes:
    return files("runtime").joinpath("prices.json").read_bytes()
