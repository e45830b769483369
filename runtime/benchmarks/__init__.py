"""The benchmarks that ship with acl."""
