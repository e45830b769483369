"""Attacks on ledgers, what detects each, and the table of both for the documentation."""
