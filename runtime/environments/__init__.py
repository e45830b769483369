"""Places where attempts run."""
