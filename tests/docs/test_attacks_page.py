"""The page of attacks is made from the list that the tests run."""

from tests.attacks.catalogue import ATTACKS
from tests.attacks.on_handed_out import HANDED_OUT
from tests.attacks.on_proofs import PROOF_ATTACKS
from tests.attacks.on_registry import REGISTRY_ATTACKS, WITNESS_ATTACKS
from tests.attacks.table import PAGE, page


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run `python -m tests.attacks.table`"


def test_every_attack_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    beside = (*PROOF_ATTACKS, *HANDED_OUT, *REGISTRY_ATTACKS, *WITNESS_ATTACKS)
    for attack in (*ATTACKS, *beside):
        assert f"| {attack.does}" in text
