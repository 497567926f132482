"""The file of keys: replaced whole, for its owner's eyes, and never half read."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.shared.access.api_key import ApiKey, digest_of
from services.shared.access.key_file import BadKeyFile, changing_keys, read_keys
from services.shared.access.key_record import KeyRecord

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def record(tenant: str = "acme") -> KeyRecord:
    key = ApiKey.new()
    return KeyRecord(
        key_id=key.key_id, digest=digest_of(key.text), tenant=tenant, name="n", created=NOW
    )


def written(path: Path, *records: KeyRecord) -> None:
    with changing_keys(path) as there:
        there[:] = records


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "keys.json"
    records = (record(), replace(record(), expires=NOW, revoked=NOW))
    written(path, *records)
    assert read_keys(path) == records
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["keys.json"]


def test_an_error_in_the_block_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    written(path, record())
    before = path.read_bytes()
    with pytest.raises(BadKeyFile), changing_keys(path) as records:
        records.append(records[0])
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_two_keys_with_one_name_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    one = record()
    written(path, one)
    with pytest.raises(BadKeyFile, match="two keys with one key_id"):
        written(path, one, replace(record(), key_id=one.key_id))
    assert read_keys(path) == (one,)


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"

    def add() -> None:
        for _ in range(5):
            with changing_keys(path) as records:
                records.append(record())

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_keys(path)) == 20


KEY = {"id": "tw_a", "digest": "00" * 32, "tenant": "t", "name": "", "created": NOW.isoformat()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "version 1"),
        ('{"version": 2}', "version 1"),
        ('{"version": 1}', "'keys'"),
        ('{"version": 1, "keys": 7}', "cannot be read"),
        ('{"version": 1, "keys": ["x"]}', "cannot be read"),
        *[
            (json.dumps({"version": 1, "keys": [KEY | change]}), said)
            for change, said in (
                ({"tenant": "a b"}, "tenant must be 1 to 64"),
                ({"tenant": "a\nb"}, "tenant must be 1 to 64"),
                ({"tenant": None}, "tenant must be text"),
                ({"digest": "00"}, "digest must have 32 bytes, got 1"),
                ({"digest": "no"}, "hexadecimal"),
                ({"name": "a\nb"}, "name must be at most 100 printable"),
                ({"created": "yesterday"}, "yesterday"),
                ({"expires": "2030-01-01T00:00:00"}, "zone"),
            )
        ],
    ],
)
def test_what_is_no_file_of_keys_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(BadKeyFile) as caught:
        read_keys(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    with pytest.raises(BadKeyFile), changing_keys(path):
        pass
    assert path.read_text() == text


def test_a_file_that_is_not_there_or_that_others_may_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(BadKeyFile, match="cannot be read: No such file"):
        read_keys(path)
    written(path, record())
    path.chmod(0o666)
    with pytest.raises(BadKeyFile, match="chmod 600"):
        read_keys(path)
    path.chmod(0o444)
    assert read_keys(path)
