"""Importers turn foreign files into events."""
