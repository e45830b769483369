"""The price table, and costs that are either right or unknown."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runtime
from ledger.events import Usage
from runtime.prices import cost, price_table, price_table_sha256


def test_the_table_is_read_from_the_package_and_named_by_its_digest() -> None:
    stored = (Path(runtime.__file__).parent / "prices.json").read_bytes()
    assert price_table_sha256() == hashlib.sha256(stored).hexdigest()
    assert price_table().version == "2025-08-31"


def test_no_model_charges_more_for_cached_input_than_for_input() -> None:
    for name, price in price_table().models.items():
        assert price.cached is None or price.cached < price.input < price.output, name


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        # gpt-4o: 2.50 in, 1.25 cached, 10.00 out per million
        (Usage(input_tokens=1_000_000, output_tokens=0), 2.5),
        (Usage(input_tokens=0, output_tokens=100_000), 1.0),
        (Usage(input_tokens=1_000, output_tokens=500, cached_tokens=400), 0.007),
        (Usage(input_tokens=11, output_tokens=7, reasoning_tokens=7), 0.0000975),
        (Usage(input_tokens=0, output_tokens=0), 0.0),
    ],
)
def test_cost_is_the_sum_of_new_cached_and_output_tokens(usage: Usage, dollars: float) -> None:
    assert cost("gpt-4o", usage) == (pytest.approx(dollars, abs=1e-12), "price_table")


@pytest.mark.parametrize(
    ("model", "usage"),
    [
        ("no-such-model", Usage(input_tokens=1, output_tokens=1)),
        ("gpt-4o", None),
        ("gpt-4o", Usage()),
        ("gpt-4o", Usage(input_tokens=1)),
        ("gpt-4o", Usage(output_tokens=1)),
        ("gpt-4o", Usage(input_tokens=1, output_tokens=1, cached_tokens=2)),
        ("gpt-4", Usage(input_tokens=9, output_tokens=1, cached_tokens=2)),
    ],
)
def test_what_is_not_known_is_no_cost_and_not_zero(model: str, usage: Usage | None) -> None:
    assert cost(model, usage) == (None, "unknown")


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_caching_never_makes_a_call_dearer(fresh: int, cached: int, output: int) -> None:
    plain, _ = cost("gpt-4o", Usage(input_tokens=fresh + cached, output_tokens=output))
    with_cache, _ = cost(
        "gpt-4o",
        Usage(input_tokens=fresh + cached, output_tokens=output, cached_tokens=cached),
    )
    assert plain is not None
    assert with_cache is not None
    assert with_cache <= plain
