"""Benchmark acl-arith: seeded arithmetic and word problems with an exact checker."""
