"""Cutting large values, putting them back, and finding what they refer to."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canonical import (
    BINARY_PIECE,
    MAX_DEPTH,
    PIECE,
    Binary,
    SpilledBinary,
    SpilledList,
    SpilledText,
    cutting,
    decode,
    encode,
    is_canonical,
    pieces,
    reachable,
    resolve,
)
from ledger.canonical.cutting import dump
from ledger.canonical.encoding import _encode_exact
from ledger.errors import LedgerDamaged, ValueRefused
from tests.canonical_reference import Reference, large_values, plain_values, typed


class Store(dict):
    """Pieces by digest; refuses a digest that is not of the piece, and a piece that is short."""

    def __call__(self, digest, piece):
        assert digest == hashlib.sha256(piece).digest()
        assert len(piece) >= PIECE
        self[digest] = piece


def never(digest, piece):
    raise AssertionError("cut again")


@given(large_values())
@settings(max_examples=120, deadline=None)
def test_large_values_are_cut_as_described_and_come_back(value):
    store, expected = Store(), {}
    data = encode(value, store)
    assert data == Reference(expected).encode(value)
    assert store == expected
    assert is_canonical(data)
    cut = decode(data)
    assert typed(resolve(cut, store.__getitem__)) == typed(value)
    assert encode(cut, never) == data
    assert set(reachable(cut, store.__getitem__)) == store.keys()


@given(plain_values, st.integers(1, 3), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_both_roads_cut_in_the_same_places(value, levels, times):
    for _ in range(levels):
        value = {"a": [{"v": value, "t": "é" * 300, "l": [["x" * 200]]} for _ in range(times)]}
        times = min(times, 4)
    fast, exact, expected = Store(), Store(), {}
    data = encode(value, fast)
    assert data == _encode_exact(value, exact) == Reference(expected).encode(value)
    assert fast == exact == expected


@pytest.mark.parametrize(
    ("length", "cut", "rest"),
    [(4095, 0, 4095), (4096, 0, 4096), (4097, 1, 1), (8191, 1, 4095), (8192, 2, 0), (8193, 2, 1)],
)
def test_texts_of_more_than_4096_characters_are_cut(length, cut, rest):
    for char in ("x", "é", "😀", "\ud800"):
        store = Store()
        value = decode(encode({"t": char * length}, store))["t"]
        if not cut:
            assert value == char * length
            continue
        piece = (char * PIECE).encode("utf-8", "surrogatepass")
        assert value == SpilledText((hashlib.sha256(piece).digest(),) * cut, char * rest)
        assert list(store.values()) == [piece]
        assert resolve(value, store.__getitem__) == char * length


@pytest.mark.parametrize(
    ("size", "cut"), [(0, 0), (65_536, 0), (65_537, 1), (131_072, 2), (131_073, 2)]
)
def test_binaries_of_more_than_64_kib_are_cut(size, cut):
    store = Store()
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    value = decode(encode(Binary(data), store))
    assert len(list(pieces(value))) == cut
    assert isinstance(value, SpilledBinary if cut else Binary)
    assert all(len(piece) == BINARY_PIECE for piece in store.values())
    assert resolve(value, store.__getitem__) == Binary(data)


def test_lists_that_hold_an_object_are_cut_into_the_shortest_runs_of_4096_bytes():
    element = {"k": "x" * 1000}
    length = len(encode(element))
    store = Store()
    value = decode(encode({"l": [element] * 9, "n": [["y" * 1000]] * 9}, store))
    assert len(b"[") + 4 * (length + 1) < PIECE <= len(b"[") + 5 * (length + 1)
    assert value["l"].pieces == (hashlib.sha256(encode([element] * 5)).digest(),)
    assert value["l"].rest == (element,) * 4
    assert value["n"] == [["y" * 1000]] * 9


def test_a_run_ends_as_soon_as_its_array_has_4096_bytes():
    exact = {"k": "x" * (PIECE - len(b'[{"k":""}]'))}
    for shorter, cut in ((0, 1), (1, 0)):
        element = {"k": exact["k"][shorter:]}
        value = decode(encode([element], Store()))
        assert len(list(pieces(value))) == cut


def test_lists_without_an_object_stand_whole():
    store = Store()
    value = {"numbers": list(range(5000)), "logprobs": [[0.5] * 100] * 100}
    assert decode(encode(value, store)) == value
    assert not store


def test_bodies_below_a_piece_stand_whole():
    store = Store()
    assert encode([{"k": "x" * 4000}], store) == encode([{"k": "x" * 4000}])
    assert not store


def test_a_conversation_that_grows_keeps_its_pieces():
    messages = [{"role": "user", "content": f"{turn} " + "word " * 100} for turn in range(200)]
    store = Store()
    earlier = set()
    for turns in range(10, 201, 10):
        now = set(pieces(decode(encode({"messages": messages[:turns]}, store))))
        assert earlier <= now
        earlier = now
    # A piece has brackets of its own where the whole list has a comma.
    assert sum(map(len, store.values())) <= len(encode(messages)) + len(store)


def test_a_text_that_grows_keeps_its_pieces():
    text = "".join(map(str, range(20_000)))
    store = Store()
    for end in range(0, len(text), 1000):
        encode(text[:end], store)
    assert len(store) == len(text) // PIECE


def test_inner_values_are_cut_before_the_lists_that_hold_them():
    order = []
    inner = {"t": "x" * 5000, "l": [{"m": "y" * 3000}, {"m": "z" * 3000}]}
    value = [inner] * 30
    encode(value, lambda digest, piece: order.append(digest))
    cut = decode(encode(value, Store()))
    last = cut.pieces[-1]
    assert order.index(last) > max(order.index(digest) for digest in pieces(cut.rest[0]))


def test_nothing_is_cut_without_a_place_to_put_it():
    value = {"t": "x" * 10_000, "l": [{"k": "y" * 5000}], "b": Binary(bytes(70_000))}
    assert list(pieces(decode(encode(value)))) == []
    assert typed(decode(encode(value))) == typed(value)


def test_a_value_nested_200_deep_is_cut_at_every_level_and_comes_back():
    value = "end"
    for level in range(MAX_DEPTH // 2):
        value = [{"front": f"{level} " + "x" * 4200, "more": value}]
    for odd in (1, float("nan")):
        store, expected = Store(), {}
        value[0]["odd"] = odd
        data = encode(value, store)
        assert data == Reference(expected).encode(value)
        assert store == expected
        assert typed(resolve(decode(data), store.__getitem__)) == typed(value)
    with pytest.raises(ValueRefused, match="nested deeper"):
        encode([value], Store())


def test_an_answer_of_100_mb_is_cut_and_comes_back():
    answer = "0123456789" * 10_000_000
    lengths = []
    store = {}

    def spill(digest, piece):
        lengths.append(len(piece))
        store[digest] = piece

    data = encode({"final_answer": answer}, spill)
    assert set(lengths) == {PIECE}
    assert sum(lengths) + decode(data)["final_answer"].length % PIECE == len(answer)
    assert resolve(decode(data), store.__getitem__)["final_answer"] == answer


def bomb(levels, width=20):
    """A few small pieces that stand for width to the power of levels elements."""
    store = {}
    value = [{"pad": "x" * PIECE}]
    for _ in range(levels):
        piece = encode(value)
        digest = hashlib.sha256(piece).digest()
        store[digest] = piece
        value = [{"pad": "x" * PIECE}, *[SpilledList((digest,), ())] * width]
    return value, store


def test_references_that_stand_for_too_much_are_stopped_by_the_budget():
    value, store = bomb(levels=9)
    fetched = []

    def fetch(digest):
        fetched.append(len(store[digest]))
        return store[digest]

    with pytest.raises(LedgerDamaged, match="more than 1000000 bytes"):
        resolve(value, fetch, budget=1_000_000)
    assert sum(fetched[:-1]) <= 1_000_000
    assert len(list(reachable(value, store.__getitem__))) == 9


def test_a_budget_of_exactly_the_bytes_is_enough():
    store = Store()
    value = decode(encode({"t": "x" * 9000, "u": "x" * 5000}, store))
    assert resolve(value, store.__getitem__, budget=3 * PIECE)["t"] == "x" * 9000
    with pytest.raises(LedgerDamaged):
        resolve(value, store.__getitem__, budget=3 * PIECE - 1)


def test_nesting_through_references_ends_at_200():
    inner, store = [{"pad": "x" * PIECE}], {}
    for _ in range(150):
        inner = [inner]
    for flat in (True, False):
        piece = encode([{"pad": "x" * PIECE}, inner] if not flat else [{"pad": "x" * PIECE}])
        digest = hashlib.sha256(piece).digest()
        store[digest] = piece
        for levels, good in ((40, True), (199, flat), (200, False)):
            value = SpilledList((digest,), ())
            for _ in range(levels - 1):
                value = [value]
            if good:
                assert encode(resolve(value, store.__getitem__))
            else:
                with pytest.raises(LedgerDamaged, match="nested deeper"):
                    resolve(value, store.__getitem__)


DIGEST = bytes(32)


@pytest.mark.parametrize(
    ("value", "piece", "why"),
    [
        (SpilledText((DIGEST,), ""), b"x" * 4095, "4095 characters"),
        (SpilledText((DIGEST,), ""), b"x" * 4097, "4097 characters"),
        (SpilledText((DIGEST,), ""), b"\xff" * 4096, "not UTF-8"),
        (SpilledBinary((DIGEST,), b""), bytes(65_535), "65535 bytes"),
        (SpilledList((DIGEST,), ()), b"[1]", "at least 4096 bytes"),
        (SpilledList((DIGEST,), ()), b'{"a":"%s"}' % (b"x" * 4096), "not an array"),
        (SpilledList((DIGEST,), ()), b"x" * 5000, "not JSON"),
    ],
)
def test_pieces_that_are_not_what_their_reference_says_are_damage(value, piece, why):
    with pytest.raises(LedgerDamaged, match=why):
        resolve([value], lambda digest: piece)
    if isinstance(value, SpilledList):
        with pytest.raises(LedgerDamaged, match=why):
            list(reachable([value], lambda digest: piece))


def test_pieces_are_named_in_order_and_with_repeats():
    one, two, three = (bytes([n]) * 32 for n in (1, 2, 3))
    value = {
        "a": SpilledText((one, two), ""),
        "b": [SpilledBinary((two,), b""), (SpilledList((three,), (SpilledText((one,), ""), 5)),)],
    }
    assert list(pieces(value)) == [one, two, two, three, one]
    assert list(pieces({"a": [1, "x", None, Binary(b"")]})) == []


def test_only_list_pieces_are_fetched_to_find_what_is_needed():
    store = Store()
    value = [{"t": "x" * 5000, "n": number, "p": "y" * 4000} for number in range(3)]
    cut = decode(encode({"v": value, "t": "z" * 5000}, store))
    fetched = []

    def fetch(digest):
        fetched.append(digest)
        return store[digest]

    needed = list(reachable(cut, fetch))
    assert len(needed) == len(set(needed)) == len(store)
    assert all(store[digest].startswith(b"[") for digest in fetched)


def test_resolving_leaves_whole_values_as_they_are():
    value = {"a": [1, 1.0, True, None, "x", Binary(b"x")], "b": (1, {})}
    assert typed(resolve(value, lambda digest: pytest.fail("nothing to fetch"))) == typed(value)


def test_a_value_that_is_refused_after_pieces_were_cut_is_still_refused():
    handed = []
    value = {"a": "x" * 5000, "b": float("nan"), "c": {1}}
    with pytest.raises(ValueRefused) as refused:
        encode(value, lambda digest, piece: handed.append(piece))
    assert refused.value.path == "$.c"


def test_work_inside_nested_large_lists_grows_with_the_value_not_with_its_depth(monkeypatch):
    def nested(levels):
        value = []
        for _ in range(levels):
            value = [{"a": "x" * 4000}, {"more": value}]
        return value

    def bytes_written(value):
        lengths = []

        def counting_dump(tree):
            data = dump(tree)
            lengths.append(len(data))
            return data

        monkeypatch.setattr(cutting, "dump", counting_dump)
        encode(value, Store())
        return sum(lengths)

    few, many = bytes_written(nested(9)), bytes_written(nested(90))
    assert many / few == pytest.approx(10, rel=0.2)
