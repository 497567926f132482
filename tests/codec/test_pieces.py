from __future__ import annotations

from threading import Barrier, Thread

from services.codec.pieces import PieceCache


class CountingEncoder:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, text: str) -> list[int]:
        self.calls.append(text)
        return [ord(char) for char in text]


def test_second_time_is_a_hit() -> None:
    encode = CountingEncoder()
    cache = PieceCache(encode, 10_000)
    assert cache.ids("abc").tolist() == cache.ids("abc").tolist() == [97, 98, 99]
    assert encode.calls == ["abc"]
    assert (cache.hits, cache.misses) == (1, 1)


def test_least_recently_used_leaves_first_and_the_limit_holds() -> None:
    encode = CountingEncoder()
    cache = PieceCache(encode, 1_200)
    for text in ("a", "b", "a", "c", "d", "e"):
        cache.ids(text)
        assert cache.used_bytes <= 1_200
    encode.calls.clear()
    cache.ids("e")
    cache.ids("b")
    assert encode.calls == ["b"]


def test_piece_beyond_the_limit_is_not_kept() -> None:
    cache = PieceCache(CountingEncoder(), 1_000)
    cache.ids("x" * 5_000)
    assert cache.used_bytes == 0


def test_threads_share_one_entry() -> None:
    start = Barrier(4)

    def encode(text: str) -> list[int]:
        start.wait()
        return [len(text)]

    cache = PieceCache(encode, 10_000)
    threads = [Thread(target=cache.ids, args=("same",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = cache.used_bytes
    assert cache.ids("same").tolist() == [4]
    assert cache.used_bytes == before < 1_000
