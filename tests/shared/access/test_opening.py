"""A guard as settings ask for it, or no start."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from services.launcher.keys_command import create_key
from services.shared.access import followed_file
from services.shared.access.caller import ANYBODY, Caller
from services.shared.access.denials import Denials
from services.shared.access.guard import NO_KEY, WRONG_KEY, WRONG_PLACE, Denial, Guard
from services.shared.access.loopback import is_loopback
from services.shared.access.opening import Access, guarding
from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.settings import SecuritySettings
from services.shared.access.shown import Shown
from services.shared.config import BadConfig
from tests.shared.access.signer import Signer
from tests.waiting import until


def guarded(settings: SecuritySettings, host: str) -> AbstractAsyncContextManager[Access]:
    return guarding(settings, host, Denials(asyncio.get_running_loop()))


def admitted(guard: Guard, key: str | None, peer: str = "127.0.0.1") -> Caller | Denial:
    shown = Shown() if key is None else Shown(api_key=(key,))
    return guard.admit(guard.found(shown), shown, peer)


def words(denial: Caller | Denial) -> str:
    assert isinstance(denial, Denial)
    return denial.error.message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "codec.internal"])  # noqa: S104 refused
async def test_nobody_listens_beyond_this_machine_without_a_guard_by_accident(host: str) -> None:
    with pytest.raises(BadConfig, match=r"security\.open to true") as caught:
        async with guarded(SecuritySettings(), host):
            pass
    assert host in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_open"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True)],  # noqa: S104 meant
)
async def test_a_door_without_a_guard_is_told_loudly_once(
    host: str, is_open: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with guarded(SecuritySettings(open=is_open), host) as access:
        assert admitted(access.guard, None) == ANYBODY
        assert admitted(access.guard, "anything") == ANYBODY
    (line,) = caplog.messages
    assert line.startswith(f"EVERYBODY WHO REACHES {host}")


async def test_files_that_cannot_be_used_stop_the_start(tmp_path: Path) -> None:
    missing = tmp_path / "none.json"
    with pytest.raises(BadConfig, match="cannot be read"):
        async with guarded(SecuritySettings(keys_file=missing), "127.0.0.1"):
            pass
    settings = Signer().settings(tmp_path / "jwks.json")
    (tmp_path / "jwks.json").write_text("[]")
    with pytest.raises(BadConfig, match="list `keys`"):
        async with guarded(SecuritySettings(jwt=settings), "127.0.0.1"):
            pass


async def test_an_address_of_a_store_that_is_none_stops_the_start_and_is_not_shown(
    tmp_path: Path,
) -> None:
    keys, tenants = tmp_path / "keys.json", tmp_path / "tenants.yaml"
    create_key(keys, "acme", "")
    tenants.write_text("tenants: [acme]")
    quotas = QuotaSettings(redis_url="http://:hidden@store")
    settings = SecuritySettings(keys_file=keys, tenants_file=tenants, quotas=quotas)
    with pytest.raises(BadConfig, match=r"security\.quotas\.redis_url must be redis://") as caught:
        async with guarded(settings, "127.0.0.1"):
            pass
    assert "hidden" not in str(caught.value)


async def test_keys_are_followed_and_wrong_places_learn_nothing_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(followed_file, "INTERVAL_S", 0.001)
    path = tmp_path / "keys.json"
    first = create_key(path, "acme", "").text
    settings = SecuritySettings(keys_file=path, allowed_addresses=("127.0.0.0/8",))
    async with guarded(settings, "0.0.0.0") as access:  # noqa: S104 guarded
        assert admitted(access.guard, first) == Caller(tenant="acme", key_id=first[:11])
        second = create_key(path, "other", "").text
        await until(lambda: isinstance(admitted(access.guard, second), Caller))
        assert words(admitted(access.guard, None)) == NO_KEY
        assert words(admitted(access.guard, first[:-1])) == WRONG_KEY
        for key in (None, first, "wrong"):
            assert words(admitted(access.guard, key, "192.0.2.1")) == WRONG_PLACE
    assert first not in caplog.text


async def test_tokens_alone_are_enough(tmp_path: Path) -> None:
    signer = Signer()
    settings = SecuritySettings(jwt=signer.settings(tmp_path / "jwks.json"))
    async with guarded(settings, "127.0.0.1") as access:
        caller = admitted(access.guard, signer.token())
        assert isinstance(caller, Caller)
        assert caller.tenant == "acme"
        assert words(admitted(access.guard, "tw_abcdefgh_x")) == WRONG_KEY
        assert words(admitted(access.guard, None)) == NO_KEY


@pytest.mark.parametrize(("host", "is_it"), [("127.9.9.9", True), ("[::1]", True), ("", False)])
def test_loopback(host: str, is_it: bool) -> None:
    assert is_loopback(host) is is_it
