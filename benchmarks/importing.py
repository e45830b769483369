"""Child of `benchmarks.size`: one import, as `acl import` makes it.

    python -m benchmarks.importing SOURCE RESULTS-DIRECTORY [keep]

With `keep` the original files are stored too. Prints one JSON document.
"""

import json
import os
import sys
import time
from pathlib import Path

from benchmarks.counting import written
from ledger.opening import LEDGER_NAME
from ledger.segment import AT_REST
from ledger.store import Ledger
from runtime.importers.door import import_path
from runtime.recorder import Recorder
from runtime.redact import Redactor


def main(source: Path, results: Path, *, keep: bool) -> None:
    """Import, and tell what was written and what is left."""
    before, began = written(), time.perf_counter()
    report = import_path(source, results_dir=results, create=_create, keep_originals=keep)
    ledger = report.path / LEDGER_NAME
    told = {
        "written": written() - before,
        "wall": time.perf_counter() - began,
        "bytes": ledger.stat().st_size,
        "ledger": str(ledger),
    }
    print(json.dumps(told))


def _create(directory: Path) -> Recorder:
    return Recorder(Ledger.create(directory, packing=AT_REST), Redactor(os.environ))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), keep=sys.argv[3:] == ["keep"])
