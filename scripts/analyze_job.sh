#!/bin/sh
# Analyse a run again: analyze_job.sh RUN --out artifacts/jobs/<job>/analysis
project=$(cd "$(dirname -- "$0")/.." && pwd) && PATH="$project/.venv/bin:$PATH" exec acl analyze "$@"
