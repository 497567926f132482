"""Which folders engines can share."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.launcher.kv_folder import can_hold


def test_a_folder_that_is_there_or_can_be_made_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert can_hold(tmp_path)
    assert can_hold(tmp_path / "a" / "b")
    monkeypatch.chdir(tmp_path)
    assert can_hold(Path("a/b"))
    assert not (tmp_path / "a").exists()


def test_a_file_in_its_way_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not can_hold(tmp_path / "file")
    assert not can_hold(tmp_path / "file" / "kv")
