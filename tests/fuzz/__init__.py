"""Coverage-guided, structure-aware fuzzers: `python -m tests.fuzz`, docs/survival.md."""
