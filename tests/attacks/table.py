"""The tables of docs/attacks.md, made from the catalogue: `python -m tests.attacks.table`."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.attacks.attack import EVIDENCE, Attack, Evidence
from tests.attacks.catalogue import ATTACKS
from tests.attacks.on_handed_out import HANDED_OUT
from tests.attacks.on_proofs import PROOF_ATTACKS
from tests.attacks.on_registry import REGISTRY_ATTACKS, WITNESS_ATTACKS, RegistryAttack

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "attacks.md"
BEGIN: Final = "<!-- made by `python -m tests.attacks.table`; do not edit -->"
END: Final = "<!-- end of what is made -->"
_WORDS: Final = {
    "broken": "found",
    "refused": "refused",
    "unproven": "not proven",
    "told": "told",
    "unseen": "–",
    "kept out": "kept out",
}
_ANSWERS: Final = {"refused": "refused", "accepted": "–"}
_FIRST: Final = "what somebody does"
_HEADS: Final = ("alone", "with a key", "with a kept checkpoint")


def tables() -> str:
    """Everything between the two markers."""
    return "\n\n".join(
        [*_groups(), _proofs(), _handed_out(), _registry(), _witness(), *_what_is_needed()]
    )


def _groups() -> Iterator[str]:
    for group in dict.fromkeys(attack.group for attack in ATTACKS):
        rows = [_row(attack) for attack in ATTACKS if attack.group == group]
        yield f"### {group.capitalize()}\n\n{_table((_FIRST, *_HEADS), rows)}"


def _row(attack: Attack) -> tuple[str, ...]:
    does = attack.does
    if attack.states == ("sealed",):
        does += " (sealed)"
    elif attack.states == ("unsealed",):
        does += " (not sealed)"
    told = [f"{does}; {attack.note}" if attack.note else does]
    return (*told, *(_cell(attack, evidence) for evidence in EVIDENCE))


def _cell(attack: Attack, evidence: Evidence) -> str:
    words = [
        "nothing changes" if attack.changes_nothing(state) else _WORDS[attack.seen(evidence, state)]
        for state in attack.states
    ]
    return " / ".join(dict.fromkeys(words))


def _proofs() -> str:
    rows = [(attack.does, _ANSWERS[attack.alone], _ANSWERS[attack.key]) for attack in PROOF_ATTACKS]
    return f"### Proof files\n\n{_table((_FIRST, *_HEADS[:2]), rows)}"


def _handed_out() -> str:
    rows = [(one.does, one.by, _WORDS[one.alone], _WORDS[one.key]) for one in HANDED_OUT]
    heads = (_FIRST, "looked at with", "alone", "with a key")
    return f"### What is handed out\n\n{_table(heads, rows)}"


def _registry() -> str:
    rows = [(attack.does, attack.alone, attack.kept) for attack in REGISTRY_ATTACKS]
    heads = (_FIRST, "`acl audit`", "with a kept checkpoint of the registry")
    return f"### Results directory and registry\n\n{_table(heads, rows)}"


def _witness() -> str:
    rows = [(attack.does, attack.answer) for attack in WITNESS_ATTACKS]
    heads = ("what somebody asks a witness for that has seen 20 events", "it is")
    return f"### Witness\n\n{_table(heads, rows)}"


def _what_is_needed() -> Iterator[str]:
    """The attacks again, by the least that shows them."""
    real = [attack for attack in ATTACKS if not any(map(attack.changes_nothing, attack.states))]
    by_key, by_checkpoint, never = [], [], []
    for attack in real:
        seen = {
            evidence: {attack.seen(evidence, state) for state in attack.states}
            for evidence in EVIDENCE
        }
        if "unseen" not in seen["alone"]:
            continue
        if "unseen" not in seen["key"]:
            by_key.append(attack)
        elif "unseen" not in seen["checkpoint"]:
            by_checkpoint.append(attack)
        else:
            never.append(attack)
    kept = [one for one in REGISTRY_ATTACKS if (one.alone, one.kept) == ("–", "found")]
    unseen = [one for one in REGISTRY_ATTACKS if one.kept == "–"]
    yield f"### Seen by who has the key, not by the ledger alone\n\n{_list(by_key)}"
    yield f"### Seen only against a checkpoint kept elsewhere\n\n{_list([*by_checkpoint, *kept])}"
    yield f"### Seen by none of these\n\n{_list([*never, *unseen])}"


def _list(attacks: Iterable[Attack | RegistryAttack]) -> str:
    return "\n".join(f"- {attack.does}" for attack in attacks)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(text: str) -> str:
    """The page with its tables made anew."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    assert pattern.search(text), "the page has no markers"
    return pattern.sub(lambda _: f"{BEGIN}\n\n{tables()}\n\n{END}", text)


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
