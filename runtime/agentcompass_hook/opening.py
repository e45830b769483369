"""How the ledger of a live run is opened, and the first events in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger import events as ev
from ledger.note import Signer
from ledger.store import Ledger
from ledger.version import __version__
from runtime.importers.agentcompass.request import our_request, payload, persistence_params
from runtime.importers.jsontext import read_record
from runtime.recorder import Recorder
from runtime.redact import POLICY_VERSION, Redactor
from runtime.registry import Registration
from runtime.surroundings import Surroundings, program

RUN_INFO: Final = "run_info.json"
HOOK: Final = "agentcompass.hook"
"""The extension event that says that this ledger tells of a run of AgentCompass as it went on:
{version}. Exporters know such a ledger by it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A ledger with its recorder, and the run's entries in the registry."""

    recorder: Recorder
    registration: Registration


def open_ledger(run: Path, results_dir: Path, version: str, around: Surroundings) -> Opened:
    """Make the ledger in the directory of a run that has just written its run_info.json.

    Raises what `Ledger.create` raises, KeyRefused for a signing key that cannot be used, and
    NotARecord or OSError where run_info.json cannot be read.
    """
    info = read_record((run / RUN_INFO).read_bytes()).value
    signers: tuple[Signer, ...] = around.keys()
    ledger = Ledger.create(run, clock=around.clock, entropy=around.entropy)
    redactor = Redactor(around.environ)
    recorder = Recorder(ledger, redactor, signers=signers, patience=around.patience)
    try:
        registration = around.registration(results_dir, run, ledger.ledger_id, signers)
        created = _created(run, info)
        registration.open(created, redactor, 0)
        recorder.record_sync(
            created,
            _frozen(info),
            registration.told(),
            ev.ExtensionRecorded(name=HOOK, payload={"version": version}),
            ev.RunStarted(),
        )
    except BaseException:
        recorder.close()
        raise
    return Opened(recorder, registration)


def _created(run: Path, info: Mapping[str, Any]) -> ev.RunCreated:
    asked = info.get("request")
    source: dict[str, Any] = asked if isinstance(asked, dict) else {}
    request = payload(our_request(source, run.name))
    known: Any = program()
    return ev.RunCreated(
        run_id=run.name,
        request=request | {"source": {"format": "agentcompass", "request": source}},
        persistence_params=persistence_params(request),
        acl_version=__version__,
        redaction_policy=POLICY_VERSION,
        **known,
    )


def _frozen(info: Mapping[str, Any]) -> ev.ReuseFrozen:
    reused = info.get("reused_from")
    run_id = reused.get("run_id") if isinstance(reused, dict) else None
    if not isinstance(run_id, str) or not run_id:
        return ev.ReuseFrozen(mode="none")
    return ev.ReuseFrozen(mode="explicit", run_id=run_id)
