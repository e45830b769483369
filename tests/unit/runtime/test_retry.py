import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import UsageError
from ledger.events import ErrorInfo
from runtime.models import ExecutionSpec
from runtime.retry import DEFAULT_RETRIED, RetryPolicy


def policy(
    patterns: list[str] | None = None, *, most: int = 3, least: float = 1.0, cap: float = 10.0
) -> RetryPolicy:
    spec = ExecutionSpec(
        max_retries=most,
        retry_pattern_list=patterns,
        retry_min_delay_seconds=least,
        retry_max_delay_seconds=cap,
    )
    return RetryPolicy(spec, lambda _, upper: upper)


def error(code: str = "boom", message: str = "it broke", *, fatal: bool = False) -> ErrorInfo:
    return ErrorInfo(code=code, message=message, fatal=fatal)


@pytest.mark.parametrize("code", sorted(DEFAULT_RETRIED))
@pytest.mark.parametrize("fatal", [False, True])
def test_without_patterns_what_passes_by_itself_is_tried_again(code: str, fatal: bool) -> None:
    assert policy().decide(error(code, fatal=fatal), 0) is not None


@pytest.mark.parametrize(
    "code",
    [
        "provider_auth",
        "provider_not_found",
        "provider_bad_request",
        "context_window_exceeded",
        "run_timeout",
        "evaluation_timeout",
        "refusal",
        "no_verdict",
        "value_refused",
        "ValueError",
    ],
)
@pytest.mark.parametrize("fatal", [False, True])
def test_without_patterns_nothing_else_is_tried_again(code: str, fatal: bool) -> None:
    assert policy().decide(error(code, fatal=fatal), 0) is None


def test_a_pattern_is_found_anywhere_in_message_or_code_and_is_named() -> None:
    by_message = policy(["brok"]).decide(error(), 0)
    by_code = policy(["^boo"]).decide(error(), 0)
    assert by_message is not None
    assert by_message.pattern == "brok"
    assert by_code is not None
    assert by_code.pattern == "^boo"


def test_with_patterns_the_default_table_does_not_count() -> None:
    assert policy(["else"]).decide(error("sandbox_failed"), 0) is None


def test_with_patterns_a_fatal_error_is_tried_again_unmatched() -> None:
    retry = policy(["else"]).decide(error(fatal=True), 0)
    assert retry is not None
    assert retry.pattern is None


def test_an_empty_list_of_patterns_retries_fatal_errors_only() -> None:
    assert policy([]).decide(error(fatal=True), 0) is not None
    assert policy([]).decide(error("sandbox_failed"), 0) is None


def test_the_budget_ends() -> None:
    assert policy(most=2).decide(error("sandbox_failed"), 1) is not None
    assert policy(most=2).decide(error("sandbox_failed"), 2) is None
    assert policy(most=0).decide(error("sandbox_failed"), 0) is None


def test_the_delay_doubles_up_to_its_cap() -> None:
    found = [policy(["."], most=9).decide(error(), made) for made in range(6)]
    assert [retry.delay for retry in found if retry] == [1, 2, 4, 8, 10, 10]


@settings(max_examples=50)
@given(made=st.integers(0, 2000), least=st.floats(0, 100), cap=st.floats(0, 1000))
def test_the_delay_is_drawn_from_the_upper_half(made: int, least: float, cap: float) -> None:
    drawn: list[tuple[float, float]] = []
    spec = ExecutionSpec(
        max_retries=made + 1,
        retry_pattern_list=["."],
        retry_min_delay_seconds=least,
        retry_max_delay_seconds=cap,
    )

    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return low

    retry = RetryPolicy(spec, uniform).decide(error(), made)
    assert retry is not None
    ((low, high),) = drawn
    assert low == high / 2
    assert 0 <= high <= cap


def test_a_malformed_pattern_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"'\('"):
        policy(["("])
