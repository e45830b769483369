"""What kind of thing a tool call was: an edit of a file, a test that was written, or one that ran.

Tools have no common vocabulary, so this goes by names in common use; what is not recognised counts
as none of them. The lists belong to the taxonomy `acl-1`: other lists are another taxonomy.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

_LONGEST: Final = 10_000  # characters of a command that are looked at
_PATHS: Final = ("path", "file_path", "file", "filename", "target_file", "filepath")
_COMMANDS: Final = ("command", "cmd", "script", "commands", "code", "input", "keystrokes")
_EDITS: Final = re.compile(
    r"(?:^|[_.-])(?:edit|write|create|replace|insert|patch)(?:$|[_.-])|^apply_(?:diff|patch)$"
)
_NOT_EDITS: Final = frozenset({"view", "read", "open", "undo_edit"})
_TEST_RUN: Final = re.compile(
    r"(?<![A-Za-z])(?:pytest|unittest|nosetests?|tox|ctest|jest|vitest|mocha|rspec|phpunit"
    r"|(?:cargo|go|npm|yarn|make|mvn|gradle|dotnet)[ _]test"
    r"|run_(?:tests?|examples?|checks?)|runtests?|verify)(?![A-Za-z])"
)
_TEST_FILE: Final = re.compile(r"^tests?_.*|.*_tests?\.[a-z]+$|.*[.-](?:test|spec)\.[a-z]+$")


def edited_path(name: str, arguments: object) -> str | None:
    """The file that a call edits; None if it edits none that is known."""
    if not isinstance(arguments, Mapping) or not _EDITS.search(name.lower()):
        return None
    if arguments.get("command") in _NOT_EDITS:
        return None
    paths = (arguments.get(key) for key in _PATHS)
    return next((path for path in paths if isinstance(path, str) and path), None)


def writes_test(name: str, arguments: object) -> bool:
    """Whether a call edits a file that is a test by its name."""
    path = edited_path(name, arguments)
    if path is None:
        return False
    parts = PurePosixPath(path).parts
    return bool(parts) and (
        _TEST_FILE.match(parts[-1].lower()) is not None or "tests" in parts[:-1]
    )


def runs_test(name: str, arguments: object) -> bool:
    """Whether a call runs tests: by its own name, or by the command that it runs."""
    if _TEST_RUN.search(name.lower()):
        return True
    said = arguments
    if isinstance(arguments, Mapping):
        said = [arguments.get(key) for key in _COMMANDS]
    return any(_TEST_RUN.search(text[:_LONGEST].lower()) for text in texts(said))


def texts(value: object) -> Iterator[str]:
    """All texts in a value, those of keys left out, in order."""
    stack = [value]
    while stack:
        match stack.pop():
            case str() as text:
                yield text
            case Mapping() as members:
                stack.extend(reversed(list(members.values())))
            case list() | tuple() as items:
                stack.extend(reversed(items))
