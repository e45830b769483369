"""Verification against the bare loop: read every row, decompress it, hash what it holds."""

import hashlib
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import zstandard

from acl.verdict import examine
from benchmarks import ledgers
from benchmarks.measure import Report, arguments, interleaved, tell
from ledger import LedgerView
from ledger.codec import HEADER_BYTES
from ledger.verify import verify

ABOUT: Final = (
    "CPU time of verifying a ledger, beside the bare loop over the same file: every row read,"
    " decompressed, each header hashed as a leaf, each body and piece hashed with SHA-256."
)
_PART_BITS: Final = 20


def bare(run: Path) -> None:
    """What no verifier can leave out: all rows, all bytes, all hashes; nothing is compared."""
    with closing(sqlite3.connect(f"file:{run / 'ledger.sqlite'}?mode=ro", uri=True)) as file:
        _hash_events(file)
        _hash_pieces(file)


def _hash_events(file: sqlite3.Connection) -> None:
    held, plain = -1, b""
    for _, segment, offset in file.execute("SELECT seq, seg, off FROM event ORDER BY seq"):
        if segment != held:
            held, plain = segment, _plain(file, "segment", segment)
        task = int.from_bytes(plain[offset + HEADER_BYTES - 2 : offset + HEADER_BYTES], "big")
        body = offset + HEADER_BYTES + (0 if task == 0xFFFF else task)
        head = plain[offset:body]
        length = int.from_bytes(head[56:64], "big")
        hashlib.sha256(b"\x00" + head).digest()
        hashlib.sha256(plain[body : body + length]).digest()


def _hash_pieces(file: sqlite3.Connection) -> None:
    held, plain = -1, b""
    for segment, offset, length in file.execute("SELECT seg, off, len FROM blob ORDER BY id"):
        if segment != held:
            held, plain = segment, _plain(file, "blobsegment", segment)
        hashlib.sha256(plain[offset : offset + length]).digest()


def _plain(file: sqlite3.Connection, table: str, segment: int) -> bytes:
    first = segment << _PART_BITS
    rows = file.execute(
        f"SELECT plain, data FROM {table} WHERE id >= ? AND id < ? ORDER BY id",
        (first, first + (1 << _PART_BITS)),
    ).fetchall()
    frame = b"".join(data for _, data in rows)
    with zstandard.ZstdDecompressor().stream_reader(frame) as reader:
        return reader.read(rows[-1][0])


def findings(run: Path) -> None:
    """The verifier alone: every finding about the ledger."""
    assert not any(finding.severity == "broken" for finding in verify(run))


def verdict(run: Path) -> None:
    """Everything that `acl verify` does: the verifier, and the metrics recomputed."""
    assert examine(str(run))["ok"]


def peak(run: Path, code: str) -> float:
    """The most memory, in MB, of a process of its own that does this with the run."""
    program = f"import sys; {code}; from benchmarks.verify import held; print(held())"
    done = subprocess.run(
        [sys.executable, "-c", program, str(run)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def held() -> float:
    """The most memory that this process has held, in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (one for one in status.splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def compare(report: Report, kind: str, run: Path, rounds: int) -> None:
    """Verify in turns with the bare loop, and tell the ratios of CPU time."""
    # What is loaded at the first need is no part of it.
    verdict(run)
    taken = interleaved(
        rounds,
        {
            "bare": partial(bare, run),
            "findings": partial(findings, run),
            "verdict": partial(verdict, run),
        },
    )
    with LedgerView.open(run) as view:
        size = view.size
    report.row(
        ledger=kind,
        events=size,
        file_mb=(run / "ledger.sqlite").stat().st_size / 1e6,
        **{f"{name}_us_an_event": one.cpu / size * 1e6 for name, one in taken.items()},
    )
    base = taken["bare"].cpu
    report.ratio(f"verify / bare, {kind}", taken["findings"].cpu / base, most=1.5)
    report.ratio(f"acl verify / bare, {kind}", taken["verdict"].cpu / base, most=1.5)


def main() -> None:
    """Make the ledgers, verify them, tell the figures."""
    chosen = arguments(ABOUT)
    report = Report("verify", ABOUT)
    tasks, attempts, many, rounds = (
        (60, 500, 1_000, 1) if chosen.quick else (1_600, 12_500, 125_000, 5)
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        compare(
            report, "20 kB trajectories", ledgers.realistic(folder / "realistic", tasks), rounds
        )
        compare(report, "small events", ledgers.small(folder / "small", attempts), rounds)
        large = ledgers.small(folder / "large", many)
        events = many * ledgers.SMALL_EVENTS
        for name, code in (
            ("verify", "from ledger.verify import verify; list(verify(sys.argv[1]))"),
            ("acl verify", "from acl.verdict import examine; examine(sys.argv[1])"),
        ):
            report.ratio(f"memory of {name}, {events} events, MB", peak(large, code), most=200)
    report.note("bare compares nothing, parses nothing and knows no order: it is a lower bound.")
    tell(report, chosen)


if __name__ == "__main__":
    main()
