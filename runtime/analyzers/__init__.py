"""The analyzers that ship: what each looks for and by which rules is in docs/analyzers.md."""
