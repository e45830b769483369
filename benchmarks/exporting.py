"""Child of `benchmarks.size`: the files of a run, as `acl export` makes them.

python -m benchmarks.exporting RUN DIRECTORY
"""

import sys

from acl.main import main

if __name__ == "__main__":
    sys.argv = ["acl", "export", *sys.argv[1:], "--json"]
    main()
