"""One attack, the scene it is made in, and what a look at the scene afterwards says."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from ledger import LedgerView
from ledger.errors import AclError
from ledger.verify import Finding, verify
from tests.attacks.runs import LAB, OTHER_ID, record, story

State = Literal["sealed", "unsealed"]
STATES: Final[tuple[State, ...]] = ("sealed", "unsealed")
Seen = Literal["broken", "refused", "unproven", "told", "unseen"]
Group = Literal["bytes and files", "rows and schema", "content", "keys and checkpoints", "history"]
Evidence = Literal["alone", "key", "checkpoint"]
_TOLD: Final = {"erased"}
EVIDENCE: Final[tuple[Evidence, ...]] = ("alone", "key", "checkpoint")


@dataclass
class Scene:
    """A copy of an honest run, and what an attacker may have besides.

    `kept` is the checkpoint that an auditor kept from the day of publication. `older` is the run
    as it was after its first task, `other` a run of the same lab.
    """

    state: State
    run: Path
    older: Path
    other: Path
    kept: bytes

    @property
    def path(self) -> Path:
        """The ledger file."""
        return self.run / "ledger.sqlite"

    @property
    def wal(self) -> Path:
        """What is not yet in that file."""
        return self.run / "ledger.sqlite-wal"

    @property
    def sealed(self) -> bool:
        """Whether the run is one file."""
        return self.state == "sealed"


@dataclass(frozen=True)
class Attack:
    """Something that somebody does to a run directory after the fact, or to a record of it.

    `seen` says for each kind of evidence what verify says then: `broken` (a contradiction is
    named), `refused` (nothing is read at all, and that is said), `unproven` (something that was
    proven is no longer, in words), `told` (a note says that it was done), `unseen`. A pair is for a sealed ledger and one that is not.
    `harmless` attacks change nothing that anybody can read.
    """

    name: str
    does: str
    act: Callable[[Scene], None]
    group: Group
    alone: Seen | tuple[Seen, Seen]
    key: Seen | tuple[Seen, Seen]
    checkpoint: Seen | tuple[Seen, Seen]
    harmless: bool | tuple[bool, bool] = False
    states: tuple[State, ...] = STATES
    codes: tuple[str, ...] = ()
    """Codes of findings that must be among those of the ledger alone."""
    note: str = ""
    """What else there is to say, for the documentation."""
    by_command: bool = field(default=False)
    """Looked for by `acl verify`, which recomputes the metrics, and not by the ledger itself."""

    def seen(self, evidence: Evidence, state: State) -> Seen:
        """What is to be expected."""
        expected: Seen | tuple[Seen, Seen] = getattr(self, evidence)
        return expected if isinstance(expected, str) else expected[STATES.index(state)]

    def changes_nothing(self, state: State) -> bool:
        """Whether all that can be read stays as it was."""
        told = self.harmless
        return told if isinstance(told, bool) else told[STATES.index(state)]


def set_up(home: Path, state: State) -> Scene:
    """Record the honest run and what is around it in an empty directory."""
    kept = record(home / "run", seal=state == "sealed", older=home / "older")
    record(home / "other", seal=state == "sealed", ledger_id=OTHER_ID, events=story("r2"))
    return Scene(state, home / "run", home / "older", home / "other", kept)


def copy_scene(scene: Scene, home: Path) -> Scene:
    """A scene to spoil."""
    places = {}
    for name in ("run", "older", "other"):
        places[name] = home / name
        shutil.copytree(getattr(scene, name), places[name], symlinks=True)
        (places[name] / "ledger.sqlite").chmod(0o644)
    return Scene(scene.state, **places, kept=scene.kept)


def evidence_of(scene: Scene, evidence: Evidence) -> Mapping[str, object]:
    """What verify is given."""
    match evidence:
        case "alone":
            return {}
        case "key":
            return {"verifiers": [LAB.verifier]}
        case "checkpoint":
            return {"checkpoint": scene.kept}


def look(scene: Scene, evidence: Evidence, *, by_command: bool = False) -> list[Finding] | AclError:
    """What verify finds, or why it does not begin."""
    try:
        if by_command:
            return _by_command(scene)
        return list(verify(scene.run, **evidence_of(scene, evidence)))  # type: ignore[arg-type]
    except AclError as error:
        return error


def _by_command(scene: Scene) -> list[Finding]:
    from acl.verdict import examine

    return [Finding(**found) for found in examine(str(scene.run))["findings"]]


def judged(found: list[Finding] | AclError, honest: list[Finding] | AclError) -> Seen:
    """Compare with what the same look says of the honest run."""
    if isinstance(found, AclError):
        return "refused"
    if any(finding.severity == "broken" for finding in found):
        return "broken"
    assert not isinstance(honest, AclError)
    known = {finding.code for finding in honest if finding.severity == "unproven"}
    doubts = {finding.code for finding in found if finding.severity == "unproven"}
    if doubts - known:
        return "unproven"
    # Notes that a reader would otherwise not have.
    told = {finding.code for finding in found} & _TOLD
    return "told" if told else "unseen"


def content(run: Path) -> object:
    """Everything that a reader can get out of a ledger, or what a reader is told instead."""
    try:
        with LedgerView.open(run) as view:
            return (
                view.root(),
                [view.raw(seq) for seq in range(view.size)],
                [view.resolve(dict(e.event)) for e in view.events() if e.event],
                list(view.checkpoints()),
            )
    except AclError as error:
        return error.message
