"""Which certificates an operator's commands show, and why a call did not come through."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from services.launcher import health_probe
from services.launcher.certs.issued import keep_issued
from services.launcher.certs.subject import subject
from services.launcher.no_answer import why_no_answer
from services.launcher.own_certificates import Calling, own_certificates
from services.launcher.router_command import operate
from services.shared.health import Readiness
from services.shared.server import serving
from services.shared.tls.certificate_files import read_certificates
from services.shared.tls.identity import STREAM_NAME
from services.shared.tls.server_credentials import mutual

HERE = "127.0.0.1:9000"


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    """As `tokenway up` makes them, below the folder of keys."""
    folder = tmp_path / "certs"
    roles = ("engine", "router", "codec", "admin")
    keep_issued(folder, [subject(role, role) for role in roles])
    return folder


@pytest.fixture
async def router(certs: Path) -> AsyncIterator[str]:
    """A server that asks for certificates, and is ready."""
    credentials = mutual(partial(read_certificates, certs / "router"))
    async with serving(
        "127.0.0.1:0", lambda _: None, [], grace_s=0, credentials=credentials
    ) as door:
        await door.health.set(Readiness.READY)
        yield door.address


@pytest.mark.parametrize(
    ("said", "environ", "at", "shown"),
    [
        (None, {}, HERE, "made"),
        (None, {}, "[::1]:9000", "made"),
        (None, {}, "localhost:9000", "made"),
        (None, {}, "192.0.2.1:9000", None),
        (None, {}, "127.0.0.1.example:9000", None),
        (None, {"TOKENWAY_CERTIFICATES": "/env"}, "192.0.2.1:9000", "/env"),
        ("/said", {"TOKENWAY_CERTIFICATES": "/env"}, HERE, "/said"),
        ("none", {"TOKENWAY_CERTIFICATES": "/env"}, HERE, None),
        (None, {"TOKENWAY_CERTIFICATES": "none"}, HERE, None),
    ],
)
def test_what_was_made_here_is_shown_here_unless_somebody_says_more(
    certs: Path, said: str | None, environ: dict[str, str], at: str, shown: str | None
) -> None:
    made = str(certs / "admin") if shown == "made" else shown
    told = own_certificates(said, at, environ, certs.parent)
    assert (None if told is None else str(told)) == made


def test_where_none_were_made_none_are_shown(tmp_path: Path) -> None:
    assert own_certificates(None, HERE, {}, tmp_path) is None


async def test_a_probe_shows_what_it_is_told_to(
    certs: Path, router: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def probe(*options: str, patience: str = "0.5") -> int:
        arguments = [router, "--timeout", patience, *options]
        return await health_probe.probe(arguments)

    assert await probe("--certificates", str(certs / "admin"), patience="30") == 0
    assert await probe("--certificates", "none") == 1
    assert await probe("--certificates", str(certs / "gone")) == 1
    monkeypatch.setenv("TOKENWAY_SECURITY__CERTIFICATES", str(certs / "router"))
    assert await probe(patience="30") == 0


async def test_a_probe_finds_a_codec_by_its_own_name(certs: Path) -> None:
    credentials = mutual(partial(read_certificates, certs / "codec"))
    async with serving(
        "127.0.0.1:0", lambda _: None, [], grace_s=0, credentials=credentials
    ) as door:
        await door.health.set(Readiness.READY)
        arguments = [door.address, "--timeout", "30", "--certificates", str(certs / "admin")]
        assert await health_probe.probe(arguments) == 0


async def test_a_fault_says_what_the_other_end_speaks(
    certs: Path, router: str, tmp_path: Path
) -> None:
    clear, ours = Calling(None, STREAM_NAME), Calling(certs / "admin", STREAM_NAME)
    keep_issued(tmp_path / "foreign", [subject("admin", "admin")])
    foreign = Calling(tmp_path / "foreign" / "admin", STREAM_NAME)
    assert "asks for a certificate" in await why_no_answer("router", router, clear)
    assert "do not trust each other" in await why_no_answer("router", router, foreign)
    async with serving("127.0.0.1:0", lambda _: None, [], grace_s=0) as door:
        assert "has no certificate" in await why_no_answer("router", door.address, ours)
        assert "something listens" in await why_no_answer("router", door.address, clear)
    with socket.create_server(("127.0.0.1", 0)) as held:
        free = f"127.0.0.1:{held.getsockname()[1]}"
    for calling in (clear, ours):
        assert "no router answers at" in await why_no_answer("router", free, calling)


async def test_a_command_that_is_not_let_in_says_how_it_would_be(
    certs: Path, router: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fault(folder: str) -> str:
        arguments = ["list", "--at", router, "--certificates", folder]
        assert await operate(arguments) == 1
        return capfd.readouterr().err

    assert "name ours by --certificates DIR" in await fault("none")
    assert "cannot read" in await fault(str(certs / "gone"))
    # It is let in; there is nothing here that operates.
    assert "is no router" in await fault(str(certs / "admin"))
