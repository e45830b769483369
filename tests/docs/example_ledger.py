"""The ledger of the worked example in docs/format.md."""

from pathlib import Path

from ledger import events as ev
from ledger.store import Ledger

TEXT = "a" * 4096 + "b"
EVENTS: tuple[ev.AnyEvent, ...] = (
    ev.RunCreated(
        run_id="r",
        request={},
        persistence_params={},
        acl_version="1",
        python="3.11",
        platform="linux",
        redaction_policy="1",
    ),
    ev.ExtensionRecorded(task="t\ud800", name="a.b", payload=[1.0, TEXT, float("nan")]),
    ev.AnnotationAdded(text="checked", author="an auditor"),
)


def write_example(path: Path) -> None:
    """Write the example: the first draw of entropy is 16 times 00, the next 16 times 01, ..."""
    draws = iter(range(256))
    ticks = iter(range(256))

    def clock() -> tuple[int, int]:
        tick = next(ticks)
        return 1_700_000_000_000_000_000 + tick * 1_000_000_000, 5 + tick

    with Ledger.create(
        path, clock=clock, entropy=lambda length: bytes([next(draws)]) * length
    ) as ledger:
        for event in EVENTS:
            ledger.append(event)
        ledger.checkpoint()
