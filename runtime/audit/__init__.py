"""The page that an auditor wants: every run of a results directory, entered or found, and why.

Only ledgers are read, one run at a time, and nothing is written. One damaged run, or a damaged
registry, never hides the others.
"""

from runtime.audit.overview import Audit, audit
from runtime.audit.report import (
    Attempts,
    Cost,
    Problem,
    RegistryReport,
    RunReport,
    Share,
    Source,
    document,
    exit_status,
)
from runtime.audit.run import Against, Exported

__all__ = [
    "Against",
    "Attempts",
    "Audit",
    "Cost",
    "Exported",
    "Problem",
    "RegistryReport",
    "RunReport",
    "Share",
    "Source",
    "audit",
    "document",
    "exit_status",
]
