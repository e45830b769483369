"""The registry of a results directory: one more ledger, which every run below it is entered in.

A run is entered before its first event and when it is sealed, so that a run which is removed later
is still known to have been begun. `acl audit` compares the registry with what is on disk.
"""

from runtime.registry.entries import Entry, Readings, read_entries
from runtime.registry.owed import attempts_of
from runtime.registry.places import REGISTRY_NAME, find_results_dir, registry_file, request_digest
from runtime.registry.registration import REGISTERED, UNREGISTERED, Registration, complete
from runtime.registry.writing import LOCK_SECONDS, Registry

__all__ = [
    "LOCK_SECONDS",
    "REGISTERED",
    "REGISTRY_NAME",
    "UNREGISTERED",
    "Entry",
    "Readings",
    "Registration",
    "Registry",
    "attempts_of",
    "complete",
    "find_results_dir",
    "read_entries",
    "registry_file",
    "request_digest",
]
