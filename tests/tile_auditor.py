"""An auditor of C2SP tlog-tiles directories that shares nothing with what writes them.

Written from the specifications alone; the only package it uses is `cryptography`.
"""

import base64
import hashlib
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class Wrong(Exception):
    """What is wrong with a directory."""


def audit(directory: Path, name: str, public: bytes) -> tuple[int, bytes]:
    """Return (size, root) of the log in `directory` if all of it holds, signed by the key."""
    size, root = checkpoint(directory, name, public)
    entries = all_entries(directory, size)
    leaves = [hashlib.sha256(b"\x00" + entry).digest() for entry in entries]
    if tree(leaves) != root:
        raise Wrong("the entries do not give the root")
    if from_tiles(directory, size) != root:
        raise Wrong("the tiles do not give the root")
    level, below = 0, leaves
    while below:
        compare_level(directory, level, below)
        below = [tree(below[at : at + 256]) for at in range(0, len(below) - 255, 256)]
        level += 1
    for entry in entries:
        body = directory / "body" / entry[64:96].hex()
        if body.exists() and hashlib.sha256(body.read_bytes()).digest() != entry[64:96]:
            raise Wrong(f"{body.name} is another body")
    for blob in (directory / "blob").glob("*"):
        if hashlib.sha256(blob.read_bytes()).hexdigest() != blob.name:
            raise Wrong(f"{blob.name} is another blob")
    return size, root


def checkpoint(directory: Path, name: str, public: bytes) -> tuple[int, bytes]:
    text, signatures = (directory / "checkpoint").read_bytes().split(b"\n\n")
    text += b"\n"
    key_id = hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]
    for line in signatures.decode().split("\n"):
        if line.startswith(f"— {name} "):
            raw = base64.b64decode(line.rpartition(" ")[2], validate=True)
            if raw[:4] == key_id:
                Ed25519PublicKey.from_public_bytes(public).verify(raw[4:], text)
                _, size, root, _ = text.split(b"\n")
                return int(size), base64.b64decode(root, validate=True)
    raise Wrong("the key did not sign")


def tree(leaves: list[bytes]) -> bytes:
    """RFC 6962 2.1, word for word."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + tree(leaves[:k]) + tree(leaves[k:])).digest()


def numbered(number: int) -> str:
    text = f"{number:03}"
    text = text.zfill(-(-len(text) // 3) * 3)
    groups = [text[at : at + 3] for at in range(0, len(text), 3)]
    return "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])


def tile(directory: Path, level: object, number: int, width: int) -> bytes:
    partial = "" if width == 256 else f".p/{width}"
    return (directory / "tile" / str(level) / f"{numbered(number)}{partial}").read_bytes()


def all_entries(directory: Path, size: int) -> list[bytes]:
    entries: list[bytes] = []
    for number in range(-(-size // 256)):
        width = min(256, size - 256 * number)
        data, found = tile(directory, "entries", number, width), []
        while data:
            length = int.from_bytes(data[:2], "big")
            found.append(data[2 : 2 + length])
            data = data[2 + length :]
        if len(found) != width:
            raise Wrong(f"bundle {number} has {len(found)} entries")
        entries += found
    return entries


def compare_level(directory: Path, level: int, hashes: list[bytes]) -> None:
    for number in range(-(-len(hashes) // 256)):
        wanted = hashes[256 * number : 256 * number + 256]
        if tile(directory, level, number, len(wanted)) != b"".join(wanted):
            raise Wrong(f"tile {number} of level {level} holds other hashes")


def from_tiles(directory: Path, size: int) -> bytes:
    """The root from the right edge of the hash tiles alone."""
    ranges, level, count = [], 0, size
    while count:
        full, width = divmod(count, 256)
        if width:
            data = tile(directory, level, full, width)
            ranges.insert(0, [data[at : at + 32] for at in range(0, len(data), 32)])
        level, count = level + 1, full
    nodes: list[bytes] = []
    for hashes in ranges:
        # Complete subtrees from left to right: each level's are smaller than those above.
        rest = hashes
        while rest:
            k = 1
            while 2 * k <= len(rest):
                k *= 2
            nodes.append(tree(rest[:k]))
            rest = rest[k:]
    root = nodes[-1]
    for left in reversed(nodes[:-1]):
        root = hashlib.sha256(b"\x01" + left + root).digest()
    return root
