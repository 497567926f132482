"""`tokenway keys`: a key is told once, listed without its secret, and taken back."""

from __future__ import annotations

import json
import os
import pwd
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.launcher.__main__ import main
from services.shared.access.key_file import read_keys
from services.shared.access.key_ring import KeyRing
from services.shared.access.refused import Refused


class Command:
    """The command on one file; what it prints."""

    def __init__(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = file
        self._capsys = capsys

    def __call__(self, action: str, *arguments: str, status: int = 0) -> str:
        assert main(["keys", action, "--file", str(self.file), *arguments]) == status
        told = self._capsys.readouterr()
        return told.out if status == 0 else told.err

    def create(self, *arguments: str) -> str:
        return self("create", "--tenant", "acme", *arguments).strip()

    def tenant_of(self, text: str) -> str | None:
        return KeyRing(read_keys(self.file)).caller(text, datetime.now(UTC)).tenant

    def listed(self) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = json.loads(self("list", "--json"))
        return told

    def audited(self) -> list[dict[str, Any]]:
        lines = self.file.with_name("audit.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path / "keys.json", capsys)


def test_a_new_key_is_alone_on_stdout_and_is_taken(keys: Command) -> None:
    text = keys.create("--name", "laptop")
    assert text.startswith("tw_")
    assert text not in keys.file.read_text()
    assert keys.tenant_of(text) == "acme"


def test_lists_show_all_but_the_secret(keys: Command) -> None:
    texts = [keys.create("--name", "laptop"), keys.create("--expires", "30d")]
    for told in (keys("list"), keys("list", "--json")):
        for text in texts:
            assert text[:11] in told
            assert text not in told
        assert "acme" in told
        assert "laptop" in told
    assert "digest" not in keys("list", "--json")
    assert [entry["state"] for entry in keys.listed()] == ["valid", "valid"]


def test_a_revoked_key_stays_in_the_list_and_is_not_taken(keys: Command) -> None:
    text = keys.create()
    keys("revoke", text[:11])
    (first,) = keys.listed()
    assert first["state"] == "revoked"
    with pytest.raises(Refused, match="revoked"):
        keys.tenant_of(text)
    keys("expire", text[:11], "--at", "never")
    assert keys.listed() == [first]


def test_a_key_ends_when_it_is_told_to(keys: Command) -> None:
    text = keys.create("--expires", "1h")
    assert keys.tenant_of(text) == "acme"
    keys("expire", text[:11])
    with pytest.raises(Refused, match="expired"):
        keys.tenant_of(text)
    keys("expire", text[:11], "--at", "2100-01-01T00:00Z")
    assert keys.tenant_of(text) == "acme"
    assert keys.listed()[0]["expires"] == "2100-01-01T00:00:00+00:00"


@pytest.mark.parametrize("moment", ["soon", "xd", "nan", "nand", "1e999d", "2030-01-01", ""])
def test_a_time_that_is_none_is_refused(
    keys: Command, moment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        keys.create("--expires", moment)
    assert "must be never" in capsys.readouterr().err
    assert not keys.file.exists()


def test_what_cannot_be_is_told_in_one_line(keys: Command) -> None:
    assert "cannot be read" in keys("list", status=1)
    assert "cannot be read" in keys("revoke", "tw_x", status=1)
    assert not keys.file.exists()
    assert "tenant must be" in keys("create", "--tenant", "a b", status=1)
    assert "name must be" in keys("create", "--tenant", "a", "--name", "x\ny", status=1)
    keys.create()
    assert "has no key 'tw_x'" in keys("revoke", "tw_x", status=1)


def test_changes_are_noted_with_who_did_them_and_lists_are_not(keys: Command) -> None:
    text = keys.create("--name", "laptop")
    keys("list")
    keys("expire", text[:11], "--at", "2100-01-01T00:00Z")
    keys("revoke", text[:11])
    keys("revoke", "tw_\x1b[31m\nx", status=1)
    noted = keys.audited()
    assert [(one["action"], one["outcome"]) for one in noted] == [
        ("key create", "done"),
        ("key expire", "done"),
        ("key revoke", "done"),
        ("key revoke", "NoSuchKey"),
    ]
    user = f"user:{pwd.getpwuid(os.geteuid()).pw_name}"
    assert {(one["who"], one["service"]) for one in noted} == {(user, "keys")}
    assert noted[0]["what"] == f"{text[:11]} of tenant acme"
    assert noted[1]["what"] == f"{text[:11]} expires 2100-01-01 00:00 UTC"
    file = keys.file.with_name("audit.jsonl")
    assert text not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_key_is_made_where_no_line_can_be_added(
    keys: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENWAY_SECURITY__AUDIT_FILE", "/dev/full")
    assert main(["keys", "create", "--file", str(keys.file), "--tenant", "acme"]) == 0
    told = capsys.readouterr()
    assert keys.tenant_of(told.out.strip()) == "acme"
    assert "/dev/full does not tell of it: No space left on device" in told.err
