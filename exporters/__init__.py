"""Projections of a run into files."""
