from __future__ import annotations

from collections.abc import Sequence
from threading import Barrier, Thread

import pytest

from services.codec.pieces import PieceCache


class CountingEncoder:
    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        self.calls.append(list(texts))
        return [[ord(char) for char in text] for text in texts]


def test_second_time_is_a_hit() -> None:
    encode = CountingEncoder()
    cache = PieceCache(encode, 10_000)
    assert cache.ids(["abc"]) == cache.ids(["abc"]) == {"abc": [97, 98, 99]}
    assert encode.calls == [["abc"]]
    assert (cache.hits, cache.misses) == (1, 1)


def test_unknown_pieces_are_encoded_together_and_each_once() -> None:
    encode = CountingEncoder()
    cache = PieceCache(encode, 10_000)
    cache.ids(["b"])
    known = cache.ids(["a", "b", "c", "a", "b"])
    assert known == {"a": [97], "b": [98], "c": [99]}
    assert encode.calls == [["b"], ["a", "c"]]
    assert (cache.hits, cache.misses) == (1, 3)


def test_least_recently_used_leaves_first_and_the_limit_holds() -> None:
    encode = CountingEncoder()
    cache = PieceCache(encode, 1_200)
    for text in ("a", "b", "a", "c", "d", "e"):
        cache.ids([text])
        assert cache.used_bytes <= 1_200
    encode.calls.clear()
    cache.ids(["e"])
    cache.ids(["b"])
    assert encode.calls == [["b"]]


@pytest.mark.parametrize("limit", [0, 1_000])
def test_piece_beyond_the_limit_is_not_kept(limit: int) -> None:
    cache = PieceCache(CountingEncoder(), limit)
    assert len(cache.ids(["x" * 5_000])["x" * 5_000]) == 5_000
    assert cache.used_bytes == 0


def test_threads_share_one_entry() -> None:
    start = Barrier(4)

    def encode(texts: Sequence[str]) -> list[list[int]]:
        start.wait()
        return [[len(text)] for text in texts]

    cache = PieceCache(encode, 10_000)
    threads = [Thread(target=cache.ids, args=(["same"],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = cache.used_bytes
    assert cache.ids(["same"])["same"] == [4]
    assert cache.used_bytes == before < 1_000


def test_nobody_finds_what_another_has_sent() -> None:
    encode = CountingEncoder()
    cache = PieceCache(encode, 10_000)
    for owner in ("a", "b", "a", "b"):
        assert cache.ids(["abc"], owner) == {"abc": [97, 98, 99]}
    assert encode.calls == [["abc"], ["abc"]]
