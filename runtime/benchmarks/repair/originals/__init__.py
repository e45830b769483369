"""Correct functions that the repair tasks are made from, one module per domain.

Each function is self-contained: no imports, data in, data out.  Its docstring examples are what an
agent sees; `hidden/<domain>.txt` holds the cases that only the verifier sees.
"""
