"""The harnesses that ship with acl."""
