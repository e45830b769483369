"""The layout of AgentCompass 1.0.1: directories that its own store, summary and viewer read."""
