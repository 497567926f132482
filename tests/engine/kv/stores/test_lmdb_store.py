"""A store in one file, which processes share, fill, damage and die in."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.engine.kv.record import BadRecord, opened
from services.engine.kv.store import StoreFailed
from services.engine.kv.stores import lmdb_records, lmdb_store
from services.engine.kv.stores.lmdb_store import LmdbStore
from tests.engine.kv.stores.bed import (
    BLOCK_BYTES,
    LAYOUT,
    LAYOUT_DIGEST,
    address_of,
    block_of,
    failure,
    has,
    put,
    record_of,
    works,
)
from tests.redis_server import wait_for

ROOT = Path(__file__).parents[4]
MAX_BYTES = 4 * 2**20
"""Room for some 90 records."""


@contextmanager
def store_in(
    path: Path, *, layout: str = LAYOUT, max_bytes: int = MAX_BYTES, ttl_s: float = 600
) -> Iterator[LmdbStore]:
    store = LmdbStore(path, max_bytes, layout, ttl_s)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def user_of(path: Path, does: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has put record 0."""
    with subprocess.Popen(  # noqa: S603 our own program
        [sys.executable, "-m", "tests.engine.kv.stores.file_user", str(path), str(MAX_BYTES), does],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def used_bytes(store: LmdbStore) -> int:
    with store._file.using() as file, file.env.begin() as txn:
        return lmdb_records.used_bytes(file, txn)


def test_a_record_comes_back_as_it_was_put(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        assert not has(store, 1)
        for kind in (bytes, bytearray, memoryview):
            store.put(address_of(1), kind(record_of(1)))
            assert has(store, 1)
        put(store, 3)
        assert store.present([address_of(number) for number in (3, 2, 1)]) == [True, False, True]


def test_records_outlive_the_process(tmp_path: Path) -> None:
    for _ in range(3):
        with store_in(tmp_path) as store:
            assert works(store, 1)
    with store_in(tmp_path) as store:
        assert has(store, 1)


def test_two_processes_share_what_each_has_put(tmp_path: Path) -> None:
    with store_in(tmp_path) as store, user_of(tmp_path, "serve") as other:
        assert has(store, 0)
        put(store, 1)
        assert other.stdin is not None
        assert other.stdout is not None
        for number, known in ((1, "True\n"), (2, "False\n")):
            other.stdin.write(f"{number}\n")
            other.stdin.flush()
            assert other.stdout.readline() == known


def test_layouts_are_apart_and_flushed_apart(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        put(store, 1, 2)
    with store_in(tmp_path, layout="other") as other:
        assert not has(other, 1)
        put(other, 1)
        assert other.flush() == 1
        assert other.flush() == 0
    with store_in(tmp_path) as store:
        assert has(store, 1)
        assert has(store, 2)


def test_what_was_used_longest_ago_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [10**12]
    monkeypatch.setattr(lmdb_store, "_now_ms", lambda: clock[0])
    with store_in(tmp_path, ttl_s=10**6) as store:
        for number in range(200):
            clock[0] += 70_000
            put(store, number)
            assert has(store, 0)
            wait_for(lambda: not store._touches._waiting)
        kept = [number for number in range(200) if has(store, number)]
        # The first is read all the time, the others go in the order of their writing.
        assert kept == [0, *range(200 - len(kept) + 1, 200)]
        assert 60 < len(kept) < 100


def test_the_file_is_never_larger_than_it_may_be(tmp_path: Path) -> None:
    dice = random.Random(2)  # noqa: S311 the same sizes each time
    sizes = [dice.randrange(64, BLOCK_BYTES, 64) for _ in range(10)]
    for turn in range(4):
        with store_in(tmp_path, layout=f"layout {turn % 2}") as store:
            for number in range(300):
                store.put(address_of(number), record_of(number, dice.choice(sizes)))
                assert (tmp_path / "data.mdb").stat().st_size <= MAX_BYTES
            assert used_bytes(store) > MAX_BYTES / 2


def test_most_reads_write_nothing(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        put(store, 1)
        before = store._file.current().env.info()["last_txnid"]
        assert all(has(store, 1) for _ in range(100))
        assert store._file.current().env.info()["last_txnid"] == before


def test_a_record_has_its_time_after_its_last_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [10**12]
    monkeypatch.setattr(lmdb_store, "_now_ms", lambda: clock[0])
    with store_in(tmp_path, ttl_s=100) as store:
        put(store, 1, 2)
        clock[0] += 60_000
        assert has(store, 1)
        wait_for(lambda: not store._touches._waiting)
        clock[0] += 60_000
        assert has(store, 1)
        assert not has(store, 2)
        assert store.present([address_of(1), address_of(2)]) == [True, False]
        put(store, 3)
        file = store._file.current()
        with file.env.begin() as txn:
            assert txn.stat(file.records)["entries"] == 2  # one had its time, and is gone


def test_a_clock_that_goes_back_keeps_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [10**12]
    monkeypatch.setattr(lmdb_store, "_now_ms", lambda: clock[0])
    with store_in(tmp_path) as store:
        put(store, 1)
        clock[0] -= 10**9
        assert has(store, 1)
        wait_for(lambda: not store._touches._waiting)
        file = store._file.current()
        with file.env.begin() as txn:
            assert file.order.oldest(txn) == (clock[0], LAYOUT_DIGEST + address_of(1))


def test_a_file_too_small_for_its_records_says_so(tmp_path: Path) -> None:
    with store_in(tmp_path, max_bytes=2**20) as store:
        assert "cache.embedded.max_bytes must be >= " in str(
            failure(lambda: store.put(address_of(1), bytes(2**19)))
        )


def test_threads_read_and_write_at_once(tmp_path: Path) -> None:
    with store_in(tmp_path) as store, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda number: works(store, number % 40), range(400)))


def test_a_reader_that_was_killed_keeps_no_room(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        with user_of(tmp_path, "read") as reader:
            reader.kill()
        for number in range(300):
            put(store, number)
        assert has(store, 299)


def test_a_reader_that_hangs_costs_room_and_no_error_of_reads(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        with user_of(tmp_path, "read") as reader:
            reader.send_signal(signal.SIGSTOP)
            failures = [failure(put, store, number) for number in range(1, 300)]
            told = {str(failed) for failed in failures if failed}
            assert all("or a reader that hangs keeps it" in text for text in told)
            assert any(has(store, number) for number in range(300))
        wait_for(lambda: works(store, 300))


@pytest.mark.parametrize("after", range(5))
def test_a_writer_that_is_killed_leaves_whole_records(tmp_path: Path, after: int) -> None:
    with store_in(tmp_path) as store:
        with user_of(tmp_path, "write") as writer:
            wait_for(lambda: has(store, 10 * after + 1))
            writer.kill()
        assert sum(has(store, number) for number in range(50)) > 10 * after
        assert works(store, 1)
    with store_in(tmp_path) as store:
        assert has(store, 1)


FULL_DISK = """
import resource, sys
from pathlib import Path
from services.engine.kv.stores.lmdb_store import LmdbStore
from tests.engine.kv.stores.bed import LAYOUT, failure, has, put

resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
store = LmdbStore(Path(sys.argv[1]), 2**26, LAYOUT, ttl_s=600)
failures = [failure(put, store, number) for number in range(100)]
told = [str(failed) for failed in failures if failed]
assert len(told) < 10, told
assert all("the disk is full" in text for text in told), told
assert failures[-1] is None
assert sum(has(store, number) for number in range(100)) > 8
assert store._file.size() <= 2**20
"""


def test_a_disk_that_takes_no_more_is_told_and_the_file_goes_on(tmp_path: Path) -> None:
    """What comes takes the place of what was used longest ago, in the file as large as it is."""
    subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"},
        check=True,
    )


def test_spoiled_bytes_of_a_record_are_noticed(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        put(store, *range(20))
    data = tmp_path / "data.mdb"
    held = bytearray(data.read_bytes())
    at = held.find(block_of(7)[:64])
    held[at + 1000] ^= 1
    data.write_bytes(held)
    with store_in(tmp_path) as store:
        record = store.get(address_of(7))
        assert record is not None
        with pytest.raises(BadRecord):
            opened(record, address_of(7), LAYOUT_DIGEST)
        assert has(store, 8)


def test_a_page_that_is_damaged_in_mid_run_begins_the_file_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with store_in(tmp_path) as store:
        put(store, *range(20))
        file = store._file.current()
        size = file.env.stat()["psize"]
        with (tmp_path / "data.mdb").open("r+b") as data:
            for page in range(2, (tmp_path / "data.mdb").stat().st_size // size):
                data.seek(page * size + 10)
                data.write(b"\0\0")  # no kind of page at all
        assert "was damaged" in str(failure(lambda: [has(store, number) for number in range(20)]))
        assert works(store, 1)
        assert not has(store, 2)
    assert sum("starts empty" in line.message for line in caplog.records) == 1


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "kv"
    with store_in(folder) as store:
        put(store, 1)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        assert not has(store, 1)
        assert works(store, 2)


def test_a_folder_that_nobody_may_make_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        store_in(tmp_path / "file" / "kv") as store,
        pytest.raises(StoreFailed, match="cannot be used"),
    ):
        put(store, 1)
