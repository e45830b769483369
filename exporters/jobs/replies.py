"""Answers of models in the form of OpenAI's chat completions, as far as they are in it."""

from collections.abc import Mapping

_OF_MESSAGE = ("tool_calls", "reasoning_content", "refusal")


def dicts(value: object) -> list[dict[str, object]]:
    """The objects of a list; nothing of anything else."""
    items = value if isinstance(value, list | tuple) else ()
    return [item for item in items if isinstance(item, dict)]


def message_of(response: Mapping[str, object] | None) -> dict[str, object] | None:
    """The message of the first choice; None without one."""
    choices = dicts(response.get("choices")) if response else []
    message = choices[0].get("message") if choices else None
    return message if isinstance(message, dict) else None


def tool_calls_of(message: Mapping[str, object] | None) -> list[dict[str, object]]:
    """The tools that a message wants called."""
    return dicts(message.get("tool_calls")) if message else []


def text_of_content(content: object) -> str:
    """The text of a message's content; parts that are no text are named in brackets."""
    if isinstance(content, str):
        return content
    texts = []
    for part in dicts(content):
        text = part.get("text")
        kind = part.get("type")
        texts.append(text if isinstance(text, str) else f"[{kind or 'part'}]")
    return "".join(texts)


def is_turn(message: Mapping[str, object] | None) -> bool:
    """Whether an answer says anything, or wants a tool called."""
    if message is None:
        return False
    return bool(message.get("content")) or bool(tool_calls_of(message))


def common_prefix(first: list[object], second: list[object]) -> int:
    """How many items two lists begin with alike."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def plain_choice(choice: Mapping[str, object]) -> dict[str, object]:
    """A choice with the fields that readers know, in their order."""
    found = choice.get("message")
    given = found if isinstance(found, dict) else {}
    message: dict[str, object] = {"role": given.get("role"), "content": given.get("content")}
    message |= {name: given[name] for name in _OF_MESSAGE if given.get(name) is not None}
    return {
        "index": choice.get("index"),
        "finish_reason": choice.get("finish_reason"),
        "message": message,
    }
