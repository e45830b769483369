"""Runs evaluations and records every step as an event."""
