"""Every error that this project raises on purpose, in one tree.

An error carries data, says in one line what happened and where, and names a way out::

    AclError                    exit status 1
    ├── UsageError              2   the request cannot be understood or is refused
    │   ├── NotALedger              the file is something else
    │   ├── LedgerLocked            another process writes
    │   ├── LedgerExists            create never replaces
    │   ├── AlreadySealed           nothing more is recorded
    │   ├── ValueRefused            a value that the canonical form cannot hold
    │   ├── RunNotFound             no such run, task, event or blob
    │   └── KeyRefused              a key that is malformed, weak, or not to be used so
    ├── VersionUnsupported      3   intact, but not for this release, or for this SQLite
    ├── IntegrityError          4   stored bytes contradict each other
    │   ├── LedgerRolledBack        older than its own side file, or copied without its -wal
    │   ├── LedgerDamaged           a stored byte is not what was stored
    │   ├── ProofInvalid            a note, checkpoint or proof does not hold
    │   └── SignatureRefused        this would contradict what the key has signed before
    ├── ExportRefused           5   the target holds something else
    ├── LedgerStateError        1   the event is not legal in this state
    ├── NotStored               1   nothing of this batch is in the ledger
    ├── StorageFailed           1   the system refused to read or write; nothing is told of the file
    ├── LedgerDead              1   the writer met an error after which only a new opening can tell
    └── SandboxFailed           1   no sandbox could be started; says nothing about the candidate
"""

from typing import ClassVar


class AclError(Exception):
    """An error with an exit status and a hint; `str()` is the one line a user reads."""

    exit_status: ClassVar[int] = 1
    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        if hint:
            self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(AclError):
    """The request cannot be understood, or is refused before anything was done."""

    exit_status = 2


class NotALedger(UsageError):
    """The file or directory is not a ledger."""

    hint = "name a run directory or a ledger.sqlite file"


class LedgerLocked(UsageError):
    """Another process holds the writer lock; `holder` says who."""

    hint = "wait for it to end, or stop it; readers need no lock"

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{path} is being written by {holder}")
        self.path = path
        self.holder = holder


class LedgerExists(UsageError):
    """Creating never replaces what is there."""

    hint = "choose another run id or directory"


class AlreadySealed(UsageError):
    """The ledger was sealed, at `size` events."""

    hint = "record into a new run"

    def __init__(self, path: str, size: int) -> None:
        super().__init__(f"{path} is sealed at {size} events")
        self.path = path
        self.size = size


class ValueRefused(UsageError):
    """A value that the canonical form cannot hold; `path` names it."""

    hint = "give text, numbers, booleans, null, lists and objects with text keys"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"value at {path} refused: {why}")
        self.path = path
        self.why = why


class RunNotFound(UsageError):
    """There is no run, task, event or blob of that name."""


class KeyRefused(UsageError):
    """A key is malformed, weak, or cannot be used so; its text is never quoted."""

    hint = "make one with `acl keygen`"


class VersionUnsupported(AclError):
    """The ledger is intact, but a newer release wrote it, or the SQLite here is not fit for it."""

    exit_status = 3
    hint = "upgrade agentcompass-ledger"


class IntegrityError(AclError):
    """Stored bytes contradict each other; `seq` is the first event concerned, if one is known."""

    exit_status = 4
    hint = "run `acl verify` for all findings; keep the file as evidence"

    def __init__(self, message: str, *, seq: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.seq = seq


class LedgerRolledBack(IntegrityError):
    """The ledger is smaller than its own checkpoint file says."""

    hint = "restore the ledger together with its -wal file"


class LedgerDamaged(IntegrityError):
    """A stored byte is not the byte that was stored."""


class ProofInvalid(IntegrityError):
    """A note, checkpoint or proof does not hold."""

    hint = "ask for the note and the key again from their source"


class SignatureRefused(IntegrityError):
    """What was to be signed does not extend what the key has signed of this ledger before."""

    hint = "an older copy was put in its place; restore the ledger that was signed"


class ExportRefused(AclError):
    """The target directory holds something that an export must not touch."""

    exit_status = 5
    hint = "name an empty or new directory"


class LedgerStateError(AclError):
    """The event is not legal in the present state of the run, task or attempt."""

    hint = "this is a fault of the program that records; nothing was stored"


class NotStored(AclError):
    """Nothing of this batch is in the ledger; the writer can go on."""

    hint = "earlier events are intact; make room or repair the disk and try again"


class StorageFailed(AclError):
    """The system refused to read or write a file; nothing follows from that for what is stored."""

    hint = "see to the disk, or to what else is short, and try again"


class LedgerDead(AclError):
    """The writer met an error after which only a new opening can tell what is stored."""

    hint = "open the ledger again; every acknowledged event is in it"


class SandboxFailed(AclError):
    """No sandbox process could be started; this says nothing about the candidate."""

    hint = "check that the Python interpreter runs and that processes can be started"

    def __init__(self, message: str) -> None:
        super().__init__(f"sandbox did not start: {message or 'no output'}")
