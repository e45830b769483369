"""Archives: what is kept of each run that ended, below `archives/`, and the list of all of them.

`snapshot` computes the files of an archive from a state, `index` reads and extends `index.yaml`,
`shelf` numbers, writes and lists archives, and `open_runs` remembers which runs write here.
"""

from exporters.archives.open_runs import OpenRun, forget, open_runs, register
from exporters.archives.shelf import Archived, archive
from exporters.archives.snapshot import Snapshot, snapshot

__all__ = [
    "Archived",
    "OpenRun",
    "Snapshot",
    "archive",
    "forget",
    "open_runs",
    "register",
    "snapshot",
]
