"""A witness: it signs a log's checkpoints only as long as each extends the one before (C2SP).

`judge` decides, `store` remembers, `server` speaks HTTP, `client` asks other witnesses.
"""
