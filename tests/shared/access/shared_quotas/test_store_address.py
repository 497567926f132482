"""How a store is reached, by whom, and what of it is shown."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.quotas import Quotas
from services.shared.access.shared_quotas.opening import sharing_quotas
from services.shared.access.shared_quotas.shared_quotas import SharedQuotas
from services.shared.access.shared_quotas.store_address import StoreAddress, store_address
from services.shared.access.tenant_limits import TenantLimits
from services.shared.access.tenants_file import Tenants
from services.shared.config import BadConfig
from tests.certificates import Authority
from tests.redis_server import ServerOptions, redis_server

SECRET = "p@ss/word:1"  # noqa: S105  of a test


def address(url: str, **given: Any) -> StoreAddress:
    return store_address(url, QuotaSettings(redis_url=url, **given))


def sharing(
    url: str, tenants: Tenants | None = None, **given: Any
) -> AbstractAsyncContextManager[SharedQuotas]:
    settings = QuotaSettings(redis_url=url, timeout_ms=5000, **given)
    own = Quotas(lambda: tenants or {}, asyncio.get_running_loop().time)
    return sharing_quotas(settings, store_address(url, settings), own)


def test_a_url_says_it_all() -> None:
    found = address("redis://acme:p%40ss%2Fword%3A1@store.example:7000/3")
    assert (found.host, found.port, found.database) == ("store.example", 7000, 3)
    assert (found.username, found.password, found.is_tls) == ("acme", SECRET, False)
    assert str(found) == "store.example:7000"
    plain = address("rediss://[::1]")
    assert (str(plain), plain.username, plain.password, plain.is_tls) == (
        "[::1]:6379",
        None,
        None,
        True,
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://x:hidden@store",
        "redis://",
        "redis://:hidden@",
        "redis://x:hidden@store:port",
        "redis://x:hidden@store:99999",
        "redis://x:hidden@store/db",
        "redis://x:hidden@store?ssl_check_hostname=false",
        "redis://x:hidden@store#0",
        "redis://x:hidden@[::1",
        "",
    ],
)
def test_a_url_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(BadConfig, match=r"security\.quotas\.redis_url must be") as caught:
        address(url)
    assert "hidden" not in str(caught.value)
    assert "store" not in str(caught.value)


def test_a_secret_is_in_no_text(tmp_path: Path) -> None:
    url = "redis://:hidden@store"
    settings = QuotaSettings(redis_url=url)
    assert "hidden" not in f"{settings!r} {store_address(url, settings)!r}"
    path = tmp_path / "password"
    path.write_text("hidden\n")
    found = address("redis://store", redis_password_file=path)
    assert found.password == "hidden"  # noqa: S105
    assert "hidden" not in repr(found)


@pytest.mark.parametrize(
    ("url", "held", "said"),
    [
        ("redis://store", b"", "must hold between 1 and 4096 bytes, got 0"),
        ("redis://store", b"x" * 5000, "must hold between 1 and 4096 bytes, got 4097"),
        ("redis://store", b"\xff", "must hold a password in UTF-8"),
        ("redis://store", None, "cannot be read"),
        ("redis://:x@store", b"y", "must not be set where redis_url has one"),
    ],
)
def test_a_file_of_a_password_that_is_wrong_is_refused(
    tmp_path: Path, url: str, held: bytes | None, said: str
) -> None:
    path = tmp_path / "password"
    if held is not None:
        path.write_bytes(held)
    with pytest.raises(BadConfig, match=r"security\.quotas\.redis_password_file") as caught:
        address(url, redis_password_file=path)
    assert said in str(caught.value)


def test_authorities_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    with pytest.raises(BadConfig, match="redis_ca_file must not be set where"):
        address("redis://store", redis_ca_file=path)
    with pytest.raises(BadConfig, match="cannot be read"):
        address("rediss://store", redis_ca_file=path)
    path.write_text("nothing")
    with pytest.raises(BadConfig, match="holds no certificate"):
        address("rediss://store", redis_ca_file=path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"redis_password_file": Path("x")}, "redis_password_file must not be set without"),
        ({"redis_ca_file": Path("x")}, "redis_ca_file must not be set without redis_url"),
        ({"key_prefix": ""}, "key_prefix must be 1 to 64"),
        ({"key_prefix": "a{b}"}, "key_prefix must be 1 to 64 letters"),
        ({"timeout_ms": 0}, "timeout_ms must be between 1 and 10000, got 0"),
        ({"timeout_ms": 5001}, "timeout_ms must be <= 5000, a third of lease_s, got 5001"),
        ({"processes": 0}, "processes must be between 1 and 10000, got 0"),
        ({"lease_s": 0}, "lease_s must be between 1 and 3600, got 0"),
    ],
)
def test_settings_that_are_wrong_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        QuotaSettings(**given)


async def test_a_store_that_asks_for_a_password_gets_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    password = tmp_path / "password"
    password.write_text(SECRET)
    with redis_server(tmp_path / "redis", ServerOptions(password=SECRET)) as server:
        url = f"redis://{server.address}"
        async with sharing(url, redis_password_file=password) as quotas:
            assert quotas.is_shared
        async with sharing(f"redis://:p%40ss%2Fword%3A1@{server.address}/2") as quotas:
            assert quotas.is_shared
        for wrong in (url, f"redis://:hidden@{server.address}"):
            async with sharing(wrong) as quotas:
                assert not quotas.is_shared
    assert "Authentication required" in caplog.text
    assert "invalid username-password pair" in caplog.text
    assert "hidden" not in caplog.text


ALLOWED = """
+evalsha +script|load +ping +time +hmget +hset +zadd +zrem +zrangebyscore +pexpire
"""
"""As docs/access.md has them."""


async def test_a_user_of_the_store_needs_no_more_than_the_docs_say(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tmp_path / "redis") as server:
        rights = ["reset", "on", ">hidden", "~tokenway:quotas:*", *ALLOWED.split()]
        server.ask("ACL", "SETUSER", "codec", *rights)
        url = f"redis://codec:hidden@{server.address}"
        limits = TenantLimits(tenant="acme", requests_per_minute=5, tokens_per_minute=50)
        async with sharing(url, tenants={"acme": limits}) as quotas:
            await quotas.enter("acme")
            async with quotas.reserve("acme", 10, 1):
                quotas._renew("acme", list(quotas._leases["acme"].values()))
        assert quotas.counts.failures == quotas.counts.lost == 0
        server.ask("ACL", "SETUSER", "codec", "-zadd")
        async with sharing(url) as quotas:
            assert not quotas.is_shared
        assert "hidden" not in caplog.text


async def test_a_store_behind_tls_is_one_that_our_authority_vouches_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    options = ServerOptions(tls=authority.issue("localhost"), lines=("--tls-auth-clients", "no"))
    with redis_server(tmp_path / "redis", options) as server:
        url = f"rediss://localhost:{server.port}"
        async with sharing(url, redis_ca_file=authority.ca_file) as quotas:
            assert quotas.is_shared
        async with sharing(url, redis_ca_file=other.ca_file) as quotas:
            assert not quotas.is_shared
        assert "certificate verify failed" in caplog.text
