"""Notes, proofs, keys, policies, envelopes, messages: files and frames that strangers write."""

from tests.fuzz.target import Target

TEXTS: tuple[Target, ...] = ()
