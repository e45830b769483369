#!/bin/sh
# Remove disposable files below artifacts/ of the project that this directory stands in.
# Options: -n or --dry-run only says what would be removed.
cd "$(dirname -- "$0")/.." && PATH="$PWD/.venv/bin:$PATH" exec acl clean "$@"
