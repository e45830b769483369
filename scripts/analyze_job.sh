#!/bin/sh
# Analyse a run again: analyze_job.sh RUN --out artifacts/jobs/<job>/analysis
exec "${ACL:-acl}" analyze "$@"
