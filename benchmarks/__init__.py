"""Benchmarks: each module is one command, `python -m benchmarks.record`; docs/performance.md."""
