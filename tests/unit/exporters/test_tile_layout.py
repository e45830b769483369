"""Paths, widths and bundles of C2SP tlog-tiles against foreign vectors."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporters.tile_layout import (
    ENTRIES,
    TILE_PATH,
    WIDTH,
    Tiler,
    decode_bundle,
    encode_bundle,
    tile_path,
    tiles_of,
)
from ledger.errors import ProofInvalid

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "tiles.json").read_bytes())


def large_entry(index):
    digest = hashlib.sha256(VECTORS["tag"].encode() + b"\x00" + index.to_bytes(8, "big")).digest()
    return (digest * 10)[: 40 + digest[0]]


def test_paths_are_those_of_the_vectors():
    for case in VECTORS["tile_paths"]:
        path = tile_path(case["level"], case["n"], case["width"])
        assert path == case["path"]
        assert TILE_PATH.fullmatch(path), path
    assert len(VECTORS["tile_paths"]) == 98


@pytest.mark.parametrize(
    "path",
    [
        *("tile/0/0", "tile/0/0000", "tile/64/000", "tile/00/000", "tile/-1/000", "tile/data/000"),
        *("tile/0/000.p/0", "tile/0/000.p/01", "tile/0/x1/000", "tile/0/000/", "tile/0/../000"),
        *("tile/entries/000.p/", "tile/entries", "checkpoint"),
    ],
)
def test_other_paths_are_of_no_tile(path):
    assert not TILE_PATH.fullmatch(path)


def test_layouts_are_those_of_the_vectors():
    for case in VECTORS["tile_layouts"]:
        told = {str(level): [full, width] for level, full, width in tiles_of(case["size"])}
        assert told == case["full_tiles_and_partial_width_by_level"], case["size"]
    assert len(VECTORS["tile_layouts"]) == 19


def spelled(text):
    """Bytes of the vectors; the last case says in words what it repeats."""
    return b"\x07" * 65_535 if text == "07 repeated 65535 times" else bytes.fromhex(text)


@pytest.mark.parametrize("case", VECTORS["entry_bundles"])
def test_bundles_are_those_of_the_vectors(case):
    entries = [spelled(entry) for entry in case["entries_hex"]]
    length, _, rest = case["bundle_hex"].rpartition(" followed by ")
    data = bytes.fromhex(length) + spelled(rest)
    assert encode_bundle(entries) == data
    assert decode_bundle(data) == entries


@pytest.mark.parametrize("case", VECTORS["must_reject"], ids=lambda case: case["why"])
def test_bundles_that_must_be_rejected_are(case):
    with pytest.raises(ProofInvalid):
        decode_bundle(bytes.fromhex(case["input_hex"]))


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=300), max_size=256))
def test_bundles_are_read_back(entries):
    assert decode_bundle(encode_bundle(entries)) == entries


@pytest.fixture(scope="module")
def large():
    """Every tile of the vectors' log of 70,000 entries."""
    tiler, tiles = Tiler(), {}
    for index in range(VECTORS["tile_size"]):
        tiles.update(tiler.add(large_entry(index)))
    tiles.update(tiler.rest())
    return tiles


def test_tiles_of_a_large_log_are_those_of_the_vectors(large):
    for path, digest in VECTORS["tile_sha256_for_large_size"].items():
        assert hashlib.sha256(large[path]).hexdigest() == digest, path


def test_a_large_log_has_exactly_the_tiles_of_its_size(large):
    wanted = set()
    for level, full, width in tiles_of(VECTORS["tile_size"]):
        levels = [level, ENTRIES] if level == 0 else [level]
        for one in levels:
            wanted |= {tile_path(one, number) for number in range(full)}
            wanted |= {tile_path(one, full, width)} if width else set()
    assert set(large) == wanted


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1200))
def test_tiles_come_once_each_and_full_ones_never_change(size):
    tiler, tiles = Tiler(), {}
    for index in range(size):
        for path, data in tiler.add(b"%d" % index):
            assert path not in tiles
            tiles[path] = data
    partial = dict(tiler.rest())
    assert all(".p/" not in path for path in tiles)
    assert all(".p/" in path for path in partial)
    assert dict(tiler.rest()) == partial
    full, width = divmod(size, WIDTH)
    assert len([path for path in tiles if path.startswith("tile/entries/")]) == full
    assert [path for path in partial if path.startswith("tile/entries/")] == (
        [tile_path(ENTRIES, full, width)] if width else []
    )
