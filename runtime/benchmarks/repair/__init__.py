"""Benchmark acl-repair: repair small functions that seeded changes have broken."""
