"""Which names announce a secret: keys of objects, NAMEs in text, environment variables.

One rule for all three places. A name is lower-cased, camelCase is split and every run of other
characters becomes `_`; then it is secret if it is in `SECRET` or ends in one of `SUFFIXES`, and
not in `ORDINARY`. `HIDING` names hide everything below them.
"""

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from urllib.parse import quote

SECRET = frozenset(
    {"authorization", "proxy_authorization", "cookie", "set_cookie", "bearer", "jwt"}
    | {"password", "passwd", "passphrase", "secret", "credential", "aksk"}
    | {"token", "token_id", "apikey", "access_key_id"}
)
SUFFIXES = ("_key", "_secret", "_token", "_jwt", "_password", "_passphrase")
ORDINARY = frozenset(
    {"stop_token", "eos_token", "pad_token", "bos_token", "time_to_first_token"}
    | {"primary_key", "foreign_key", "cache_key", "sort_key", "answer_key", "wrap_api_key"}
)
HIDING = frozenset({"auth", "authentication", "credentials", "headers", "env", "env_variables"})
# Numbers below these are results, whatever the names around them are.
RESULTS = frozenset({"metrics", "correct", "score"})

# Environment variables are looked at more widely: PGPASSWORD, AWS_ACCESS_KEY_ID, DB_PASSWD.
_SECRET_VARIABLE_ENDINGS = (
    *("password", "passwd", "apikey", "secret"),
    *(f"_{name}" for name in sorted(SECRET)),
)
MIN_VARIABLE_LENGTH = 8

# Lookarounds only: no quantifier can backtrack over a long key.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^a-z0-9]+")


class Kind(Enum):
    """What a key says about the value that it names."""

    PLAIN = "plain"
    SECRET = "secret"  # noqa: S105 - the name of a kind
    RESULT = "result"


def normalize(name: str) -> str:
    """The form in which names are compared: `X-Api-Key`, `xApiKey` and `X_API_KEY` are one."""
    return _OTHER.sub("_", _CAMEL.sub("_", name).lower()).strip("_")


def is_secret_name(name: str) -> bool:
    """True if a value of this name is a secret itself."""
    plain = normalize(name)
    return plain not in ORDINARY and (plain in SECRET or plain.endswith(SUFFIXES))


def kind_of_key(key: str) -> Kind:
    """What the key of an object says about everything below it."""
    plain = normalize(key)
    if plain in RESULTS:
        return Kind.RESULT
    if plain in HIDING or plain.endswith("_env_variables") or is_secret_name(key):
        return Kind.SECRET
    return Kind.PLAIN


def secret_values(environ: Mapping[str, str], known: Iterable[str] = ()) -> tuple[str, ...]:
    """Values of the variables whose names look secret, and `known` ones, longest first.

    Values under 8 characters are left out: they would match ordinary text. A value that is
    quoted in a URL or escaped in JSON text is still the value: every spelling is given.
    """
    found: set[str] = set()
    values = [value for name, value in environ.items() if _is_variable(name)]
    for value in map(str.strip, [*values, *known]):
        if len(value) < MIN_VARIABLE_LENGTH or not value.strip("*"):
            continue
        found.add(value)
        found.add(quote(value, safe="", errors="replace"))
        found.add(value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _is_variable(name: str) -> bool:
    plain = normalize(name)
    if plain in ORDINARY:
        return False
    return is_secret_name(name) or plain.endswith(_SECRET_VARIABLE_ENDINGS)
