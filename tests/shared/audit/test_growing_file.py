"""Lines are added whole, whoever else adds, moves or fills the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from services.shared.audit.growing_file import GrowingFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "audit.jsonl"


@pytest.fixture
def file(path: Path) -> Iterator[GrowingFile]:
    with closing(GrowingFile(path)) as file:
        yield file


def test_lines_follow_each_other_in_a_file_of_its_owner(file: GrowingFile, path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        file.add(line)
    file.sync()
    assert path.read_bytes() == b"one\ntwo\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_moved_is_left_and_one_that_took_its_place_goes_on(
    file: GrowingFile, path: Path
) -> None:
    file.add(b"one\n")
    moved = path.rename(path.with_name("audit.1"))
    file.add(b"two\n")
    path.unlink()
    path.write_bytes(b"theirs\n")
    file.add(b"three\n")
    assert moved.read_bytes() == b"one\n"
    assert path.read_bytes() == b"theirs\nthree\n"


def test_a_line_that_somebody_left_unfinished_is_ended(file: GrowingFile, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'whole\n{"ts": "20')
    file.add(b"one\n")
    file.add(b"two\n")
    assert path.read_bytes() == b'whole\n{"ts": "20\none\ntwo\n'


def test_lines_of_many_writers_are_whole(path: Path) -> None:
    def write(number: int) -> None:
        for _ in range(100):
            with closing(GrowingFile(path)) as file:
                file.add(f"{number}".encode() * 10_000 + b"\n")

    writers = [Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = path.read_text().splitlines()
    assert sorted(lines) == sorted(f"{number}" * 10_000 for number in range(4) for _ in range(100))


def test_what_was_written_in_part_is_an_error_and_its_line_ends(
    file: GrowingFile, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with pytest.raises(OSError, match="No space left"):
        file.add(b"unlucky\n")
    monkeypatch.setattr(os, "write", write)
    file.add(b"lucky\n")
    assert path.read_bytes() == b"unl\nlucky\n"
