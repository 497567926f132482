"""The key of this machine: made once, made again when it is not taken, shown to no other."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.launcher.__main__ import main
from services.launcher.dev_key import TENANT, make_dev_key, own_key
from services.shared.access.key_file import BadKeyFile, read_keys
from services.shared.access.key_ring import KeyRing

HERE = "http://127.0.0.1:8080"


def tenant(folder: Path) -> str | None:
    key = (folder / "dev.key").read_text()
    return KeyRing(read_keys(folder / "keys.json")).caller(key, datetime.now(UTC)).tenant


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    make_dev_key(tmp_path)
    before = (tmp_path / "dev.key").read_text()
    make_dev_key(tmp_path)
    assert (tmp_path / "dev.key").read_text() == before
    assert tenant(tmp_path) == TENANT
    assert {file.name for file in tmp_path.iterdir()} == {"audit.jsonl", "dev.key", "keys.json"}
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in tmp_path.iterdir())


@pytest.mark.parametrize("name", ["dev.key", "keys.json"])
def test_a_key_that_is_not_there_or_not_known_is_made_anew(tmp_path: Path, name: str) -> None:
    make_dev_key(tmp_path)
    before = (tmp_path / "dev.key").read_text()
    (tmp_path / name).unlink()
    make_dev_key(tmp_path)
    assert (tmp_path / "dev.key").read_text() != before
    assert tenant(tmp_path) == TENANT


def test_a_revoked_key_is_made_anew_beside_those_of_others(tmp_path: Path) -> None:
    make_dev_key(tmp_path)
    (first,) = read_keys(tmp_path / "keys.json")
    main(["keys", "revoke", "--file", str(tmp_path / "keys.json"), first.key_id])
    make_dev_key(tmp_path)
    assert tenant(tmp_path) == TENANT
    assert len(read_keys(tmp_path / "keys.json")) == 2


def test_a_broken_file_of_keys_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("broken")
    with pytest.raises(BadKeyFile, match="no JSON"):
        make_dev_key(tmp_path)
    assert (tmp_path / "keys.json").read_text() == "broken"


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        (HERE, True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://192.0.2.1:8080", False),
        ("http://127.0.0.1.example.org", False),
        ("http://127.0.0.1@example.org", False),
        ("nonsense", False),
    ],
)
def test_no_other_machine_gets_to_see_it(tmp_path: Path, url: str, is_shown: bool) -> None:
    make_dev_key(tmp_path)
    assert (own_key(url, {}, tmp_path) is not None) == is_shown
    assert own_key(url, {"TOKENWAY_KEY": "told"}, tmp_path) == "told"


def test_without_one_none_is_shown(tmp_path: Path) -> None:
    assert own_key(HERE, {}, tmp_path) is None
