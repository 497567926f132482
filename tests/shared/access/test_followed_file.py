"""A file is followed, and what it said before counts while it is broken."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from services.shared.access import followed_file
from services.shared.access.followed_file import FollowedFile
from tests.waiting import until


def number_in(path: Path) -> int:
    return int(path.read_text())


def followed(path: Path) -> FollowedFile[int]:
    return FollowedFile(path, number_in, (ValueError, OSError))


def test_a_file_that_cannot_be_used_is_an_error_at_first(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        followed(tmp_path / "n")


def test_a_change_counts_and_a_broken_file_leaves_what_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "n"
    path.write_text("1")
    file = followed(path)
    path.write_text("22")
    file.look()
    assert file.value == 22
    path.write_text("broken")
    file.look()
    file.look()
    assert file.value == 22
    path.unlink()
    file.look()
    assert file.value == 22
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    assert all("what it said before counts on" in text for text in caplog.messages)
    path.write_text("3")
    file.look()
    assert file.value == 3


def test_a_file_that_takes_the_place_of_another_counts(tmp_path: Path) -> None:
    path, other = tmp_path / "n", tmp_path / "m"
    path.write_text("1")
    file = followed(path)
    other.write_text("2")
    other.replace(path)
    file.look()
    assert file.value == 2


async def test_it_is_looked_at_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_file, "INTERVAL_S", 0.001)
    path = tmp_path / "n"
    path.write_text("1")
    file = followed(path)
    following = asyncio.ensure_future(file.follow())
    for number in (2, 3):
        path.write_text(str(number))
        await until(lambda: file.value == number)  # noqa: B023 it is awaited in its turn
    following.cancel()
