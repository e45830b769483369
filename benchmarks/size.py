"""What is written to keep a run, and what is left in the end, in bytes; nothing is timed.

    python -m benchmarks.size [--quick] [--json FILE] [--peers-python PYTHON] [--samples DIR]

Written is what the process hands over to write calls, whatever becomes of it; final is the sealed
file. Imports keep the original files too, without secrets.
"""

import argparse
import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.measure import Report, arguments, tell
from benchmarks.payloads import payload_file
from benchmarks.streams import Held, hold, solid
from benchmarks.subjects import AGENTCOMPASS, BUILD, INSPECT, Peers, Told, module, scratch
from ledger.opening import LEDGER_NAME
from ledger.segment import AT_REST
from runtime.importers.samples import unpack_sample

COUNTS: Final = (100, 400, 1_600, 6_400)
QUICK: Final = (40,)
_MOST: Final = {"agentcompass": 400, "inspect, each": 400}
# The archive of more takes minutes, and its ratio tells nothing new.
_MOST_ARCHIVED: Final = 1_600
_BLOCK: Final = 4096
_DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "data"
_RUNS: Final = ("k3-avg", "k3-fatal", "k3-reuse", "k3-sigkill")


# -- written ---------------------------------------------------------------------------------------


def concurrent(report: Report, counts: Iterable[int], python: Path | None) -> None:
    """Runs with 16 attempts at once, of each size, and the peers beside them."""
    payloads, peers = payload_file(BUILD, max(counts)), Peers(python)
    ratios = []
    for count in counts:
        with scratch() as place:
            (place / "ours").mkdir()
            ours = module("ours", payloads, count, place / "ours")
            ratios.append(ours["written"] / ours["bytes"])
            _written(report, f"run of {count} tasks", "ours", ours)
            report.ratio(f"written / final, {count} tasks, 16 at once", ratios[-1], most=4.0)
            for name in peers.names():
                if count <= _MOST.get(name, count):
                    (place / name).mkdir()
                    told = peers.run(name, payloads, count, place / name)
                    _written(report, f"run of {count} tasks", name, told)
                    report.ratio(f"{name}: written / final, {count} tasks", _ratio(told))
            if count <= _MOST_ARCHIVED:
                held = hold(place / "ours" / LEDGER_NAME)
                _final(report, f"run of {count} tasks", [held], ours["bytes"], None)
    report.ratio("written / final, largest run / smallest", ratios[-1] / ratios[0])


def bulk(report: Report, place: Path, count: int) -> None:
    """The same run again, imported from the files of its export."""
    ledger, files = place / "bulk", place / "bulk-files"
    ledger.mkdir()
    module("ours", payload_file(BUILD, count), count, ledger)
    module("exporting", ledger, files)
    told = module("importing", files, place / "bulk-results")
    _written(report, f"import of {count} tasks", "ours", told)
    report.ratio(f"written / final, import of {count} tasks", _ratio(told), most=2.5)


def _written(report: Report, what: str, who: str, told: Told) -> None:
    report.row(
        data=what,
        subject=who,
        written_mb=told["written"] / 1e6,
        final_mb=told["bytes"] / 1e6,
        written_by_final=_ratio(told),
    )


def _ratio(told: Told) -> float:
    return float(told["written"] / told["bytes"])


# -- final -----------------------------------------------------------------------------------------


def sources(samples: Path | None, place: Path) -> dict[str, list[Path]]:
    """The real samples by what wrote them: given ones, or those that the tests have."""
    found: dict[str, list[Path]] = {}
    if samples is None:
        runs = [place / name for name in _RUNS]
        unpack_sample(runs[0])
        for run in runs[1:]:
            unpack_sample(run, _DATA / "agentcompass" / "runs.tar.xz", run.name)
        samples = _DATA
    else:
        runs = sorted(one.parent for one in samples.rglob("run_info.json"))
    found["AgentCompass runs"] = runs
    logs = sorted((samples / "inspect").glob("*.eval"))
    found["Inspect logs"] = logs
    found["largest Inspect log"] = [max(logs, key=lambda log: log.stat().st_size)]
    found["tau-bench trajectories"] = [samples / "tau_bench"]
    return found


def imported(report: Report, name: str, paths: list[Path], place: Path) -> None:
    """One kind of samples, each imported into a ledger of its own."""
    told = [module("importing", path, place / name / str(n)) for n, path in enumerate(paths)]
    together: Told = {key: sum(one[key] for one in told) for key in ("written", "bytes")}
    _written(report, name, "ours", together)
    report.ratio(f"written / final, {name}", _ratio(together), most=2.5)
    held = [hold(Path(one["ledger"]), AT_REST) for one in told]
    _final(report, name, held, together["bytes"], [*_files(paths)])


def _files(paths: list[Path]) -> Iterator[int]:
    """Sizes of all files, those in an archive as they are without it."""
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix == ".eval":
                with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as archive:
                    yield from (one.file_size for one in archive.infolist())
            elif file.is_file():
                yield file.stat().st_size


def _final(report: Report, name: str, held: list[Held], size: int, files: list[int] | None) -> None:
    payload = sum(len(part) for one in held for part in one.payload())
    archive = solid(part for one in held for part in one.payload())
    whole = sum(one.compressed() for one in held)
    heads = whole - sum(one.compressed(heads=False) for one in held)
    originals = whole - sum(one.compressed(originals=False) for one in held)
    events = sum(len(one.records) for one in held)
    plain_heads = sum(len(record.head) for one in held for record in one.records)
    row = {
        "data": name,
        "events": events,
        "payload_mb": payload / 1e6,
        "archive_mb": archive / 1e6,
        "final_mb": size / 1e6,
        "heads_plain_mb": plain_heads / 1e6,
        "heads_mb": heads / 1e6,
        "head_bytes_each": heads / events,
        "originals_mb": originals / 1e6,
    }
    report.ratio(f"final / solid archive, {name}", size / archive, most=4.0)
    if files is not None:
        blocks = sum(-(-one // _BLOCK) * _BLOCK for one in files)
        row |= {"files_mb": sum(files) / 1e6, "files_in_blocks_mb": blocks / 1e6}
        report.ratio(f"final / files in blocks of 4 KiB, {name}", size / blocks, most=0.125)
        report.ratio(f"final / files, {name}", size / sum(files))
        alone = (size - originals) / blocks
        report.ratio(f"final without kept originals / files in blocks, {name}", alone)
    report.row(**row)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tasks", type=int, nargs="+", help="only these numbers of tasks")
    parser.add_argument("--samples", type=Path, help="more real samples than the tests have")
    parser.add_argument("--peers-python", type=Path, help="a Python 3.12 or newer for the peers")


def main() -> None:
    """Count and tell."""
    chosen = arguments(__doc__ or "", _options)
    counts = chosen.tasks or (QUICK if chosen.quick else COUNTS)
    report = Report("bytes", "Bytes written while a run is kept, and bytes that are left.")
    concurrent(report, counts, chosen.peers_python)
    with scratch() as place:
        bulk(report, place, 40 if chosen.quick else 400)
        for name, paths in sources(chosen.samples, place).items():
            imported(report, name, paths[:1] if chosen.quick else paths, place)
    _say(report, chosen)
    tell(report, chosen)


def _say(report: Report, chosen: argparse.Namespace) -> None:
    report.note(
        "Written: bytes passed to write calls (wchar of /proc/self/io), a page of SQLite each time"
        " it is written; checked once against strace. Final: the sealed ledger, one file."
    )
    report.note(
        "Files: those that were imported, a `.eval` by its members unpacked. Archive: all bodies"
        " and pieces of the ledgers in one frame of zstd -19 --long=27, without any header."
    )
    report.note(
        "Headers and originals: what both streams take less, compressed as a ledger does it in"
        " commits of 256 events, without them."
    )
    if chosen.peers_python is not None:
        report.note(f"Peers: {AGENTCOMPASS} and {INSPECT}, left out where they take too long.")


if __name__ == "__main__":
    main()
