"""Names that announce a secret, and those that only look alike."""

import pytest

from runtime.secret_names import Kind, is_secret_name, kind_of_key, normalize, secret_values


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("X-Api-Key", "x_api_key"),
        ("apiKey", "api_key"),
        ("APIKey", "api_key"),
        ("OPENAI_API_KEY", "openai_api_key"),
        ("oauth2Token", "oauth2_token"),
        ("access key -- id", "access_key_id"),
        ("--password", "password"),
    ],
)
def test_spellings_of_one_name_are_one(name: str, plain: str) -> None:
    assert normalize(name) == plain


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "cookie", "jwt", "password", "passwd", "passphrase"),
        *("proxy_authorization", "Proxy-Authorization", "Set-Cookie", "token", "bearer"),
        *("credential", "secret", "apikey", "access_key_id", "aksk", "token_id"),
        *("api_key", "clientSecret", "hf_token", "session_jwt", "db_password", "key_passphrase"),
    ],
)
def test_secret_names_are_known(name: str) -> None:
    assert is_secret_name(name)
    assert kind_of_key(name) is Kind.SECRET


@pytest.mark.parametrize(
    "name",
    [
        *("prompt_tokens", "max_tokens", "completion_tokens_len", "total_tokens"),
        *("time_to_first_token", "stop_token", "eos_token", "pad_token", "bos_token"),
        *("primary_key", "cache_key", "answer_key", "sort_key", "foreign_key", "wrap_api_key"),
        *("sortKey", "key", "monkey", "keyboard", "tokenizer", "author", "secretary", ""),
    ],
)
def test_ordinary_names_that_look_alike_are_not_secret(name: str) -> None:
    assert not is_secret_name(name)
    assert kind_of_key(name) is Kind.PLAIN


@pytest.mark.parametrize(
    "name",
    [
        "auth",
        "authentication",
        "credentials",
        "headers",
        "env",
        "envVariables",
        "run_env_variables",
    ],
)
def test_containers_hide_what_is_below_them(name: str) -> None:
    assert kind_of_key(name) is Kind.SECRET
    assert not is_secret_name(name)


@pytest.mark.parametrize("name", ["metrics", "correct", "score"])
def test_results_are_a_kind_of_their_own(name: str) -> None:
    assert kind_of_key(name) is Kind.RESULT


def test_a_name_of_a_million_capitals_is_read_in_linear_time() -> None:
    assert not is_secret_name("A" * 1_000_000)


def test_values_come_from_variables_with_secret_names_only() -> None:
    environ = {
        "OPENAI_API_KEY": "value-one",
        "PGPASSWORD": "value-two",
        "AWS_ACCESS_KEY_ID": "value-three",
        "HOME": "/home/somebody",
        "SSH_AUTH_SOCK": "/tmp/agent.sock",
        "CACHE_KEY": "ordinary-value",
        "SHORT_TOKEN": "seven77",
        "MASKED_TOKEN": "********",
    }
    assert set(secret_values(environ)) == {"value-one", "value-two", "value-three"}


def test_longer_values_come_first_so_that_none_is_cut_by_another() -> None:
    assert secret_values({"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-more"}) == (
        "abcdefgh-more",
        "abcdefgh",
    )


def test_a_value_is_known_in_urls_and_in_json_text_too() -> None:
    values = secret_values({"DB_PASSWORD": 'p/ss "word"'})
    assert set(values) == {'p/ss "word"', "p%2Fss%20%22word%22", 'p/ss \\"word\\"'}
