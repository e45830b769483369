"""What the scenarios with LiteLLM and the tests that look at them agree on."""

KEY = "key-of-no-known-shape-123"
HEADER = "header-of-no-known-shape-456"
METADATA = "metadata-of-no-known-shape-789"
HISTORY = 12
SIXTEEN = [f"loop{number}" for number in range(16)]
THREADS = [f"thread{number}" for number in range(6)]
