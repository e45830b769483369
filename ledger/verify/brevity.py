"""Findings in bounded number: a hostile ledger could have one for each of millions of rows."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from ledger.verify.finding import Finding, Severity

_TOLD: Final = 1000
_LETTERS: Final = 4 * 1024 * 1024


def brief(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Pass on the first findings of each kind; of the rest tell how many there are, at the end.

    `broken` findings and notes end after 1,000 of a code. What is unproven is told of every task,
    as long as the names of all those tasks have not millions of letters.
    """
    told: Counter[tuple[str, Severity]] = Counter()
    further: Counter[tuple[str, Severity]] = Counter()
    letters = 0
    for finding in findings:
        kind = finding.code, finding.severity
        letters += len(finding.message) + len(finding.task or "")
        is_few = told[kind] < _TOLD or finding.severity == "unproven"
        if not told[kind] or (is_few and letters < _LETTERS):
            told[kind] += 1
            yield finding
        else:
            further[kind] += 1
    for (code, severity), count in further.items():
        yield Finding(code, severity, f"and {count} more of this kind")
