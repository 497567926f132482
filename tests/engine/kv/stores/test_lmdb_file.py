"""The shared file is looked through when it is opened, and begun anew when damaged."""

from __future__ import annotations

import logging
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from services.engine.kv.store import StoreFailed
from services.engine.kv.stores.lmdb_file import READERS_BYTES, LmdbFile

MAX_BYTES = 2**22


def filled(folder: Path) -> bytes:
    """A file with records; gives what it holds."""
    file = LmdbFile(folder, MAX_BYTES)
    with file.using() as opened, opened.env.begin(write=True) as txn:
        for number in range(40):
            key = number.to_bytes(24, "big")
            txn.put(key, random.Random(number).randbytes(20_000), db=opened.records)  # noqa: S311
            opened.order.note(txn, key, number)
    file.close()
    return file.data.read_bytes()


def entries(folder: Path, max_bytes: int = MAX_BYTES) -> int:
    """Records of the file as it is opened anew."""
    file = LmdbFile(folder, max_bytes)
    try:
        with file.using() as opened, opened.env.begin() as txn:
            return txn.stat(opened.records)["entries"]
    finally:
        file.close()


def test_a_file_is_for_its_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "kv"
    filled(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_what_is_mapped_for_writing_has_its_room_on_the_disk(tmp_path: Path) -> None:
    filled(tmp_path)
    mapped = (tmp_path / "lock.mdb").stat()
    assert mapped.st_blocks * 512 >= mapped.st_size == READERS_BYTES


def test_a_whole_file_is_opened_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path)
    assert entries(tmp_path) == 40
    assert not caplog.records


@pytest.mark.parametrize("kind", ["zeros", "text", "half", "cut", "pickle", "short"])
def test_a_damaged_file_is_begun_anew(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    held = filled(tmp_path)
    damaged = {
        "zeros": bytes(len(held)),
        "text": b"no database\n" * 9999,
        "half": held[: len(held) // 2],
        "cut": held[: 3 * 4096],
        "pickle": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04exit\x85R.",
        "short": b"x",
    }[kind]
    (tmp_path / "data.mdb").write_bytes(damaged)
    assert entries(tmp_path) == 0
    assert [line.levelno for line in caplog.records] == [logging.WARNING]
    assert entries(tmp_path) == 0
    assert len(caplog.records) == 1


def test_no_damage_ends_the_process(tmp_path: Path) -> None:
    """Pages of the tree and of what is free are spoiled at random; the file is used or not."""
    held = filled(tmp_path)
    child = """if True:
        import random, sys
        from pathlib import Path
        from tests.engine.kv.stores.test_lmdb_file import MAX_BYTES, entries
        folder = Path(sys.argv[1])
        held = (folder / "held").read_bytes()
        seen = set()
        for seed in range(60):
            dice = random.Random(seed)
            spoiled = bytearray(held)
            for _ in range(dice.randrange(1, 6)):
                page = dice.randrange(12) if seed % 2 else dice.randrange(len(held) // 4096)
                spoiled[page * 4096 + dice.randrange(96)] ^= 1 << dice.randrange(8)
            (folder / "data.mdb").write_bytes(spoiled)
            seen.add(entries(folder))
        assert seen == {0, 40}, seen
    """
    (tmp_path / "held").write_bytes(held)
    root = Path(__file__).parents[4]
    subprocess.run(  # noqa: S603 our own program
        [sys.executable, "-c", child, str(tmp_path)],
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root}:{root / 'stubs'}"},
    )


def test_a_file_larger_than_it_may_be_now_is_begun_anew(tmp_path: Path) -> None:
    filled(tmp_path)
    assert entries(tmp_path, max_bytes=2**19) == 0
    assert (tmp_path / "data.mdb").stat().st_size <= 2**19


def test_who_has_it_open_notices_that_it_was_begun_anew(tmp_path: Path) -> None:
    filled(tmp_path)
    first = LmdbFile(tmp_path, MAX_BYTES)
    before = first.current()
    (tmp_path / "data.mdb").unlink()
    (tmp_path / "lock.mdb").unlink()
    assert entries(tmp_path) == 0
    with first.using() as after:
        assert after.inode != before.inode
    first.close()


def test_a_file_is_replaced_once_and_not_again_at_once(tmp_path: Path) -> None:
    filled(tmp_path)
    file = LmdbFile(tmp_path, MAX_BYTES)
    damaged = file.current()
    file.replace(damaged, "for a test")
    fresh = file.current()
    file.replace(damaged, "told late")
    assert file.current() is fresh
    with pytest.raises(StoreFailed, match="damaged again"):
        file.replace(fresh, "for a test")
    file.close()
